import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../server.ts";
import { spread } from "../stats.ts";
import { makeThreads, perform, withServer } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";

/** Milliseconds without work after which a thread's actor is unloaded, in the rows `idle` and `idle-machines`. */
const IDLE_MS = 500;

/** The number of starts of which the median is taken, because the time of a start varies. */
const STARTS = 5;

/** The most threads that the rows `idle` and `idle-machines` create in one job of the load process. */
const MAX_THREADS_PER_JOB = 10_000;

/** Waits until no actor is in memory, at most a minute, and returns the server's memory after a garbage collection. */
async function memoryWhenIdle(server: Server) {
  const deadline = performance.now() + 60_000;
  while (((await server.stats()).live ?? 0) > 0 && performance.now() < deadline) await sleep(100);
  await sleep(2 * IDLE_MS);
  return server.collect();
}

const idle = (name: string, graph: string, what: string): Row => ({
  name,
  rounds: 1,
  what: `100,000 ${what}, left alone until no actor lives; then a restart on that directory`,
  target: "under 1 KB a thread, ready in under 1 s after a restart",
  goals: [
    { figure: "heap_bytes", most: 1_000 },
    { figure: "restart_ms", most: 1_000 },
  ],
  run: async (bench) => {
    const data = bench.newData();
    const count = Math.max(200, Math.round(100_000 * bench.scale));
    // In several jobs: on a slow machine, a single one would take longer than the bench waits for a job.
    const fill = async (server: Server, threads: number) => {
      for (let left = threads; left > 0; left -= MAX_THREADS_PER_JOB)
        await fillPart(server, Math.min(left, MAX_THREADS_PER_JOB));
    };
    const fillPart = async (server: Server, threads: number) => {
      const ids = await makeThreads(bench, server, threads);
      await perform(bench, server, {
        connections: 64,
        method: "POST",
        paths: ids.map((id) => `/threads/${id}/runs/wait`),
        total: threads,
        body: JSON.stringify({ assistant_id: graph, input: { value: 1 } }),
        answer: "text",
      });
    };
    const figures = await withServer(bench.heddle({ data, idle: IDLE_MS }), async (server) => {
      await fill(server, Math.ceil(count / 10));
      const before = await memoryWhenIdle(server);
      await fill(server, count);
      const after = await memoryWhenIdle(server);
      return {
        heap_bytes: (after.heap - before.heap) / count,
        rss_bytes: (after.rss - before.rss) / count,
        live: after.live ?? Number.NaN,
      };
    });
    // Alternately on an empty and on a full directory, so that a change of the machine's speed affects both.
    const [empty, full]: [number[], number[]] = [[], []];
    for (let i = Math.max(1, Math.round(STARTS * bench.scale)); i > 0; i--) {
      empty.push(await bench.start());
      full.push(await bench.start(data));
    }
    return { ...figures, empty_ms: spread(empty).median, restart_ms: spread(full).median };
  },
});

const cold: Row = {
  name: "cold-start",
  peer: { share: 1 / STARTS, rounds: 3, there: { p50_ms: 2_800 } },
  what: `heddle start on an empty directory, built JavaScript, from the process's start to the first /ok; ${STARTS} times, one after the other`,
  target: "under 400 ms",
  goals: [{ figure: "p50_ms", most: 400 }],
  run: async (bench) => {
    const took: number[] = [];
    for (let i = Math.max(1, Math.round(STARTS * bench.scale)); i > 0; i--) took.push(await bench.start());
    return { p50_ms: spread(took).median };
  },
};

/** The number of runs that are acknowledged and still in progress or queued when the server is killed. */
const UNFINISHED_RUNS = 200;
/** Seconds after the restart within which each of the {@link UNFINISHED_RUNS} must have ended. */
const SETTLE_SECONDS = 20;

const BUSY = 30;

const acknowledged: Row = {
  name: "ack-busy-node",
  what: `POST runs of a node that computes for 300 ms, one client, ${BUSY} times, each once the run before has ended: the acknowledgement`,
  target: "under 20 ms",
  goals: [{ figure: "p50_ms", most: 20 }],
  run: (bench) =>
    withServer(bench.heddle(), async (server): Promise<Figures> => {
      const took: number[] = [];
      for (const id of await makeThreads(bench, server, Math.max(3, Math.round(BUSY * bench.scale)))) {
        const path = `/threads/${id}/runs`;
        const body = JSON.stringify({ assistant_id: "busy", input: {} });
        const request = { connections: 1, method: "POST", total: 1, body, answer: "text" } as const;
        took.push((await perform(bench, server, { ...request, paths: [path] })).latency.p50);
        while ((await statesOf(server, [id]))[0] !== "success") await sleep(20);
      }
      return { p50_ms: spread(took).median };
    }),
};

const kill: Row = {
  name: "kill-200",
  what: `${UNFINISHED_RUNS} background runs of 200 ms, kill -9 once all are acknowledged, a restart on what is left; after ${SETTLE_SECONDS} s`,
  target: "0 lost, 0 stuck",
  goals: [
    { figure: "lost", most: 0 },
    { figure: "stuck", most: 0 },
  ],
  peer: { share: 1, rounds: 1 },
  run: async (bench) => {
    const data = bench.newData();
    const ids = await withKilled(bench, data);
    return withServer(bench.heddle({ data }), async (server): Promise<Figures> => {
      const began = performance.now();
      let states = await statesOf(server, ids);
      while (
        states.some((state) => state !== "success") &&
        performance.now() - began < SETTLE_SECONDS * 1000
      ) {
        await sleep(200);
        states = await statesOf(server, ids);
      }
      const lost = states.filter((state) => state === undefined).length;
      const good = states.filter((state) => state === "success").length;
      return { lost, stuck: UNFINISHED_RUNS - lost - good, seconds: (performance.now() - began) / 1000 };
    });
  },
};

/** Creates threads with one acknowledged run each, kills the server, and returns the ids of the threads. */
async function withKilled(bench: Bench, data: string): Promise<readonly string[]> {
  const server = await bench.heddle({ data });
  try {
    const ids = await makeThreads(bench, server, UNFINISHED_RUNS);
    await perform(bench, server, {
      connections: 64,
      method: "POST",
      paths: ids.map((id) => `/threads/${id}/runs`),
      total: UNFINISHED_RUNS,
      body: JSON.stringify({ assistant_id: "slow", input: { value: 1 } }),
      answer: "text",
    });
    return ids;
  } finally {
    await server.kill();
  }
}

/** Returns the status of each thread's run, or undefined if the server does not know the run any more. */
function statesOf(server: Server, threads: readonly string[]): Promise<(string | undefined)[]> {
  return Promise.all(
    threads.map(async (id) => {
      const answer = await fetch(`http://127.0.0.1:${server.port}/threads/${id}/runs`);
      const runs = answer.ok ? ((await answer.json()) as { status: string }[]) : [];
      return runs[0]?.status;
    }),
  );
}

export const specialRows: readonly Row[] = [
  idle("idle", "one", "threads with one run each"),
  idle("idle-machines", "waiting", "machines that wait for an event or a timer of three days"),
  cold,
  acknowledged,
  kill,
];
