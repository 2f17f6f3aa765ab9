import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createApp } from "../../../src/app.ts";
import { packWriteBatch } from "../../../src/codec/value-encoding.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { systemScheduler } from "../../../src/platform/scheduler.ts";
import type { KeyValueStore, WriteOperation } from "../../../src/ports/key-value-store.ts";
import type { LogEntry, ShardLog } from "../../../src/ports/shard-log.ts";
import { LogApplier } from "../../../src/replication/log-applier.ts";
import { MemoryShardLog } from "../../../src/replication/memory-shard-log.ts";
import { ReplicatedKeyValueStore } from "../../../src/replication/replicated-key-value-store.ts";
import { MemoryKeyValueStore } from "../../../src/storage/memory-key-value-store.ts";
import { Client } from "../client.ts";
import { type Effect, Effects } from "../effects.ts";
import { chaos } from "../graphs.ts";
import type { Violation } from "../ledger.ts";
import { checkLogs } from "./log-check.ts";

/** The processes of the first owner, which is this process, and of the next one. */
const [FIRST, NEXT] = [process.pid, process.pid + 1];

let entries: readonly LogEntry[];
let effects: readonly Effect[];
beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), "heddle-log-check-"));
  const file = join(directory, "effects.jsonl");
  process.env["HEDDLE_CHAOS_EFFECTS"] = file;
  const log = new MemoryShardLog();
  const owned = { shard: 0, epoch: log.newEpoch(0) };
  const deps = { clock: systemClock, scheduler: systemScheduler, random: systemRandom() };
  const store = new ReplicatedKeyValueStore(new MemoryKeyValueStore(), log, owned, deps);
  const app = await createApp({ graphs: { chaos }, data: { kind: "key-value", store } });
  const client = new Client(app.address.port);
  const { json } = await client.json("POST", "/threads", {});
  const run = { assistant_id: "chaos", input: { kind: "work", pace: 1 } };
  await client.json("POST", `/threads/${(json as { thread_id: string }).thread_id}/runs/wait`, run);
  client.close();
  await app.close();
  entries = await log.read(0, 1, 1e9);
  const read = new Effects(file);
  read.read();
  effects = read.all;
  delete process.env["HEDDLE_CHAOS_EFFECTS"];
  rmSync(directory, { recursive: true });
});

async function violationsIn(
  all: readonly LogEntry[],
  begun: readonly Effect[],
  copies: readonly KeyValueStore[] = [],
): Promise<string[]> {
  const found: Violation[] = [];
  const owner = { node: 0, parent: 1, shard: 0 };
  await checkLogs({
    log: { read: async (_, from) => all.filter((_entry, i) => i >= from - 1) },
    shards: 1,
    copiesOf: async () => copies.map((store, i) => ({ node: `n${i}`, store })),
    effects: begun,
    owners: [
      { ...owner, pid: FIRST, epoch: 1 },
      { ...owner, pid: NEXT, epoch: 2 },
    ],
    isLingerOver: true,
    found: (violation) => found.push(violation),
  });
  return found.map(({ invariant, message }) => `${invariant}: ${message}`);
}

/** Entries with these epochs after all that there are. */
const more = (...added: readonly (readonly [epoch: number, ops: { key: string; value: null }[]])[]) => [
  ...entries,
  ...added.map(([epoch, ops], i) => ({
    seq: entries.length + 1 + i,
    epoch,
    batch: packWriteBatch(ops),
  })),
];
const change = [{ key: "no-such-key", value: null }];

test("a log that another owner goes on with is in order", async () => {
  expect(effects.map(({ node }) => node)).toEqual(["plan", "left", "right", "join"]);
  expect(await violationsIn(more([2, []], [2, change]), effects)).toEqual([]);
});

test("an entry of a former owner is found", async () => {
  const last = entries.length;
  expect(await violationsIn(more([2, []], [1, change]), effects)).toEqual([
    `zombie: shard 0: entry ${last + 2} is of epoch 1, after one of epoch 2`,
  ]);
});

test("an owner that begins with a change is found", async () => {
  expect(await violationsIn(more([2, change]), effects)).toEqual([
    `zombie: shard 0: epoch 2 begins at entry ${entries.length + 1} with a change`,
  ]);
});

test("a missing entry is found", async () => {
  const [added] = more([2, []]).slice(-1);
  const gap = [...entries, { ...added, seq: entries.length + 2 } as LogEntry];
  expect(await violationsIn(gap, effects)).toEqual([
    `log: shard 0: entry ${entries.length + 2} follows ${entries.length}`,
  ]);
});

test("a task that begins again is found if its result was in the log, and only then", async () => {
  const again = [...effects, ...effects.map((effect) => ({ ...effect, pid: NEXT }))];
  const found = await violationsIn(more([2, []]), again);
  expect(found).toHaveLength(effects.length);
  expect(found[0]).toMatch(
    /^I2: node plan of run \S+ ran again in epoch 2, although checkpoint \S+ .* was stored before epoch 2$/,
  );
  // The next owner has taken the shard over before the run began.
  const early = entries.map((entry, i) => ({ ...entry, epoch: i === 0 ? 1 : 2 }));
  const takeover = { seq: 2, epoch: 2, batch: packWriteBatch([]) };
  const shifted = [
    early[0] as LogEntry,
    takeover,
    ...early.slice(1).map((entry) => ({ ...entry, seq: entry.seq + 1 })),
  ];
  expect(await violationsIn(shifted, again)).toEqual([]);
});

test("a database of a node that has less than the log is in order; one that differs at its position, or has more, is found", async () => {
  const copyAt = async (seq: number, extra: readonly WriteOperation[] = []) => {
    const store = new MemoryKeyValueStore();
    await store.open();
    const log = { read: async (_: number, from: number) => entries.slice(from - 1, seq) };
    const applier = new LogApplier(store, log as unknown as ShardLog, 0);
    await applier.catchUp();
    if (extra.length > 0) await store.batch(extra, { sync: false });
    return store;
  };
  const stray = [{ key: "stray", value: Buffer.of(1) }];
  const ahead = await copyAt(entries.length);
  await new LogApplier(ahead, {} as unknown as ShardLog, 0).apply(entries.length + 1, 1, stray);
  const copies = [await copyAt(2), await copyAt(entries.length), await copyAt(3, stray), ahead];
  expect(await violationsIn(entries, effects, copies)).toEqual([
    "zombie: shard 0: the database of node n2 at entry 3 is not what the log makes",
    `zombie: shard 0: node n3 has entry ${entries.length + 1}, and the log ends at ${entries.length}`,
  ]);
});

test("effects of a process that has lost its shard count as before those of the next owner", async () => {
  const [one, ...rest] = effects as readonly [Effect, ...Effect[]];
  const other = { ...one, run: "another", task: "another", pid: NEXT };
  expect(await violationsIn(more([2, []]), [one, other, ...rest])).toEqual([]);
  expect(await violationsIn(more([2, []]), [one, { ...other, pid: FIRST }, ...rest])).toEqual([
    expect.stringContaining("began node left after run another had begun"),
  ]);
});
