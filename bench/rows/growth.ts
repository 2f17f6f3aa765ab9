import type { Server } from "../server.ts";
import { warmUp } from "./heddle.ts";
import { makeThreads, measure, perform, withServer } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";

/** Threads that grow side by side, so that a window of ten runs holds enough work to be measured. */
const GROWING = 40;
const WINDOW = 10;

const question = JSON.stringify({
  assistant_id: "chat",
  input: { messages: [{ role: "user", content: "q".repeat(200) }], topic: "t" },
  stream_mode: ["updates"],
});

interface Window {
  /** Seconds of CPU for one run. */
  readonly cpu: number;
  /** Bytes handed to storage for one run. */
  readonly stored: number;
  readonly disk: number;
}

/** Runs of one job to the load process, which has some minutes for it: a peer takes half a second for each. */
const AT_ONCE = 100;

async function runsOf(bench: Bench, server: Server, threads: readonly string[], each: number) {
  for (let left = each; left > 0; left -= AT_ONCE) {
    await perform(bench, server, {
      connections: threads.length,
      method: "POST",
      paths: threads.map((id) => `/threads/${id}/runs/stream`),
      total: threads.length * Math.min(left, AT_ONCE),
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

/** CPU of reading one small key of the state, for one request. */
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
  what: `runs 1 to 1,000 on each of ${GROWING} threads, two messages of 200 characters a run, stream_mode updates; windows of ${WINDOW} runs`,
  target: "run 500 and run 1,000 within 1.3 of run 1, in CPU and in bytes",
  goals: (["cpu_500", "cpu_1000", "bytes_500", "bytes_1000"] as const).map((figure) => ({
    figure,
    most: 1.3,
  })),
  rounds: 1,
  // Its streams end by a poll of half a second, so it goes to run 100 only: 500 runs take five minutes.
  peer: { share: 0.1, rounds: 1 },
  run: (bench) =>
    withServer(bench.heddle(), async (server): Promise<Figures> => {
      const side = Math.max(4, Math.round(GROWING * bench.share));
      const work = bench.scale / bench.share;
      const middle = Math.max(2 * WINDOW, Math.round(100 * work));
      const later = Math.max(middle + WINDOW, Math.round(500 * work));
      // Hot code first: else run 1 is dear for another reason, and growth hides behind it.
      for (let i = 0; i < (bench.share < 1 ? 1 : 6); i++) {
        await runsOf(bench, server, await makeThreads(bench, server, side), WINDOW);
      }
      const threads = await makeThreads(bench, server, side);
      const first = await window(bench, server, threads);
      await runsOf(bench, server, threads, middle - 2 * WINDOW);
      const hundred = await window(bench, server, threads);
      const figures = { cpu_us: first.cpu * 1e6, cpu_100: hundred.cpu / first.cpu };
      if (bench.share < 1) return { ...figures, select_us: await selectCost(bench, server, threads) };
      await runsOf(bench, server, threads, later - middle - WINDOW);
      const fiveHundred = await window(bench, server, threads);
      const select_us = await selectCost(bench, server, threads);
      await runsOf(bench, server, threads, later - WINDOW);
      const thousand = await window(bench, server, threads);
      return {
        ...figures,
        select_us,
        cpu_500: fiveHundred.cpu / first.cpu,
        cpu_1000: thousand.cpu / first.cpu,
        bytes_1: first.stored,
        bytes_100: hundred.stored / first.stored,
        bytes_500: fiveHundred.stored / first.stored,
        bytes_1000: thousand.stored / first.stored,
        disk_bytes: thousand.disk,
      };
    }),
};

/** Runs on new threads, beside so many others that rest. */
function stored(name: string, threads: number, more: Partial<Row>): Row {
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
    rounds: 1,
    ...more,
  };
}

/** What must not grow. */
export const growths: readonly Row[] = [
  growth,
  stored("stored-1k", 1_000, {}),
  stored("stored-100k", 100_000, {
    target: "within 1.3 of 1,000 threads",
    goals: (["cpu_us", "p50_ms"] as const).map((figure) => ({ figure, to: "stored-1k", most: 1.3 })),
    against: [
      { row: "stored-1k", figure: "cpu_us" },
      { row: "stored-1k", figure: "p50_ms" },
    ],
  }),
];
