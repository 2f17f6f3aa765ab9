import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, Command, END, getConfig, Send, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { graphFile } from "./support.ts";
import { interceptNodes } from "../../src/langgraph/node-interception.ts";
import { resolveLibrary } from "../../src/langgraph/user-library.ts";
import type { CompiledGraph } from "../../src/langgraph/exported-graph.ts";

/** Heddle runs a node as one step where LangGraph makes a sequence of it. */

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const userOf = ({ configurable }: RunnableConfig) => String(configurable?.["user"]);

/**
 * Everything that can follow a node: edges, joins, commands, conditions that send, and conditions that read the state
 * and the configuration.
 */
const graph = new StateGraph(State)
  .addNode("first", (_, config: RunnableConfig) => ({ log: [`first for ${userOf(config)}`] }))
  .addNode("command", () => new Command({ update: { log: ["command"] }, goto: ["left", "right"] }), {
    ends: ["left", "right"],
  })
  .addNode("left", () => [{ log: ["left"] }, new Command({ update: { log: ["left again"] } })] as never)
  .addNode("right", () => ({ log: ["right"] }))
  .addNode("join", () => ({ log: ["join"] }))
  .addNode("sent", (given: unknown) => ({ log: [`sent ${JSON.stringify(given)}`] }))
  .addNode("silent", () => undefined as never)
  .addEdge(START, "first")
  .addEdge("first", "command")
  .addEdge(["left", "right"], "join")
  .addConditionalEdges("join", ({ log }, config: RunnableConfig) => [
    new Send("sent", { seen: log.length, for: userOf(config) }),
    new Send("sent", { seen: log.length, for: userOf(getConfig()) }),
    "silent",
  ])
  .addEdge("sent", END)
  .compile() as unknown as CompiledGraph;

async function hosted(of: CompiledGraph): Promise<CompiledGraph> {
  return interceptNodes(await resolveLibrary(graphFile, of), of, (call) => call.run());
}

describe("a hosted node", () => {
  const input = { log: [] };
  const configurable = { user: "Ada" };

  test("writes and leads on as its graph says", async () => {
    const expected: unknown = await graph.invoke(input, { configurable });
    expect(expected).toMatchObject({
      log: expect.arrayContaining(["first for Ada", "left again", 'sent {"seen":6,"for":"Ada"}']) as unknown,
    });
    expect(await (await hosted(graph)).invoke(input, { configurable })).toEqual(expected);
  });

  test("is told of to callbacks part by part, as LangGraph does", async () => {
    const heard = async (of: CompiledGraph) => {
      const names: (string | undefined)[] = [];
      const handleChainStart = (...told: readonly unknown[]) => names.push(told[7] as string | undefined);
      await of.invoke(input, { configurable, callbacks: [{ handleChainStart }] });
      return names;
    };
    const names = await heard(graph);
    expect(names).toEqual(expect.arrayContaining(["first", "join", "sent"]));
    expect(await heard(await hosted(graph))).toEqual(names);
  });

  test("does not hold up a step that has failed, though its body does not listen", async () => {
    const stuck = new StateGraph(State)
      .addNode("bad", () => Promise.reject(new TypeError("kaboom")))
      .addNode("deaf", () => new Promise<never>(() => undefined))
      .addEdge(START, "bad")
      .addEdge(START, "deaf")
      .compile() as unknown as CompiledGraph;
    await expect((await hosted(stuck)).invoke(input)).rejects.toThrow("kaboom");
  });
});
