/**
 * `npm run soak [-- --runs N --batch N]`: so many runs of several kinds against one server, then what is left of them. Of memory
 * only that may grow which LevelDB keeps of what is stored, the disk only by what is kept, and no socket, timer or actor may
 * stay behind. Ends with 1 when a line fails. Fewer than 100,000 runs say nothing of what one leaves: see {@link TELLING}.
 */
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PACKAGE_ROOT } from "../src/build/bundles.ts";
import { build } from "./build.ts";
import { leaveNothing, LoadProcess, ServerProcess } from "./child.ts";
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
/** Of the batches, those after which everything is warm: code, LevelDB's caches and files, the allocator's arenas. */
const WARM = Math.ceil(batches / 2);
/** Milliseconds until a resting thread's actor is let go. */
const IDLE = 1_000;
/** What may be left of a run, in bytes: nothing in the heap, where the fit itself is that uncertain; on the disk what is kept. */
const MOST_HEAP = 20;
/** With fewer runs the growth is that of compiled code and of caches that fill: it is told, not judged. */
const TELLING = 100_000;
/** The allocator holds on to pieces between others: some megabytes come and go, and 100,000 runs may leave so many of them. */
const MOST_OWN = 150;
const MOST_DISK = 4_000;

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
leaveNothing(directory);
const load = await LoadProcess.start(built);
const server = await ServerProcess.start(join(built, "bench", "servers", "heddle.js"), [
  JSON.stringify({ data: directory, idle: IDLE }),
]);

async function perform(job: Partial<Job> & Pick<Job, "paths" | "total">): Promise<readonly string[]> {
  const common = { host: "127.0.0.1", port: server.port, connections: 64, method: "POST" } as const;
  const result = await load.perform({ ...common, answer: "text", body: "{}", ...job });
  if (result.failures > 0) throw new Error(`${result.failures} requests failed: ${result.failure ?? "?"}`);
  return result.collected;
}

/** Half on threads of their own, a quarter on threads that grow, a quarter without a thread. */
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

/** Sockets and pipes of the server; files are LevelDB's to open and close. */
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

/** Waits until no actor lives, and answers what is left. */
async function rested() {
  const until = performance.now() + 30_000;
  while (((await server.stats()).live ?? 0) > 0 && performance.now() < until) await sleep(200);
  await sleep(2 * IDLE);
  return { ...(await server.collect()), handles: handles(), disk: bytesIn(directory) };
}

interface Memory {
  readonly heap: number;
  /** What nothing explains: neither V8's heap and buffers, nor LevelDB's cache, log and tables' indexes. */
  readonly own: number;
  /** The tables' indexes, which LevelDB keeps: they grow with what is stored. */
  readonly indexes: number;
  /** Tables that LevelDB has mapped, and code: the kernel's, to be taken back. */
  readonly mapped: number;
  readonly rss: number;
}

/** What the server takes, after a garbage collection. */
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
  say(passed ? "pass" : "FAIL", what, value, `${unit} (at most ${most.toLocaleString("en-US")})`);
}

/** The same of what a run leaves. */
function lineOfRun(what: string, value: number, most: number): void {
  if (runs >= TELLING) return line(what, value, most, "bytes a run");
  say(
    "----",
    what,
    value,
    `bytes a run (not judged with fewer than ${TELLING.toLocaleString("en-US")} runs)`,
  );
}

const say = (verdict: string, what: string, value: number, rest: string): void =>
  void process.stdout.write(`${verdict}  ${what}: ${Math.round(value).toLocaleString("en-US")} ${rest}\n`);

try {
  await oneBatch(batch);
  const before = await rested();
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
  const after = await rested();
  const warm = points.slice(WARM);
  const made = (batches - 1) * batch;
  const last = points.at(-1);
  const text = `${made.toLocaleString("en-US")} runs in ${Math.round(seconds)} s, ${Math.round(made / seconds).toLocaleString("en-US")}/s; RSS ${mebi(after.rss)} MiB at the end, of it ${mebi(last?.mapped ?? 0)} mapped files, ${mebi(after.level ?? 0)} LevelDB's cache and log, ${mebi(last?.indexes ?? 0)} indexes of its tables`;
  process.stdout.write(`${text}\n`);
  const grown = (what: keyof Memory) => slope(warm.map((point) => [point.runs, point[what]]));
  lineOfRun("heap, second half", grown("heap"), MOST_HEAP);
  lineOfRun("memory that nothing explains, second half", grown("own"), MOST_OWN);
  lineOfRun("disk, growth", (after.disk - before.disk) / made, MOST_DISK);
  line("sockets and pipes left open", after.handles - before.handles, 0, "");
  line("timers left", after.timers - before.timers, 0, "");
  line("actors left", after.live ?? Number.NaN, 0, "");
} finally {
  await server.stop();
  load.stop();
}
process.exitCode = good ? 0 : 1;
