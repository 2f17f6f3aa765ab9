import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, onTestFinished, test, vi } from "vitest";
import { Actor, type AnyActor } from "xstate";
import { serve } from "../e2e/support/server.ts";
import { served } from "./support.ts";

const State = Annotation.Root({ log: Annotation<string[]> });

const around = (node: () => Promise<Partial<typeof State.State>>, retryPolicy = {}) =>
  new StateGraph(State)
    .addNode(
      "outer",
      new StateGraph(State)
        .addNode("inner", node, { retryPolicy: { maxAttempts: 1, ...retryPolicy } })
        .addEdge(START, "inner")
        .compile(),
    )
    .addEdge(START, "outer")
    .compile();

/** A promise that resolves on request. */
function signal(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((now) => (resolve = now));
  return { promise, resolve };
}

const parsed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

test.each([
  [
    "a node",
    (node: () => Promise<never>) => new StateGraph(State).addNode("a", node).addEdge(START, "a").compile(),
  ],
  ["a node of a subgraph", around],
])("an object that %s throws is in the error as JSON", async (_, graphOf) => {
  const graph = graphOf(async () => {
    throw { a: 1 };
  });
  const app = await serve({ langGraphs: await served({ broken: graph }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const outcome = await client.runs.wait(thread_id, "broken", { input: { log: [] }, raiseError: false });
  expect(outcome).toEqual({ __error__: { error: "Error", message: '{"a":1}' } });
  const { tasks } = await client.threads.getState(thread_id);
  expect(JSON.parse(String(tasks[0]?.error))).toEqual({ name: "Error", message: '{"a":1}' });
});

test("an output with a key __proto__ fails the run", async () => {
  const graph = around(async () => ({ log: JSON.parse('[{"__proto__": {"a": 1}}]') as string[] }));
  const app = await serve({ langGraphs: await served({ broken: graph }) });
  const client = new Client({ apiUrl: app.url });
  const outcome = await client.runs.wait(null, "broken", { input: { log: [] }, raiseError: false });
  expect(outcome).toMatchObject({ __error__: { message: expect.stringContaining("__proto__") } });
});

test("a thread with next nodes is interrupted, also after an update or a copy", async () => {
  const graph = new StateGraph(State)
    .addNode("a", () => ({ log: ["a"] }))
    .addNode("b", () => ({ log: ["b"] }))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .compile();
  const app = await serve({ langGraphs: await served({ two: graph }) });
  const { threads, runs } = new Client({ apiUrl: app.url });
  const { thread_id } = await threads.create();
  await runs.wait(thread_id, "two", { input: { log: [] } });
  await threads.updateState(thread_id, { values: { log: ["mine"] }, asNode: "a" });
  const copy = await threads.copy(thread_id);
  for (const id of [thread_id, copy.thread_id]) {
    expect((await threads.getState(id)).next).toEqual(["b"]);
    expect((await threads.get(id)).status).toBe("interrupted");
  }
});

test("where a node failed is logged once, however deep it stands", async () => {
  const graph = around(async () => {
    throw new TypeError("no such thing");
  });
  const app = await serve({ langGraphs: await served({ broken: graph }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const outcome = await client.runs.wait(thread_id, "broken", { input: { log: [] }, raiseError: false });
  expect(outcome).toEqual({ __error__: { error: "TypeError", message: "no such thing" } });
  const lines = parsed(app.complaints);
  expect(lines).toEqual([
    expect.objectContaining({
      level: "warn",
      message: "a node failed",
      graph: "broken",
      node: "inner",
      thread_id,
      try: 1,
    }),
  ]);
  expect(lines[0]?.["ns"]).toMatch(/^outer:/);
  expect(lines[0]?.["error"]).toMatch(/^TypeError: no such thing\n.*failing\.test\.ts/s);
});

test("a failed task ends when its node throws, however long the stack then takes to read", async () => {
  const now = Date.now.bind(Date);
  let offset = 0;
  const spy = vi.spyOn(Date, "now").mockImplementation(() => now() + offset);
  onTestFinished(() => spy.mockRestore());
  const error = new TypeError("no such thing");
  const readStack = () => {
    offset += 60_000;
    return "TypeError: no such thing\n    at inner (/project/graph.ts:3:9)";
  };
  Object.defineProperty(error, "stack", { get: readStack });
  const graph = new StateGraph(State)
    .addNode("a", async () => {
      throw error;
    })
    .addEdge(START, "a")
    .compile();
  const app = await serve({ langGraphs: await served({ broken: graph }), stacks: true });
  const client = new Client({ apiUrl: app.url });
  const begin = Date.now();
  const ends: number[] = [];
  const stream = client.runs.stream(null, "broken", { input: { log: [] }, streamMode: "debug" });
  for await (const { event, data } of stream) {
    const { type, timestamp } = data as { type?: string; timestamp?: string };
    if (event === "debug" && type === "task_result") ends.push(Date.parse(timestamp ?? "") - begin);
  }
  expect(offset).toBeGreaterThan(0);
  expect(ends).toHaveLength(1);
  expect(ends[0]).toBeLessThan(60_000);
});

test.each([
  [
    "InvalidUpdateError",
    new StateGraph(Annotation.Root({ n: Annotation<number>() }))
      .addNode("a", () => ({ n: 1 }))
      .addNode("b", () => ({ n: 2 }))
      .addEdge(START, "a")
      .addEdge(START, "b")
      .compile(),
  ],
  [
    "GraphRecursionError",
    new StateGraph(Annotation.Root({ n: Annotation<number>() }))
      .addNode("a", () => ({ n: 1 }))
      .addEdge(START, "a")
      .addEdge("a", "a")
      .compile(),
  ],
] as const)("a run that fails with %s, which no node threw, is logged once", async (error, graph) => {
  const app = await serve({ langGraphs: await served({ broken: graph }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const outcome = await client.runs.wait(thread_id, "broken", { input: {}, raiseError: false });
  expect(outcome).toMatchObject({ __error__: { error } });
  expect(parsed(app.complaints)).toEqual([
    expect.objectContaining({
      level: "warn",
      message: "a run failed",
      graph: "broken",
      thread_id,
      error: expect.stringMatching(`^${error}: `),
    }),
  ]);
});

test("each try that failed is logged", async () => {
  let tries = 0;
  const graph = around(
    async () => {
      if (++tries < 3) throw new Error(`try ${tries}`);
      return { log: ["done"] };
    },
    { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false },
  );
  const app = await serve({ langGraphs: await served({ flaky: graph }) });
  const client = new Client({ apiUrl: app.url });
  expect(await client.runs.wait(null, "flaky", { input: { log: [] } })).toEqual({ log: ["done"] });
  expect(parsed(app.complaints).map((line) => line["try"])).toEqual([1, 2]);
});

test("a body that outlives its run, and throws, is not heard any more", async () => {
  const send = Actor.prototype.send;
  const late: unknown[] = [];
  const sent = vi.spyOn(Actor.prototype, "send").mockImplementation(function (this: AnyActor, event) {
    if (this.getSnapshot().status !== "active") late.push(event);
    send.call(this, event);
  });
  try {
    const begun = signal();
    const held = signal();
    const left = signal();
    const graph = around(async () => {
      begun.resolve();
      try {
        await held.promise;
        throw new Error("too late");
      } finally {
        left.resolve();
      }
    });
    const app = await serve({ langGraphs: await served({ deaf: graph }) });
    const client = new Client({ apiUrl: app.url });
    const { thread_id } = await client.threads.create();
    const run = await client.runs.create(thread_id, "deaf", { input: { log: [] } });
    await begun.promise;
    await client.runs.cancel(thread_id, run.run_id, true);
    held.resolve();
    await left.promise;
    // Its effects appear in the following turns.
    await client.runs.get(thread_id, run.run_id);
    expect(sent).toHaveBeenCalled();
    expect(late).toEqual([]);
    expect(app.complaints).toEqual([]);
  } finally {
    sent.mockRestore();
  }
});
