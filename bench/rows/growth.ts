import type { Server } from "../server.ts";
import { spread } from "../stats.ts";
import { warmUp } from "./heddle.ts";
import { makeThreads, measure, perform, withServer } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";

/**
 * The number of threads that grow together. With 40 threads, a window of ten runs on each is long enough to measure.
 */
const GROWING_THREADS = 40;
const WINDOW = 10;

const question = JSON.stringify({
  assistant_id: "chat",
  input: { messages: [{ role: "user", content: "q".repeat(200) }], topic: "t" },
  stream_mode: ["updates"],
});

interface Window {
  /** Average CPU seconds of a run. */
  readonly cpu: number;
  /** Average bytes that a run wrote to the storage. */
  readonly stored: number;
  readonly disk: number;
}

/**
 * The most runs on each thread in one job of the load process: the bench stops waiting for a job after some minutes,
 * and a peer takes half a second for each run.
 */
const RUNS_PER_JOB = 100;

async function runsOf(bench: Bench, server: Server, threads: readonly string[], each: number) {
  for (let left = each; left > 0; left -= RUNS_PER_JOB) {
    await perform(bench, server, {
      connections: threads.length,
      method: "POST",
      paths: threads.map((id) => `/threads/${id}/runs/stream`),
      total: threads.length * Math.min(left, RUNS_PER_JOB),
      sticky: true,
      body: question,
      answer: "events",
    });
  }
}

async function window(bench: Bench, server: Server, threads: readonly string[]): Promise<Window> {
  const before = await server.stats();
  const cpu = server.cpu();
  const io = server.io();
  await runsOf(bench, server, threads, WINDOW);
  const runs = threads.length * WINDOW;
  const used = server.cpu() - cpu;
  const disk = server.io().toDisk - io.toDisk;
  const after = await server.stats();
  return {
    cpu: used / runs,
    stored: ((after.storage?.bytes ?? 0) - (before.storage?.bytes ?? 0)) / runs,
    disk: disk / runs,
  };
}

/** The number of pairs of windows that are compared, because a compaction or a neighbour may disturb one of them. */
const PAIRS = 9;

/**
 * Compares threads that already have many runs with new threads, right after each other, so that a change of the
 * machine's speed affects both.
 */
class Comparison {
  readonly #bench: Bench;
  readonly #server: Server;
  readonly #threads: readonly string[];
  #done = 0;

  constructor(bench: Bench, server: Server, threads: readonly string[]) {
    this.#bench = bench;
    this.#server = server;
    this.#threads = threads;
  }

  /**
   * Measures {@link PAIRS} pairs of windows, each of {@link WINDOW} runs on each thread: the first window of new
   * threads, then the next window of the growing threads, which in the first pair ends with run `run`. Returns the
   * medians of growing divided by new, for CPU and bytes, and the windows of the first pair.
   */
  async at(run: number) {
    const bench = this.#bench;
    await runsOf(bench, this.#server, this.#threads, run - WINDOW - this.#done);
    this.#done = run - WINDOW + PAIRS * WINDOW;
    const pairs: { readonly first: Window; readonly later: Window }[] = [];
    for (let i = 0; i < PAIRS; i++) {
      const fresh = await makeThreads(bench, this.#server, this.#threads.length);
      const first = await window(bench, this.#server, fresh);
      pairs.push({ first, later: await window(bench, this.#server, this.#threads) });
    }
    const ratio = (figure: keyof Window) =>
      spread(pairs.map((p) => p.later[figure] / p.first[figure])).median;
    const [{ first, later }] = pairs as [(typeof pairs)[0]];
    return { first, later, cpu: ratio("cpu"), stored: ratio("stored") };
  }
}

/** Average CPU time, in microseconds, of a request that reads one small key of the state. */
async function selectCost(bench: Bench, server: Server, threads: readonly string[]): Promise<number> {
  const total = Math.max(threads.length, Math.round(8_000 * bench.scale));
  const request = {
    connections: threads.length,
    method: "GET",
    paths: threads.map((id) => `/threads/${id}/state?select=values.topic`),
    total,
    answer: "text",
  } as const;
  await perform(bench, server, { ...request, total: threads.length * 4 });
  const cpu = server.cpu();
  await perform(bench, server, request);
  return ((server.cpu() - cpu) / total) * 1e6;
}

const growth: Row = {
  name: "growth",
  what: `runs 1 to 1,000 on each of ${GROWING_THREADS} threads, two messages of 200 characters a run, stream_mode updates; ${PAIRS} windows of ${WINDOW} runs from 91, 491 and 991 on, each beside the first window of new threads`,
  target: "run 500 and run 1,000 within 1.3 of run 1, in CPU and in bytes",
  goals: (["cpu_500", "cpu_1000", "bytes_500", "bytes_1000"] as const).map((figure) => ({
    figure,
    most: 1.3,
  })),
  // The official server polls every half second for the end of a stream, so 500 runs would take five minutes. It is
  // only measured at run 100.
  peer: { share: 0.1, rounds: 1 },
  run: (bench) =>
    withServer(bench.heddle(), async (server): Promise<Figures> => {
      const side = Math.max(4, Math.round(GROWING_THREADS * bench.share));
      const work = bench.scale / bench.share;
      const middle = Math.max(2 * WINDOW, Math.round(100 * work));
      const later = Math.max(middle + WINDOW, Math.round(500 * work));
      // The code is optimised first. Otherwise run 1 would be slow because of unoptimised code, and the growth would
      // seem smaller than it is.
      for (let i = 0; i < (bench.share < 1 ? 1 : 6); i++) {
        await runsOf(bench, server, await makeThreads(bench, server, side), WINDOW);
      }
      const threads = await makeThreads(bench, server, side);
      const compared = new Comparison(bench, server, threads);
      const hundred = await compared.at(middle);
      const figures = { cpu_us: hundred.first.cpu * 1e6, cpu_100: hundred.cpu };
      if (bench.share < 1) return { ...figures, select_us: await selectCost(bench, server, threads) };
      const fiveHundred = await compared.at(later);
      const select_us = await selectCost(bench, server, threads);
      const thousand = await compared.at(2 * later);
      return {
        ...figures,
        select_us,
        cpu_500: fiveHundred.cpu,
        cpu_1000: thousand.cpu,
        bytes_1: hundred.first.stored,
        bytes_100: hundred.stored,
        bytes_500: fiveHundred.stored,
        bytes_1000: thousand.stored,
        disk_bytes: thousand.later.disk,
      };
    }),
};

/** A row that starts runs on new threads, while the storage also holds `threads` idle threads. */
function idleThreadsRow(name: string, threads: number, more: Partial<Row>): Row {
  return {
    name,
    what: `runs/wait of a one-node graph, 64 clients, a new thread each time, with ${threads.toLocaleString("en-US")} threads stored`,
    run: (bench) =>
      withServer(bench.heddle(), async (server): Promise<Figures> => {
        await warmUp(bench, server);
        await makeThreads(bench, server, Math.max(100, Math.round(threads * bench.scale)));
        const ids = await makeThreads(bench, server, Math.max(64, Math.round(6_000 * bench.scale)));
        const request = {
          connections: 64,
          method: "POST",
          paths: ids.map((id) => `/threads/${id}/runs/wait`),
          total: ids.length,
          body: JSON.stringify({ assistant_id: "one", input: { value: 1 } }),
          answer: "text",
        } as const;
        return (await measure(bench, server, request)).figures;
      }),
    ...more,
  };
}

/** Rows whose figures must not grow with the length or the number of threads. */
export const growthRows: readonly Row[] = [
  growth,
  idleThreadsRow("stored-1k", 1_000, {}),
  idleThreadsRow("stored-100k", 100_000, {
    target: "within 1.3 of 1,000 threads",
    goals: (["cpu_us", "p50_ms"] as const).map((figure) => ({ figure, to: "stored-1k", most: 1.3 })),
    against: [
      { row: "stored-1k", figure: "cpu_us" },
      { row: "stored-1k", figure: "p50_ms" },
    ],
  }),
];
