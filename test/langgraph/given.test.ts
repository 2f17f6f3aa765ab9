import { join } from "node:path";
import { Annotation, entrypoint, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { createAgent } from "langchain";
import { describe, expect, test } from "vitest";
import { createApp, graph, list, type AppOptions } from "../../src/index.ts";
import { resolveLibrary } from "../../src/langgraph/user-library.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const saying = (word: string) =>
  new StateGraph(State).addNode("say", () => ({ log: [word] })).addEdge("__start__", "say");
const native = graph({
  state: { log: list<string>() },
  nodes: { say: async () => ({ log: ["native"] }) },
  edges: { start: "say" },
});

async function outputOf(url: string, name: string, body: object = {}): Promise<unknown> {
  const thread = await newThread(url);
  return postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: name, input: { log: [] }, ...body });
}

// A program uses the LangGraph.js that its own files import; with another version under test, these files import
// that of another directory.
const isAnother = process.env["HEDDLE_TEST_LANGGRAPH_AT"] !== undefined;

describe.skipIf(isAnother)("createApp takes a graph of LangGraph.js as it is", () => {
  test.each<[string, NonNullable<AppOptions["graphs"]>]>([
    ["compiled", { g: saying("said").compile() }],
    ["a builder", { g: saying("said") }],
    ["a function", { g: () => saying("said").compile() }],
    ["an async function", { g: async () => saying("said") }],
    ["what has one as its graph, as an agent", { g: { graph: saying("said").compile() } }],
    ["beside one of Heddle's own", { g: saying("said").compile(), native }],
  ])("%s", async (_, graphs) => {
    const { url, complaints } = await serve({ graphs });
    expect(await outputOf(url, "g")).toEqual({ log: ["said"] });
    if (graphs["native"] !== undefined) expect(await outputOf(url, "native")).toEqual({ log: ["native"] });
    expect(complaints).toEqual([]);
  });

  test("an entrypoint, and an agent", async () => {
    const echo = entrypoint("echo", async ({ text }: { text: string }) => ({ text }));
    const agent = createAgent({ model: new FakeListChatModel({ responses: ["hello"] }), tools: [] });
    const { url } = await serve({ graphs: { echo, agent } });
    expect(await outputOf(url, "echo", { input: { text: "a" } })).toEqual({ text: "a" });
    expect(
      await outputOf(url, "agent", { input: { messages: [{ role: "user", content: "hi" }] } }),
    ).toMatchObject({
      messages: [{ content: "hi" }, { content: "hello" }],
    });
  });

  test("a function that takes the configuration makes the graph of each run", async () => {
    const made = ({ configurable }: { configurable?: { word?: string } }) =>
      saying(configurable?.word ?? "none").compile();
    const { url } = await serve({ graphs: { made } });
    const config = { configurable: { word: "mine" } };
    expect(await outputOf(url, "made", { config })).toEqual({ log: ["mine"] });
    expect(await outputOf(url, "made")).toEqual({ log: ["none"] });
  });

  test("it replaces a graph of the same name in the configuration file", async () => {
    const file = join(import.meta.dirname, "../fixtures/langgraph/slow.ts");
    const fromFile = { file, name: "slow" };
    const config = { path: file, graphs: { one: fromFile, other: fromFile }, env: {} };
    const { url } = await serve({ config, graphs: { one: saying("given").compile() } });
    expect(await outputOf(url, "one")).toEqual({ log: ["given"] });
    const assistants = await postJson<{ name: string }[]>(`${url}/assistants/search`);
    expect(assistants.filter(({ name }) => name === "one")).toHaveLength(1);
    const drawn = await (await fetch(`${url}/assistants/other/graph`)).text();
    expect(drawn).not.toContain('"say"');
  });
});

test.skipIf(isAnother)(
  "LangGraph.js is that of the file that the graph was made with, whichever it is of the program's",
  async () => {
    const made = saying("said").compile();
    const library = await resolveLibrary("/nowhere/main.js", made, ["/nor/here.js", import.meta.filename]);
    expect(made).toBeInstanceOf(library.pregel.Pregel);
    await expect(resolveLibrary("/nowhere/main.js", made)).rejects.toMatchObject({ code: "config.invalid" });
  },
);

describe("what is no graph is refused by its name", () => {
  const refusal = async (given: unknown) => {
    const app = createApp({ graphs: { given } as NonNullable<AppOptions["graphs"]> });
    return app.then(
      (made) => made.close().then(() => "served"),
      (cause: unknown) => cause,
    );
  };

  test.each([
    [
      "a definition",
      { nodes: {} },
      "it is no graph: a definition that was not given to graph(): give graph({ ... })",
    ],
    [
      "nothing",
      undefined,
      "it is no graph: give what graph({ ... }) returns, a graph of LangGraph.js, or an XState machine",
    ],
    ["a function of nothing", () => undefined, "it is no graph: give what graph"],
    [
      "a runnable",
      new FakeListChatModel({ responses: [] }),
      "it is no graph: a runnable that is no compiled graph",
    ],
    [
      "a function that throws",
      () => {
        throw new Error("no key");
      },
      "the function gave no graph: Error: no key",
    ],
  ])("%s", async (_, given, message) => {
    expect(await refusal(given)).toMatchObject({
      code: "graph.invalid",
      message: expect.stringContaining(`graphs.given: ${message}`) as string,
    });
  });

  test("a builder that cannot be compiled", async () => {
    expect(await refusal(new StateGraph(MessagesAnnotation).addNode("a", () => ({})))).toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("graphs.given: the graph cannot be served: ") as string,
    });
  });
});
