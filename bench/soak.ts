/**
 * `npm run soak [-- --runs N --batch N]`: so many runs of several kinds against one server, then what is left of them. RSS and
 * heap must not grow once it is warm, the disk only by what is kept, and no socket, timer or actor may stay behind.
 * Ends with 1 when a line fails.
 */
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { build, ROOT } from "./build.ts";
import { LoadProcess, ServerProcess } from "./child.ts";
import type { Job } from "./load/job.ts";
import { slope } from "./stats.ts";

const { values } = parseArgs({
  options: { runs: { type: "string", default: "200000" }, batch: { type: "string", default: "5000" } },
});
const runs = Number(values.runs);
const batch = Math.min(Number(values.batch), Math.ceil(runs / 10));
const batches = Math.ceil(runs / batch);
/** Of the batches, those after which everything is warm: code, LevelDB's caches and files, the allocator's arenas. */
const WARM = Math.ceil(batches / 2);
/** Milliseconds until a resting thread's actor is let go. */
const IDLE = 1_000;
/** What may be left of a run in memory, in bytes: its share of what LevelDB keeps of its files, and of fragmentation. */
const MOST_RSS = 400;
const MOST_HEAP = 60;
const MOST_DISK = 12_000;

const input = { value: 1 };
const OF_ONE = JSON.stringify({ assistant_id: "one", input });
const OF_MANY = JSON.stringify({ assistant_id: "one", input, if_not_exists: "create" });
const OF_CHAT = JSON.stringify({
  assistant_id: "chat",
  input: { messages: [{ role: "user", content: "q".repeat(200) }] },
  stream_mode: ["updates"],
  multitask_strategy: "enqueue",
});

const built = build();
const base = join(ROOT, "dist", "bench-data");
mkdirSync(base, { recursive: true });
const directory = mkdtempSync(join(base, "soak-"));
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

let good = true;
function line(what: string, value: number, most: number, unit: string): void {
  const passed = value <= most;
  good &&= passed;
  process.stdout.write(
    `${passed ? "pass" : "FAIL"}  ${what}: ${Math.round(value).toLocaleString("en-US")} ${unit} (at most ${most.toLocaleString("en-US")})\n`,
  );
}

try {
  await oneBatch(batch);
  const before = await rested();
  const began = performance.now();
  const points: { readonly runs: number; readonly rss: number; readonly heap: number }[] = [];
  for (let i = 1; i < batches; i++) {
    await oneBatch(batch);
    const { rss, heap } = await server.collect();
    points.push({ runs: i * batch, rss, heap });
    process.stderr.write(
      `${((i + 1) * batch).toLocaleString("en-US")} runs, RSS ${Math.round(rss / 2 ** 20)} MiB, heap ${(heap / 2 ** 20).toFixed(1)} MiB\n`,
    );
  }
  const seconds = (performance.now() - began) / 1000;
  const after = await rested();
  const warm = points.slice(WARM);
  const made = (batches - 1) * batch;
  const text = `${made.toLocaleString("en-US")} runs in ${Math.round(seconds)} s, ${Math.round(made / seconds).toLocaleString("en-US")}/s; RSS ${Math.round(after.rss / 2 ** 20)} MiB at the end`;
  process.stdout.write(`${text}\n`);
  line("RSS after warm-up, slope", slope(warm.map(({ runs, rss }) => [runs, rss])), MOST_RSS, "bytes a run");
  line(
    "heap after warm-up, slope",
    slope(warm.map(({ runs, heap }) => [runs, heap])),
    MOST_HEAP,
    "bytes a run",
  );
  line("disk, growth", (after.disk - before.disk) / made, MOST_DISK, "bytes a run");
  line("sockets and pipes left open", after.handles - before.handles, 0, "");
  line("timers left", after.timers - before.timers, 0, "");
  line("actors left", after.live ?? Number.NaN, 0, "");
} finally {
  await server.stop();
  load.stop();
  rmSync(directory, { recursive: true, force: true });
}
process.exitCode = good ? 0 : 1;
