import { Annotation, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { served } from "./support.ts";

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

/** A grace period that no test can wait for. */
const NEVER = 3_600_000;

/** Returns a graph that computes its first step until it is cancelled; after that, it ends at once. */
type MakeGraph = (wait: () => Promise<void>) => unknown;

const withRouter: MakeGraph = (wait) =>
  new StateGraph(State)
    .addNode("a", () => ({ log: ["a"] }))
    .addConditionalEdges(START, async () => {
      await wait();
      return "a";
    }, ["a"])
    .compile();

const plain = new StateGraph(State)
  .addNode("a", () => ({ log: ["a"] }))
  .addEdge(START, "a")
  .compile();

const withFactory: MakeGraph =
  (wait) =>
  async (_config: object, { accessContext }: { readonly accessContext: string }) => {
    if (accessContext === "threads.create_run") await wait();
    return plain;
  };

const graphs = [
  ["a router at START", withRouter],
  ["the factory of the graph", withFactory],
] as const;

async function hosting(make: MakeGraph) {
  const started = latch();
  let hangs = true;
  const graph = make(async () => {
    if (!hangs) return;
    hangs = false;
    started.pass();
    await latch().passed;
  });
  const { url } = await serve({ langGraphs: await served({ g: graph }), limits: { grace: NEVER } });
  const client = new Client({ apiUrl: url });
  const { thread_id } = await client.threads.create();
  return { started, url, client, thread_id };
}

test.each(graphs)("a run is cancelled while %s hangs, and the thread is free", async (_, make) => {
  const { started, client, thread_id } = await hosting(make);
  const run = await client.runs.create(thread_id, "g", { input: { log: [] } });
  await started.passed;
  await client.runs.cancel(thread_id, run.run_id, true);
  expect((await client.runs.get(thread_id, run.run_id)).status).toBe("interrupted");
  expect((await client.threads.get(thread_id)).status).toBe("idle");
  expect(await client.runs.wait(thread_id, "g", { input: { log: [] } })).toEqual({ log: ["a"] });
});

test.each(graphs)("a run is superseded while %s hangs", async (_, make) => {
  const { started, client, thread_id } = await hosting(make);
  const run = await client.runs.create(thread_id, "g", { input: { log: [] } });
  await started.passed;
  const next = { input: { log: [] }, multitaskStrategy: "interrupt" } as const;
  expect(await client.runs.wait(thread_id, "g", next)).toEqual({ log: ["a"] });
  expect((await client.runs.get(thread_id, run.run_id)).status).toBe("interrupted");
});

test.each(graphs)("a run reaches its time limit while %s hangs", async (_, make) => {
  const { url, client, thread_id } = await hosting(make);
  const response = await fetch(`${url}/threads/${thread_id}/runs/wait`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ assistant_id: "g", input: { log: [] }, timeout_seconds: 0.05 }),
  });
  expect(await response.json()).toMatchObject({ __error__: { error: "RunTimeoutError" } });
  const [run] = await client.runs.list(thread_id);
  expect(run?.status).toBe("timeout");
});

test("the input of a run that is cancelled while a router works is kept, and a run without input continues", async () => {
  const { started, client, thread_id } = await hosting(withRouter);
  const run = await client.runs.create(thread_id, "g", { input: { log: ["mine"] } });
  await started.passed;
  await client.runs.cancel(thread_id, run.run_id, true);
  expect((await client.threads.getState(thread_id)).next).toEqual(["__start__"]);
  expect(await client.runs.wait(thread_id, "g", { input: null })).toEqual({ log: ["mine", "a"] });
});

test("a node of the root graph gets its signal at once, and what it returns after that is kept", async () => {
  const started = latch();
  const graph = new StateGraph(State)
    .addNode("a", async (_, { signal }: LangGraphRunnableConfig) => {
      await new Promise<void>((resolve) => {
        signal?.addEventListener("abort", () => resolve());
        started.pass();
      });
      return { log: ["cleaned up"] };
    })
    .addNode("b", () => ({ log: ["b"] }))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .compile();
  const { url } = await serve({ langGraphs: await served({ g: graph }), limits: { grace: NEVER } });
  const client = new Client({ apiUrl: url });
  const { thread_id } = await client.threads.create();
  const run = await client.runs.create(thread_id, "g", { input: { log: [] } });
  await started.passed;
  await client.runs.cancel(thread_id, run.run_id, true);
  expect((await client.runs.get(thread_id, run.run_id)).status).toBe("interrupted");
  expect(await client.runs.wait(thread_id, "g", { input: null })).toEqual({ log: ["cleaned up", "b"] });
});
