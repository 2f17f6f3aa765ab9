/**
 * `tsx bench/spike/run.ts`: measures in a short time what it costs to pass work to a worker thread, and prints tables.
 * The README has the results.
 */
import { readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { build } from "../build.ts";
import { LoadProcess, ServerProcess } from "../child.ts";
import type { Job } from "../load/job.ts";
import { Probe } from "../probe.ts";
import { cpuOf } from "../proc.ts";
import { spread } from "../stats.ts";

const table = (head: readonly string[], lines: readonly (readonly string[])[]) =>
  `${[head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n\n`;

const built = await build();
const rounds = Number(process.argv[2] ?? 3);

const { nodeWorker } = (await import(pathToFileURL(`${built}/bench/spike/node-worker.js`).href)) as {
  nodeWorker(): Promise<string[][]>;
};
process.stdout.write(
  table(
    ["Node call", "at once", "per s", "p50 us", "p99 us", "this thread's CPU us", "other threads' CPU us"],
    await nodeWorker(),
  ),
);

const load = await LoadProcess.start(built);

/** CPU seconds that the main thread of a process has used so far. */
const mainCpu = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "latin1").split(" ", 1)[0]) / 1e9;

async function http(way: string, work: number, job: Omit<Job, "host" | "port">, each: "requests" | "events") {
  const server = await ServerProcess.start(`${built}/bench/spike/shard.js`, [way, String(work)]);
  try {
    const full = { host: "127.0.0.1", port: server.port, ...job };
    await load.perform({ ...full, total: Math.ceil(job.total / 4) });
    const cpu = cpuOf(server.pid);
    const main = mainCpu(server.pid);
    const probe = await Probe.start(server.port);
    const result = await load.perform(full);
    const ok = probe.stop();
    const count = result[each];
    const used = cpuOf(server.pid) - cpu;
    const front = mainCpu(server.pid) - main;
    if (result.failures > 0) throw new Error(result.failure ?? "failed");
    return {
      rate: count / result.seconds,
      p99: result.latency.p99,
      front: (front / count) * 1e6,
      all: (used / count) * 1e6,
      ok: ok.p99,
      threads: readdirSync(`/proc/${server.pid}/task`).length,
    };
  } finally {
    await server.stop();
  }
}

async function compare(
  title: string,
  work: number,
  job: Omit<Job, "host" | "port">,
  each: "requests" | "events",
) {
  const ways = ["one", "port", "port2", "ring"] as const;
  const told = new Map<string, Awaited<ReturnType<typeof http>>[]>(ways.map((way) => [way, []]));
  for (let round = 0; round < rounds; round++) {
    for (const way of ways) told.get(way)?.push(await http(way, work, job, each));
  }
  return ways.map((way) => {
    const of = (figure: "rate" | "p99" | "front" | "all" | "ok") =>
      spread((told.get(way) ?? []).map((one) => one[figure])).median;
    return [
      title,
      way,
      Math.round(of("rate")).toLocaleString("en-US"),
      of("p99").toFixed(2),
      of("front").toFixed(2),
      of("all").toFixed(2),
      of("ok").toFixed(1),
    ];
  });
}

const request = { method: "POST", body: '{"assistant_id":"one","input":{"value":1}}' } as const;
const lines = [
  ...(await compare(
    "256 clients, no work",
    0,
    { ...request, connections: 256, paths: ["/0"], total: 40_000, answer: "text" },
    "requests",
  )),
  ...(await compare(
    "256 clients, 100 us of work",
    50_000,
    { ...request, connections: 256, paths: ["/0"], total: 20_000, answer: "text" },
    "requests",
  )),
  ...(await compare(
    "256 clients, 300 us of work",
    150_000,
    { ...request, connections: 256, paths: ["/0"], total: 8_000, answer: "text" },
    "requests",
  )),
  ...(await compare(
    "1 client, no work",
    0,
    { ...request, connections: 1, paths: ["/0"], total: 10_000, answer: "text" },
    "requests",
  )),
  ...(await compare(
    "events of 100 bytes, 1 stream",
    0,
    { ...request, connections: 1, paths: ["/200000"], total: 4, answer: "events" },
    "events",
  )),
  ...(await compare(
    "events of 100 bytes, 100 streams x 200",
    0,
    { ...request, connections: 100, paths: ["/200"], total: 1_000, answer: "events" },
    "events",
  )),
];
process.stdout.write(
  table(
    ["HTTP, then a shard", "way", "per s", "p99 ms", "HTTP thread's CPU us", "all CPU us", "/ok p99 ms"],
    lines,
  ),
);
load.stop();
process.exit(0);
