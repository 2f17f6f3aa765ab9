import { Annotation, Command, interrupt, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { Client, type ThreadState } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { latch } from "../e2e/support/latches.ts";
import { directory, serve } from "../e2e/support/server.ts";
import { isBelow, served } from "./support.ts";

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

/** A graph with a subgraph that has one history (`keeps`), or a new one for each call. */
function nested(keeps: boolean) {
  const ran: string[] = [];
  const node = (name: string) => () => {
    ran.push(name);
    return { log: [name] };
  };
  const sub = new StateGraph(State)
    .addNode("a", node("a"))
    .addNode("b", () => {
      ran.push("b");
      return { log: [`b ${String(interrupt("b?"))}`] };
    })
    .addNode("c", node("c"))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .addEdge("b", "c")
    .compile(keeps ? { checkpointer: true } : {});
  const outer = new StateGraph(State)
    .addNode("pre", node("pre"))
    .addNode("sub", sub)
    .addNode("post", node("post"))
    .addEdge(START, "pre")
    .addEdge("pre", "sub")
    .addEdge("sub", "post");
  return { outer, took: () => ran.splice(0) };
}

interface Place {
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
  readonly checkpoint_map: Readonly<Record<string, string>>;
}

/** The steps of a test: each answer, and the nodes that ran because of it. */
type Told = readonly (readonly [unknown, readonly string[]])[];

/**
 * The same steps on both sides: pause, answer, then run from the checkpoint before the subgraph's question, and answer
 * differently.
 */
async function inProcess(keeps: boolean): Promise<Told> {
  const { outer, took } = nested(keeps);
  const graph = outer.compile({ checkpointer: new MemorySaver() });
  const thread = { thread_id: "0190c6f8-5c5e-7000-8000-000000000001" };
  const told: [unknown, readonly string[]][] = [];
  const run = async (input: unknown, place: object = {}) => {
    const answer = await graph.invoke(input as never, { configurable: { ...thread, ...place } });
    told.push([plain(answer), took()]);
  };
  await run({ log: ["in"] });
  const { tasks } = await graph.getState({ configurable: thread });
  const within = tasks[0]?.state as { configurable: Place } | undefined;
  const checkpoint_ns = keeps ? "sub" : within?.configurable.checkpoint_ns;
  const { config } = await graph.getState({ configurable: { ...thread, checkpoint_ns } });
  await run(new Command({ resume: "yes" }));
  await run(null, config.configurable);
  await run(new Command({ resume: "no" }));
  return told;
}

async function hosted(keeps: boolean): Promise<Told> {
  const { outer, took } = nested(keeps);
  const app = await serve({ langGraphs: await served({ outer: outer.compile() }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const told: [unknown, readonly string[]][] = [];
  const run = async (options: object) => {
    told.push([plain(await client.runs.wait(thread_id, "outer", options)), took()]);
  };
  await run({ input: { log: ["in"] } });
  const { tasks } = await client.threads.getState(thread_id);
  const checkpoint_ns = keeps ? "sub" : String(tasks[0]?.checkpoint?.checkpoint_ns);
  const { checkpoint } = await client.threads.getState(thread_id, { checkpoint_ns } as never);
  expect(checkpoint.checkpoint_map).toEqual({
    "": expect.any(String) as unknown,
    [checkpoint_ns]: checkpoint.checkpoint_id,
  });
  await run({ command: { resume: "yes" } });
  await run({ input: null, checkpoint });
  const branch = await client.threads.getState(thread_id, undefined, { subgraphs: true });
  const [at] = branch.tasks;
  expect(branch.metadata?.["source"]).toBe("fork");
  const inner = at?.state as ThreadState | undefined;
  if (!keeps) expect(inner?.checkpoint.checkpoint_map?.[""]).toBe(branch.checkpoint.checkpoint_id);
  expect(at?.interrupts.map(({ value }) => value)).toEqual(["b?"]);
  await run({ command: { resume: "no" } });
  expect(app.complaints).toEqual([]);
  return told;
}

function plain(answer: unknown): unknown {
  const { __interrupt__: asked, ...values } = answer as {
    readonly __interrupt__?: readonly { value: unknown }[];
  };
  return { ...values, asked: asked?.map(({ value }) => value) };
}

test("a run from a subgraph's checkpoint: one of a history of its own goes on in it, as in LangGraph.js itself", async () => {
  const told = await hosted(true);
  if (!isBelow(4)) expect(told).toEqual(await inProcess(true));
  expect(told[2]?.[1]).toEqual(["b"]);
  expect(told[3]?.[0]).toMatchObject({ log: expect.arrayContaining(["b no", "post"]) as unknown });
});

test("one that begins anew whenever it is called goes on too, where LangGraph.js itself begins it anew", async () => {
  const told = await hosted(false);
  expect(told.map(([, ran]) => ran)).toEqual([
    ["pre", "a", "b"],
    ["b", "c", "post"],
    ["b"],
    ["b", "c", "post"],
  ]);
  expect(told[3]?.[0]).toMatchObject({ log: expect.arrayContaining(["b no", "post"]) as unknown });
  if (isBelow(4)) return;
  const itself = await inProcess(false);
  expect(told.map(([answer]) => answer)).toEqual(itself.map(([answer]) => answer));
  expect(itself[2]?.[1]).toEqual(["a", "b"]);
  expect(told.map(([, ran]) => ran)).toEqual(itself.map(([, ran], i) => (i === 2 ? ["b"] : ran)));
});

/** A node whose body calls two graphs; it waits before the second one on request. */
function calling() {
  const ran: string[] = [];
  const reached = latch();
  const opened = latch();
  const called = (name: string) =>
    new StateGraph(State)
      .addNode("x", () => {
        ran.push(`${name} x`);
        return { log: [`${name} x`] };
      })
      .addNode("y", () => {
        ran.push(`${name} y`);
        return { log: [`${name} y`] };
      })
      .addEdge(START, "x")
      .addEdge("x", "y")
      .compile();
  const [first, second] = [called("first"), called("second")];
  const gate = { isShut: false };
  const outer = new StateGraph(State)
    .addNode("body", async () => {
      const { log } = await first.invoke({ log: [] });
      if (gate.isShut) {
        reached.pass();
        await opened.passed;
      }
      return second.invoke({ log });
    })
    .addEdge(START, "body")
    .compile();
  return { outer, gate, took: () => ran.splice(0), reached: reached.passed, open: opened.pass };
}

test("one of the graphs that a node's body calls, also when the server is started anew before it gets there", async () => {
  const data = await directory();
  const one = calling();
  const before = await serve({ data, langGraphs: await served({ outer: one.outer }) });
  const client = new Client({ apiUrl: before.url });
  const { thread_id } = await client.threads.create();
  const whole = await client.runs.wait(thread_id, "outer", { input: { log: [] } });
  expect(one.took()).toEqual(["first x", "first y", "second x", "second y"]);
  const [, root] = await client.threads.getHistory(thread_id);
  const checkpoint_ns = `body:${root?.tasks[0]?.id}|1`;
  const within = await client.threads.getHistory(thread_id, { checkpoint: { checkpoint_ns } as never });
  const checkpoint = within.find(({ next }) => next.includes("y"))?.checkpoint;
  expect(checkpoint).toBeDefined();
  const run = { input: null, checkpoint: checkpoint as never };
  expect(await client.runs.wait(thread_id, "outer", run)).toEqual(whole);
  expect(one.took()).toEqual(["first x", "first y", "second y"]);

  one.gate.isShut = true;
  const { run_id } = await client.runs.create(thread_id, "outer", run);
  await one.reached;
  await before.close(0);
  one.open();
  const anew = calling();
  const after = await serve({ data, langGraphs: await served({ outer: anew.outer }) });
  const values = await new Client({ apiUrl: after.url }).runs.join(thread_id, run_id);
  expect(values).toEqual(whole);
  // The result of the first call is stored with the task.
  expect(anew.took()).toEqual(["second y"]);
  expect([...before.complaints, ...after.complaints]).toEqual([]);
});
