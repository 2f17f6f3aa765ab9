import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { served } from "../langgraph/support.ts";
import { latch, unlessAborted } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { ShiftedTime } from "./support/shifted-time.ts";
import { aUuid, get, newThread, post, postJson } from "./support/wire.ts";

interface SlowestNode {
  readonly name: string;
  readonly task_id: string;
  readonly duration_ms: number;
}

/** The slowest node of the only run of a thread, as the list of its runs and the search of all runs show it. */
async function slowestOf(url: string, thread: string) {
  const [run] = (await (await get(`${url}/threads/${thread}/runs`)).json()) as {
    slowest_node?: SlowestNode;
  }[];
  const [found] = await postJson<{ slowest_node: SlowestNode | null }[]>(`${url}/runs/search`, {
    thread_id: thread,
  });
  expect(found?.slowest_node).toEqual(run?.slowest_node ?? null);
  return found?.slowest_node;
}

async function wait(url: string, assistant_id: string): Promise<string> {
  const thread = await newThread(url);
  await post(`${url}/threads/${thread}/runs/wait`, { assistant_id, input: {} });
  return thread;
}

const log = { log: list<string>() };

describe("the slowest node of a run", () => {
  test("is the one whose task took longest; within a subgraph, the node there", async () => {
    const time = new ShiftedTime();
    const work = (ms: number) => async () => {
      time.advance(ms);
      return { log: ["done"] };
    };
    const inner = graph({
      state: log,
      nodes: { fetch: work(1_000), parse: work(3_000) },
      edges: { start: "fetch", fetch: "parse" },
    });
    const outer = graph({
      state: log,
      nodes: { read: work(2_000), sub: inner, tell: work(10) },
      edges: { start: "read", read: "sub", sub: "tell" },
    });
    const { url } = await serve({ graphs: { outer }, ...time });
    const slowest = await slowestOf(url, await wait(url, "outer"));
    expect(slowest).toEqual({ name: "parse", task_id: aUuid, duration_ms: expect.any(Number) });
    expect(slowest?.duration_ms).toBeGreaterThanOrEqual(3_000);
    expect(slowest?.duration_ms).toBeLessThan(4_000);
  });

  test("is found in LangGraph.js graphs too", async () => {
    const time = new ShiftedTime();
    const State = Annotation.Root({ log: Annotation<string> });
    const hosted = new StateGraph(State)
      .addNode("read", () => ({ log: "read" }))
      .addNode("measure", () => {
        time.advance(4_000);
        return { log: "measured" };
      })
      .addEdge(START, "read")
      .addEdge("read", "measure")
      .compile();
    const { url } = await serve({ langGraphs: await served({ hosted }), ...time });
    expect(await slowestOf(url, await wait(url, "hosted"))).toMatchObject({ name: "measure" });
  });

  test("is none that ended in the run before, which asked a question in the same step", async () => {
    const time = new ShiftedTime();
    const State = Annotation.Root({ log: Annotation<string>({ reducer: (_, last) => last }) });
    const hosted = new StateGraph(State)
      .addNode("read", () => ({ log: "read" }))
      .addNode("ask", () => ({ log: String(interrupt("Go on?")) }))
      .addNode("measure", () => {
        time.advance(4_000);
        return { log: "measured" };
      })
      .addNode("tell", () => {
        time.advance(2_000);
        return { log: "told" };
      })
      .addEdge(START, "read")
      .addEdge(START, "ask")
      .addEdge(["read", "ask"], "measure")
      .addEdge("measure", "tell")
      .compile();
    const { url } = await serve({ langGraphs: await served({ hosted }), ...time });
    const thread = await wait(url, "hosted");
    await post(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "hosted",
      command: { resume: "yes" },
    });
    const [run] = await postJson<{ slowest_node: SlowestNode | null }[]>(`${url}/runs/search`, {
      thread_id: thread,
    });
    expect(run?.slowest_node).toMatchObject({ name: "measure" });
  });

  test("is not told where only one task has run: its time is that of the run", async () => {
    const time = new ShiftedTime();
    const only = graph({
      state: log,
      nodes: {
        go: async () => {
          time.advance(4_000);
          return { log: ["done"] };
        },
      },
      edges: { start: "go" },
    });
    const { url } = await serve({ graphs: { only }, ...time });
    expect(await slowestOf(url, await wait(url, "only"))).toBeNull();
  });

  test("is the one that was stopped with the run, if it took longest", async () => {
    const time = new ShiftedTime();
    const reached = latch();
    const held = graph({
      state: log,
      nodes: {
        begin: async () => {
          time.advance(500);
          return { log: ["begun"] };
        },
        hold: async (_, ctx) => {
          time.advance(2_000);
          reached.pass();
          await unlessAborted(new Promise(() => undefined), ctx.signal);
          return {};
        },
      },
      edges: { start: "begin", begin: "hold" },
    });
    const { url } = await serve({ graphs: { held }, ...time });
    const thread = await newThread(url);
    const { run_id } = await postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, {
      assistant_id: "held",
      input: {},
    });
    await reached.passed;
    await post(`${url}/threads/${thread}/runs/${run_id}/cancel?wait=true`);
    expect(await slowestOf(url, thread)).toMatchObject({ name: "hold" });
  });

  test("is that of all attempts", async () => {
    const time = new ShiftedTime();
    const reached = latch();
    const steps = () =>
      graph({
        state: log,
        nodes: {
          one: async () => {
            time.advance(1_000);
            return { log: ["one"] };
          },
          two: async () => {
            time.advance(10_000);
            return { log: ["two"] };
          },
          three: async (_, ctx) => {
            reached.pass();
            if (ctx.attempt === 1) await unlessAborted(new Promise(() => undefined), ctx.signal);
            return { log: ["three"] };
          },
          four: async () => ({ log: ["four"] }),
        },
        edges: { start: "one", one: "two", two: "three", three: "four" },
      });
    const data = await directory();
    const first = await serve({ graphs: { steps: steps() }, data, ...time });
    const thread = await newThread(first.url);
    await post(`${first.url}/threads/${thread}/runs`, { assistant_id: "steps", input: {} });
    await reached.passed;
    await first.close(0);
    const { url } = await serve({ graphs: { steps: steps() }, data, ...time });
    await expect.poll(() => postJson<object[]>(`${url}/runs/search`, { status: "success" })).toHaveLength(1);
    expect(await slowestOf(url, thread)).toMatchObject({ name: "two" });
  });
});
