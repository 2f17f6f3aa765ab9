/**
 * `npm run soak [-- --runs N --batch N]`: performs many runs of several kinds on one server, then measures what they
 * leave behind. Memory may grow only by what LevelDB keeps for stored data, the disk only by stored data, and no
 * socket, timer or actor may remain. Exits with 1 if a check fails. Growth per run is only judged from {@link
 * MIN_JUDGED_RUNS} runs on.
 */
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PACKAGE_ROOT } from "../src/build/package-bundles.ts";
import { build } from "./build.ts";
import { removeOnExit, LoadProcess, ServerProcess } from "./child.ts";
import type { Job } from "./load/job.ts";
import { numberOf, readOptions } from "./options.ts";
import { residentOf } from "./proc.ts";
import { slope } from "./stats.ts";
import { indexBytes } from "./tables.ts";

const values = readOptions({
  runs: { type: "string", default: "200000" },
  batch: { type: "string", default: "5000" },
});
const runs = numberOf("runs", values.runs, { least: 100 });
const batch = Math.min(numberOf("batch", values.batch, { least: 10 }), Math.ceil(runs / 10));
const batches = Math.ceil(runs / batch);
/**
 * The number of measurements at the beginning that the fit leaves out: code, LevelDB's caches and files, and the
 * allocator's arenas still grow.
 */
const UNUSED_POINTS = Math.ceil(batches / 2);
/** Milliseconds without work after which a thread's actor is unloaded. */
const IDLE_MS = 1_000;
/** No heap memory may remain of a run; the limit is the uncertainty of the fitted slope. */
const MAX_HEAP_BYTES_PER_RUN = 20;
/** With fewer runs, most of the growth is compiled code and filling caches, so it is printed without a verdict. */
const MIN_JUDGED_RUNS = 100_000;
/**
 * Free gaps between the allocator's used blocks make memory vary by some megabytes, which this limit allows for
 * 100,000 runs.
 */
const MAX_UNEXPLAINED_BYTES_PER_RUN = 150;
const MAX_DISK_BYTES_PER_RUN = 4_000;

const input = { value: 1 };
const OF_ONE = JSON.stringify({ assistant_id: "one", input });
const OF_MANY = JSON.stringify({ assistant_id: "one", input, if_not_exists: "create" });
const OF_CHAT = JSON.stringify({
  assistant_id: "chat",
  input: { messages: [{ role: "user", content: "q".repeat(200) }] },
  stream_mode: ["updates"],
  multitask_strategy: "enqueue",
});

const built = await build();
const base = join(PACKAGE_ROOT, "dist", "bench-data");
mkdirSync(base, { recursive: true });
const directory = mkdtempSync(join(base, "soak-"));
removeOnExit(directory);
const load = await LoadProcess.start(built);
const server = await ServerProcess.start(join(built, "bench", "servers", "heddle.js"), [
  JSON.stringify({ data: directory, idle: IDLE_MS }),
]);

async function perform(job: Partial<Job> & Pick<Job, "paths" | "total">): Promise<readonly string[]> {
  const common = { host: "127.0.0.1", port: server.port, connections: 64, method: "POST" } as const;
  const result = await load.perform({ ...common, answer: "text", body: "{}", ...job });
  if (result.failures > 0) throw new Error(`${result.failures} requests failed: ${result.failure ?? "?"}`);
  return result.collected;
}

/**
 * Performs `count` runs: half of them on new threads, a quarter on 64 growing threads, and a quarter without a thread.
 */
async function oneBatch(count: number): Promise<void> {
  const half = Math.round(count / 2);
  const quarter = Math.round(count / 4);
  const fresh = await perform({ paths: ["/threads"], total: half, collect: "thread_id" });
  await perform({ paths: fresh.map((id) => `/threads/${id}/runs/wait`), total: half, body: OF_MANY });
  const growing = await perform({ paths: ["/threads"], total: 64, collect: "thread_id" });
  await perform({
    paths: growing.map((id) => `/threads/${id}/runs/stream`),
    total: quarter,
    body: OF_CHAT,
    answer: "events",
    sticky: true,
  });
  await perform({ paths: ["/runs/wait"], total: count - half - quarter, body: OF_ONE });
}

/**
 * The number of open sockets and pipes of the server. Files are not counted, because LevelDB opens and closes them as
 * it needs.
 */
function handles(): number {
  const folder = `/proc/${server.pid}/fd`;
  return readdirSync(folder).filter((name) => {
    try {
      return /^(socket|pipe):/.test(readlinkSync(join(folder, name)));
    } catch {
      return false;
    }
  }).length;
}

const bytesIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).reduce(
    (sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );

/**
 * Waits until no actor is in memory, at most 30 seconds, and returns the memory, handles and disk use of the server.
 */
async function measureWhenIdle() {
  const until = performance.now() + 30_000;
  while (((await server.stats()).live ?? 0) > 0 && performance.now() < until) await sleep(200);
  await sleep(2 * IDLE_MS);
  return { ...(await server.collect()), handles: handles(), disk: bytesIn(directory) };
}

interface Memory {
  readonly heap: number;
  /**
   * Bytes of anonymous memory that nothing known explains: neither V8's heap and buffers, nor LevelDB's cache, log and
   * table indexes.
   */
  readonly own: number;
  /** Bytes of the indexes and filters of LevelDB's tables in memory. They grow with the stored data. */
  readonly indexes: number;
  /** Bytes of mapped files: LevelDB's tables, and code. The kernel can drop them when it needs memory. */
  readonly mapped: number;
  readonly rss: number;
}

/** The memory of the server after a garbage collection. */
async function memory(): Promise<Memory> {
  const { rss, heap, reserved = 0, level = 0 } = await server.collect();
  const { anonymous, mapped } = residentOf(server.pid);
  const indexes = indexBytes(join(directory, "level"));
  return { heap, own: anonymous - reserved - level - indexes, indexes, mapped, rss };
}

const mebi = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);

let good = true;
function line(what: string, value: number, most: number, unit: string): void {
  const passed = value <= most;
  good &&= passed;
  print(passed ? "pass" : "FAIL", what, value, `${unit} (at most ${most.toLocaleString("en-US")})`);
}

/** Prints a figure in bytes per run. It counts as a check only from {@link MIN_JUDGED_RUNS} runs on. */
function lineOfRun(what: string, value: number, most: number): void {
  if (runs >= MIN_JUDGED_RUNS) return line(what, value, most, "bytes a run");
  print(
    "----",
    what,
    value,
    `bytes a run (not judged with fewer than ${MIN_JUDGED_RUNS.toLocaleString("en-US")} runs)`,
  );
}

const print = (verdict: string, what: string, value: number, rest: string): void =>
  void process.stdout.write(`${verdict}  ${what}: ${Math.round(value).toLocaleString("en-US")} ${rest}\n`);

try {
  await oneBatch(batch);
  const before = await measureWhenIdle();
  const began = performance.now();
  const points: (Memory & { readonly runs: number })[] = [];
  for (let i = 1; i < batches; i++) {
    await oneBatch(batch);
    const point = await memory();
    points.push({ runs: i * batch, ...point });
    const figures = Object.entries(point).map(([what, bytes]) => `${what} ${mebi(bytes)}`);
    process.stderr.write(
      `${((i + 1) * batch).toLocaleString("en-US")} runs, in MiB: ${figures.join(", ")}\n`,
    );
  }
  const seconds = (performance.now() - began) / 1000;
  const after = await measureWhenIdle();
  const warm = points.slice(UNUSED_POINTS);
  const made = (batches - 1) * batch;
  const last = points.at(-1);
  const text = `${made.toLocaleString("en-US")} runs in ${Math.round(seconds)} s, ${Math.round(made / seconds).toLocaleString("en-US")}/s; RSS ${mebi(after.rss)} MiB at the end, of it ${mebi(last?.mapped ?? 0)} mapped files, ${mebi(after.level ?? 0)} LevelDB's cache and log, ${mebi(last?.indexes ?? 0)} indexes of its tables`;
  process.stdout.write(`${text}\n`);
  const grown = (what: keyof Memory) => slope(warm.map((point) => [point.runs, point[what]]));
  lineOfRun("heap, second half", grown("heap"), MAX_HEAP_BYTES_PER_RUN);
  lineOfRun("memory that nothing explains, second half", grown("own"), MAX_UNEXPLAINED_BYTES_PER_RUN);
  lineOfRun("disk, growth", (after.disk - before.disk) / made, MAX_DISK_BYTES_PER_RUN);
  line("sockets and pipes left open", after.handles - before.handles, 0, "");
  line("timers left", after.timers - before.timers, 0, "");
  line("actors left", after.live ?? Number.NaN, 0, "");
} finally {
  await server.stop();
  load.stop();
}
process.exitCode = good ? 0 : 1;
