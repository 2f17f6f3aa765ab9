import type { Server } from "../server.ts";
import { questionInput } from "../question-input.ts";
import type { InvocationJob } from "../servers/memorysaver.ts";
import { body } from "./heddle.ts";
import { makeThreads, measure, perform, withServer, type Request } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";

/**
 * Rows that compare a LangGraph.js graph served by Heddle with the same graph called in the process, with LangGraph's
 * `MemorySaver`.
 */

/** The number of threads that have a run in progress at the same time. */
const CONCURRENT_THREADS = 8;
/** The number of threads that each get many runs in the rows that measure CPU. */
const GROWING_THREADS = 4;
/**
 * The number of threads that each get many runs in the row that counts bytes. Few are enough, because bytes do not
 * vary.
 */
const BYTE_COUNT_THREADS = 2;
const WINDOW = 10;
const WARM = 400;
const FRESH = 1_500;

const scaled = (count: number, { scale }: Bench) => Math.max(CONCURRENT_THREADS, Math.round(count * scale));

/** A job of `runs` runs on each thread. */
function asking(threads: readonly string[], runs: number): Request {
  const sticky = runs > 1;
  return {
    connections: Math.min(CONCURRENT_THREADS, threads.length),
    method: "POST",
    paths: threads.map((id) => `/threads/${id}/runs/wait`),
    total: threads.length * runs,
    sticky,
    body: body("ten", questionInput),
    answer: "text",
  };
}

async function warm(bench: Bench, server: Server): Promise<void> {
  await perform(bench, server, asking(await makeThreads(bench, server, scaled(WARM, bench)), 1));
}

const withHeddle = (bench: Bench, use: (server: Server) => Promise<Figures>) =>
  withServer(bench.heddle({ langGraph: true }), async (server) => {
    await warm(bench, server);
    return use(server);
  });

/** Calls LangGraph.js without Heddle: `before` unmeasured runs on each thread, then `runs` that are measured. */
const withLangGraph = (bench: Bench, threads: number, before: number, runs: number): Promise<Figures> =>
  withServer(bench.control("memorysaver"), async (server) => {
    const ids = (some: string, count: number) => Array.from({ length: count }, (_, i) => `${some} ${i}`);
    const given = { clients: CONCURRENT_THREADS, last: true } as const;
    await server.perform({
      ...given,
      threads: ids("warm", scaled(WARM, bench)),
      runs: 1,
    } satisfies InvocationJob);
    const asked = { ...given, threads: ids("measured", threads) };
    if (before > 0) await server.perform({ ...asked, runs: before, last: false } satisfies InvocationJob);
    const cpu = server.cpu();
    const start = performance.now();
    await server.perform({ ...asked, runs } satisfies InvocationJob);
    const seconds = (performance.now() - start) / 1000;
    const operations = threads * runs;
    return { per_s: operations / seconds, cpu_us: ((server.cpu() - cpu) / operations) * 1e6 };
  });

/** The number of runs of a thread before the window of runs around its n-th run. */
const beforeRun = (n: number, { scale }: Bench) => Math.max(WINDOW, Math.round(n * scale)) - WINDOW / 2;

async function window(bench: Bench, server: Server, threads: readonly string[]): Promise<Figures> {
  return (await measure(bench, server, asking(threads, WINDOW))).figures;
}

const figures = ["cpu_us"] as const;

export const hostedRows: readonly Row[] = [
  {
    name: "memorysaver-10",
    what: `a LangGraph.js graph of ten nodes called in process, with MemorySaver: a new thread each time, ${CONCURRENT_THREADS} at once`,
    run: (bench) => withLangGraph(bench, scaled(FRESH, bench), 0, 1),
  },
  {
    name: "hosted-10",
    what: `the same graph hosted: runs/wait, a new thread each time, ${CONCURRENT_THREADS} clients`,
    target: "within 1.5 times the CPU in process",
    goals: [{ figure: "cpu_us", to: "memorysaver-10", most: 1.5 }],
    against: figures.map((figure) => ({ row: "memorysaver-10", figure })),
    run: (bench) =>
      withHeddle(bench, async (server) => {
        const threads = await makeThreads(bench, server, scaled(FRESH, bench));
        return (await measure(bench, server, asking(threads, 1))).figures;
      }),
  },
  {
    name: "memorysaver-run-100",
    what: `memorysaver-10, ${WINDOW} runs around the 100th of each of ${GROWING_THREADS} threads`,
    run: (bench) => withLangGraph(bench, GROWING_THREADS, beforeRun(100, bench), WINDOW),
  },
  {
    name: "hosted-run-100",
    what: `hosted-10, ${WINDOW} runs around the 100th of each of ${GROWING_THREADS} threads`,
    target: "no more CPU than in process",
    goals: [{ figure: "cpu_us", to: "memorysaver-run-100", most: 1 }],
    against: figures.map((figure) => ({ row: "memorysaver-run-100", figure })),
    run: (bench) =>
      withHeddle(bench, async (server) => {
        const threads = await makeThreads(bench, server, GROWING_THREADS);
        await perform(bench, server, asking(threads, beforeRun(100, bench)));
        return window(bench, server, threads);
      }),
  },
  {
    name: "hosted-bytes",
    rounds: 1,
    what: `hosted-10, bytes handed to storage for a run: ${WINDOW} runs around the 10th and the 400th of each of ${BYTE_COUNT_THREADS} threads`,
    target: "run 400 within 1.2 of run 10",
    goals: [{ figure: "bytes_400", most: 1.2 }],
    run: (bench) =>
      withHeddle(bench, async (server) => {
        const threads = await makeThreads(bench, server, BYTE_COUNT_THREADS);
        const [first, last] = [beforeRun(10, { ...bench, scale: 1 }), beforeRun(400, bench)];
        await perform(bench, server, asking(threads, first));
        const { stored_bytes: early = Number.NaN } = await window(bench, server, threads);
        if (last > first + WINDOW) await perform(bench, server, asking(threads, last - first - WINDOW));
        const { stored_bytes: late = Number.NaN, cpu_us = Number.NaN } = await window(bench, server, threads);
        return { cpu_us, bytes_10: early, bytes_400: late / early };
      }),
  },
];
