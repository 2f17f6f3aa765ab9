import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerProcess } from "../child.ts";
import { Connection } from "../load/connection.ts";
import { TextReceiver } from "../load/receivers.ts";
import { cpuOf, ioOf } from "../proc.ts";
import { makeThreads, perform, withServer } from "./measure.ts";
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

async function runsOf(bench: Bench, server: ServerProcess, threads: readonly string[], each: number) {
  await perform(bench, server, {
    connections: threads.length,
    method: "POST",
    paths: threads.map((id) => `/threads/${id}/runs/stream`),
    total: threads.length * each,
    sticky: true,
    body: question,
    answer: "events",
  });
}

async function window(bench: Bench, server: ServerProcess, threads: readonly string[]): Promise<Window> {
  const before = await server.stats();
  const cpu = cpuOf(server.pid);
  const io = ioOf(server.pid);
  await runsOf(bench, server, threads, WINDOW);
  const runs = threads.length * WINDOW;
  const used = cpuOf(server.pid) - cpu;
  const disk = ioOf(server.pid).toDisk - io.toDisk;
  const after = await server.stats();
  return {
    cpu: used / runs,
    stored: ((after.storage?.bytes ?? 0) - (before.storage?.bytes ?? 0)) / runs,
    disk: disk / runs,
  };
}

/** CPU of reading one small key of the state, for one request. */
async function selectCost(bench: Bench, server: ServerProcess, threads: readonly string[]): Promise<number> {
  const total = Math.max(threads.length, Math.round(8_000 * bench.scale));
  const request = {
    connections: threads.length,
    method: "GET",
    paths: threads.map((id) => `/threads/${id}/state?select=values.topic`),
    total,
    answer: "text",
  } as const;
  await perform(bench, server, { ...request, total: threads.length * 4 });
  const cpu = cpuOf(server.pid);
  await perform(bench, server, request);
  return ((cpuOf(server.pid) - cpu) / total) * 1e6;
}

const growth: Row = {
  name: "growth",
  what: `runs 1 to 500 on each of ${GROWING} threads, two messages of 200 characters a run, stream_mode updates; windows of ${WINDOW} runs`,
  target: "run 500 within 1.3 of run 1, in CPU and in bytes",
  run: (bench) =>
    withServer(bench.heddle(), async (server): Promise<Figures> => {
      const last = Math.max(3 * WINDOW, Math.round(500 * bench.scale));
      const middle = Math.max(2 * WINDOW, Math.round(100 * bench.scale));
      // Hot code first: else run 1 is dear for another reason, and growth hides behind it.
      for (let i = 0; i < 6; i++) {
        await runsOf(bench, server, await makeThreads(bench, server, GROWING), WINDOW);
      }
      const threads = await makeThreads(bench, server, GROWING);
      const first = await window(bench, server, threads);
      await runsOf(bench, server, threads, middle - 2 * WINDOW);
      const hundred = await window(bench, server, threads);
      await runsOf(bench, server, threads, last - middle - WINDOW);
      const fiveHundred = await window(bench, server, threads);
      return {
        cpu_us: first.cpu * 1e6,
        cpu_100: hundred.cpu / first.cpu,
        cpu_500: fiveHundred.cpu / first.cpu,
        bytes_1: first.stored,
        bytes_100: hundred.stored / first.stored,
        bytes_500: fiveHundred.stored / first.stored,
        disk_bytes: fiveHundred.disk,
        select_us: await selectCost(bench, server, threads),
      };
    }),
};

/** Milliseconds after which a resting thread's actor goes, in the row `idle`. */
const IDLE = 500;

/** Waits until no actor lives, and answers the memory then. */
async function rested(server: ServerProcess) {
  const deadline = performance.now() + 60_000;
  while (((await server.stats()).live ?? 0) > 0 && performance.now() < deadline) await sleep(100);
  await sleep(2 * IDLE);
  return server.collect();
}

const idle: Row = {
  name: "idle",
  what: "10,000 threads with one run each, left alone until no actor lives; then a restart on that directory",
  target: "under 1 KB a thread, ready in under 1 s after a restart",
  run: async (bench) => {
    const data = mkdtempSync(join(bench.directory, "idle-"));
    const count = Math.max(200, Math.round(10_000 * bench.scale));
    const fill = async (server: ServerProcess, threads: number) => {
      const ids = await makeThreads(bench, server, threads);
      await perform(bench, server, {
        connections: 64,
        method: "POST",
        paths: ids.map((id) => `/threads/${id}/runs/wait`),
        total: threads,
        body: JSON.stringify({ assistant_id: "one", input: { value: 1 } }),
        answer: "text",
      });
    };
    try {
      const figures = await withServer(bench.heddle({ data, idle: IDLE }), async (server) => {
        await fill(server, Math.ceil(count / 5));
        const before = await rested(server);
        await fill(server, count);
        const after = await rested(server);
        return {
          heap_bytes: (after.heap - before.heap) / count,
          rss_bytes: (after.rss - before.rss) / count,
          live: after.live ?? Number.NaN,
        };
      });
      return { ...figures, restart_ms: await startToOk(bench, data) };
    } finally {
      rmSync(data, { recursive: true, force: true });
    }
  },
};

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Milliseconds from the start of the command line's process to its first `/ok`. */
async function startToOk(bench: Bench, data: string): Promise<number> {
  const port = await freePort();
  const began = performance.now();
  const child = spawn(
    process.execPath,
    [
      join(bench.built, "src", "cli.js"),
      "start",
      "--config",
      join(bench.built, "bench", "cold.json"),
      "--data",
      data,
      "--port",
      String(port),
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  try {
    while (performance.now() - began < 20_000) {
      if (child.exitCode !== null) throw new Error(`heddle start ended with ${child.exitCode}: ${said}`);
      if (await answers(port)) return performance.now() - began;
      await sleep(2);
    }
    throw new Error(`no /ok within 20 s: ${said}`);
  } finally {
    child.kill("SIGKILL");
  }
}

/** Asks `/ok` once, over a plain connection: a client that has to be loaded first would be measured too. */
async function answers(port: number): Promise<boolean> {
  try {
    const connection = await Connection.open("127.0.0.1", port, Connection.buffer());
    const status = await new Promise<number>((resolve) => {
      const receiver: TextReceiver = new TextReceiver((lost) =>
        resolve(lost === undefined ? receiver.status : 0),
      );
      connection.send(Buffer.from(`GET /ok HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`), receiver);
    });
    connection.close();
    return status === 200;
  } catch {
    // Not listening yet.
    return false;
  }
}

const cold: Row = {
  name: "cold-start",
  what: "heddle start on an empty directory, built JavaScript, from the process's start to the first /ok",
  target: "under 400 ms",
  run: async (bench) => {
    const data = mkdtempSync(join(bench.directory, "cold-"));
    try {
      return { p50_ms: await startToOk(bench, data) };
    } finally {
      rmSync(data, { recursive: true, force: true });
    }
  },
};

export const special: readonly Row[] = [growth, idle, cold];
