import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { check } from "../../src/cli/maintenance.ts";
import { directory, serve } from "../e2e/support/server.ts";
import { served } from "./support.ts";

const State = Annotation.Root({
  topic: Annotation<string>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const linear = () =>
  new StateGraph(State)
    .addNode("one", (state) => ({ log: [`one ${state.topic}`] }))
    .addNode("two", () => ({ log: ["two"] }))
    .addEdge(START, "one")
    .addEdge("one", "two")
    .addEdge("two", END)
    .compile();

test("a run that gives no context has an empty one, and one that gives some has that", async () => {
  const graph = new StateGraph(State, Annotation.Root({ tone: Annotation<string> }))
    .addNode("one", (_, { context }) => ({ log: [`tone ${(context as { tone?: string }).tone}`] }))
    .addEdge(START, "one")
    .compile();
  const app = await serve({ langGraphs: await served({ graph }) });
  const client = new Client({ apiUrl: app.url });
  const tone = async (given: object) => {
    const values = await client.runs.wait(null, "graph", { input: { topic: "t" }, ...given });
    return (values as unknown as { log: string[] }).log;
  };
  expect(await tone({})).toEqual(["tone undefined"]);
  expect(await tone({ context: { tone: "warm" } })).toEqual(["tone warm"]);
});

test("a compiled linear graph: waited for, streamed, its state read", async () => {
  const app = await serve({ langGraphs: await served({ linear: linear() }) });
  const client = new Client({ apiUrl: app.url });
  const thread = await client.threads.create();
  expect(await client.runs.wait(thread.thread_id, "linear", { input: { topic: "t" } })).toEqual({
    topic: "t",
    log: ["one t", "two"],
  });
  const events: unknown[] = [];
  for await (const { event, data } of client.runs.stream(thread.thread_id, "linear", {
    input: { topic: "u" },
    streamMode: ["values", "updates"],
  })) {
    events.push([event, data]);
  }
  expect(events.slice(1)).toEqual([
    ["values", { topic: "u", log: ["one t", "two"] }],
    ["updates", { one: { log: ["one u"] } }],
    ["values", { topic: "u", log: ["one t", "two", "one u"] }],
    ["updates", { two: { log: ["two"] } }],
    ["values", { topic: "u", log: ["one t", "two", "one u", "two"] }],
  ]);
  const state = await client.threads.getState(thread.thread_id);
  expect(state.values).toEqual({ topic: "u", log: ["one t", "two", "one u", "two"] });
  expect(state.next).toEqual([]);
  expect(state.metadata).toMatchObject({ source: "loop", step: 6, writes: { two: { log: ["two"] } } });
  expect(app.complaints).toEqual([]);
});

test("the metadata of an update has all its writes, also several for one node", async () => {
  const app = await serve({ langGraphs: await served({ linear: linear() }) });
  const client = new Client({ apiUrl: app.url });
  const write = (asNode: string, log: string) => ({ values: { log: [log] }, asNode });
  const { thread_id } = await client.threads.create({
    graphId: "linear",
    supersteps: [{ updates: [write("one", "a"), write("two", "b"), write("one", "c")] }],
  });
  const { values, metadata } = await client.threads.getState(thread_id);
  expect(values).toEqual({ log: ["a", "b", "c"] });
  expect(metadata).toMatchObject({
    source: "update",
    writes: { one: [{ log: ["a"] }, { log: ["c"] }], two: { log: ["b"] } },
  });
});

test("a thread that begins with a command stores nothing that a check takes for damage", async () => {
  const data = await directory();
  const app = await serve({ data, langGraphs: await served({ linear: linear() }) });
  const client = new Client({ apiUrl: app.url });
  const thread = await client.threads.create();
  const command = { goto: "two", update: { topic: "t" } };
  // LangGraph.js takes a command without a state as an input that names the node.
  expect(await client.runs.wait(thread.thread_id, "linear", { command })).toMatchObject({ topic: "t" });
  await app.close();
  const found: string[] = [];
  expect(await check(data, (line) => void found.push(line)), found.join()).toBe(0);
});
