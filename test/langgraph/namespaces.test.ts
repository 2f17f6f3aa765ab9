import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { entrypoint, MessagesAnnotation, START, StateGraph, task } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { newThread, post, postJson, Reading } from "../e2e/support/wire.ts";
import type { Config } from "./stories/parts.ts";
import { served } from "./support.ts";

/** Streams tokens, writes custom data, and calls a tool. */
const talking = () =>
  new StateGraph(MessagesAnnotation)
    .addNode("talk", async ({ messages }, config: Config) => {
      config.writer?.({ progress: 1 });
      return { messages: [await new FakeListChatModel({ responses: ["hi"] }).invoke(messages, config)] };
    })
    .addNode("call", () => ({
      messages: [
        new AIMessage({
          id: "a1",
          content: "",
          tool_calls: [{ id: "c1", name: "search", args: { q: "x" } }],
        }),
      ],
    }))
    .addNode("answer", () => ({
      messages: [new ToolMessage({ id: "t1", content: "found", tool_call_id: "c1" })],
    }))
    .addEdge(START, "talk")
    .addEdge("talk", "call")
    .addEdge("call", "answer")
    .compile();

/** The same graph as the root, as a node, as the node of a node, and called by a node. */
function graphs() {
  const within = (name: string, inner: { readonly lg_is_pregel: boolean }) =>
    new StateGraph(MessagesAnnotation)
      .addNode(name, inner as never)
      .addEdge(START, name as never)
      .compile();
  const calls = new StateGraph(MessagesAnnotation)
    .addNode("caller", async (state, config: Config) => talking().invoke(state, config))
    .addEdge(START, "caller")
    .compile();
  const [middle, sub] = [within("inner", talking()), within("sub", talking())];
  return { root: talking(), sub, deep: within("outer", middle), calls };
}

/** The position of each graph: the nodes that lead to it. */
const places = [
  ["root", []],
  ["sub", ["sub"]],
  ["deep", ["outer", "inner"]],
  ["calls", ["caller"]],
] as const;

const nodes = (namespace: readonly string[]) => namespace.map((part) => part.split(":")[0]);

/** The namespaces of the streamed events, by kind: each event has one. */
function byKind(all: readonly (readonly [kind: string, namespace: readonly string[]])[]) {
  const found = new Map<string, Set<string>>();
  for (const [kind, namespace] of all)
    found.set(kind, (found.get(kind) ?? new Set()).add(nodes(namespace).join()));
  return Object.fromEntries([...found].map(([kind, set]) => [kind, [...set]]));
}

test.each(places)(
  "tokens, messages and custom data have the namespace of the graph: %s",
  async (name, at) => {
    const app = await serve({ langGraphs: await served(graphs()) });
    const client = new Client({ apiUrl: app.url });
    const seen: (readonly [string, readonly string[]])[] = [];
    for await (const { event } of client.runs.stream(null, name, {
      input: { messages: [{ role: "user", content: "hello" }] },
      streamMode: ["messages-tuple", "custom"],
      streamSubgraphs: true,
    })) {
      const [mode = "", ...namespace] = event.split("|");
      if (mode === "metadata") continue;
      // Below the root graph, the name of a message's event also contains the task that sent the message.
      if (mode === "messages" && namespace.length > 0)
        expect(["talk", "call", "answer"]).toContain(nodes(namespace.splice(-1))[0]);
      seen.push([mode, namespace]);
    }
    expect(byKind(seen)).toEqual({ custom: [at.join()], messages: [at.join()] });
  },
);

test.each(places)("and so they have in the protocol, as tool calls do: %s", async (name, at) => {
  const { url } = await serve({ langGraphs: await served(graphs()) });
  const thread = await newThread(url);
  const channels = ["messages", "tools", "custom", "updates", "lifecycle"];
  const reading = new Reading(await post(`${url}/threads/${thread}/stream/events`, { channels }));
  const input = { messages: [{ role: "user", content: "hello" }] };
  const params = { assistant_id: name, input };
  await postJson(`${url}/threads/${thread}/commands`, { id: 1, method: "run.start", params });
  interface Told {
    readonly method: string;
    readonly params: {
      readonly namespace: readonly string[];
      readonly node?: string;
      readonly data: { readonly event?: string };
    };
  }
  const sent = await reading.until(({ data }) => {
    const { method, params: told } = data as Told;
    return method === "lifecycle" && told.namespace.length === 0 && told.data.event === "completed";
  });
  await reading.leave();
  const told = sent.map(({ data }) => data as Told);
  const isOwn = ({ method, params: { node = "" } }: Told) =>
    method !== "lifecycle" && (method !== "updates" || ["talk", "call", "answer"].includes(node));
  const seen = told.filter(isOwn).map(({ method, params: { namespace } }) => [method, namespace] as const);
  const here = [at.join()];
  expect(byKind(seen)).toEqual({ custom: here, messages: here, tools: here, updates: here });
  const tools = told.filter(({ method }) => method === "tools").map(({ params: { data } }) => data.event);
  expect(tools).toEqual(["tool-started", "tool-finished"]);
});

test("tokens of a functional task have the namespace of its entrypoint's graph: tasks are no graphs", async () => {
  const say = task("say", async (text: string, config?: Config) =>
    new FakeListChatModel({ responses: ["hi"] }).invoke(text, config),
  );
  const shout = task("shout", async (text: string) => say(text));
  const flow = entrypoint("flow", async (text: string) => (await shout(text)).content);
  const app = await serve({ langGraphs: await served({ flow }) });
  const client = new Client({ apiUrl: app.url });
  const seen: string[] = [];
  for await (const { event } of client.runs.stream(null, "flow", {
    input: "hello" as never,
    streamMode: "messages-tuple",
    streamSubgraphs: true,
  })) {
    if (event !== "metadata") seen.push(event);
  }
  expect([...new Set(seen)]).toEqual(["messages"]);
});
