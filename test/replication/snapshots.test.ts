import { describe, expect, test } from "vitest";
import type { KeyValueStore } from "../../src/ports/key-value-store.ts";
import type { ShardLog } from "../../src/ports/shard-log.ts";
import type { ShardSnapshot, ShardSnapshots } from "../../src/ports/shard-snapshots.ts";
import { MemoryShardLog } from "../../src/replication/memory-shard-log.ts";
import { MemoryShardSnapshots } from "../../src/replication/memory-shard-snapshots.ts";
import { readSnapshotParts } from "../../src/replication/shard-snapshot-parts.ts";
import { ReplicatedKeyValueStore } from "../../src/replication/replicated-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedScheduler } from "../simulation/scheduler.ts";
import { Crash, crashingLog, crashingSnapshots, CrashingStore, DamagedSnapshots } from "./crashing-node.ts";

const SHARD = 2;
const LOG_BYTES = 2_000;
const MIB = 1024 * 1024;
const MINUTE = 60_000;
const VALUE = "x".repeat(200);
/** Many times what the database holds: the log is trimmed several times. */
const MANY = 60;
/** Enough for three snapshots. */
const WORK = 30;

/** What the nodes of a cluster share, and their time. */
class Cluster {
  readonly clock = new SimulatedClock();
  readonly scheduler = new SimulatedScheduler(this.clock);
  readonly log = new MemoryShardLog();
  readonly snapshots = new DamagedSnapshots(new MemoryShardSnapshots(this.clock));
  readonly warnings: string[] = [];
  /** The kinds of work of which progress was reported. */
  readonly worked = new Set<string>();

  list(): Promise<readonly ShardSnapshot[]> {
    return this.snapshots.list(SHARD);
  }

  /** The store of a node that has just got the shard. */
  own(
    inner: MemoryKeyValueStore,
    { logBytes, crash }: { readonly logBytes?: number | undefined; readonly crash?: Crash } = {
      logBytes: LOG_BYTES,
    },
  ): ReplicatedKeyValueStore {
    const epoch = this.log.newEpoch(SHARD);
    const log: ShardLog = crash === undefined ? this.log : crashingLog(this.log, crash);
    const store: ShardSnapshots =
      crash === undefined ? this.snapshots : crashingSnapshots(this.snapshots, crash);
    const { clock, scheduler } = this;
    const warn = (message: string, fields: object = {}): void =>
      void this.warnings.push(`${message} ${JSON.stringify(fields)}`);
    const logger = { debug: () => {}, info: () => {}, warn, error: warn };
    return new ReplicatedKeyValueStore(
      inner,
      log,
      { shard: SHARD, epoch },
      {
        clock,
        scheduler,
        random: { bytes: (count) => new Uint8Array(count), float: () => 0.5 },
        snapshots: { store, logBytes, logger },
        onProgress: ({ work }) => this.worked.add(work),
      },
    );
  }

  async opened(inner = new MemoryKeyValueStore()): Promise<ReplicatedKeyValueStore> {
    const store = this.own(inner);
    await store.open();
    return store;
  }

  /** Writes to some keys, one after the other, and deletes others. All that is due is done after each write. */
  async write(store: KeyValueStore, from: number, count: number): Promise<void> {
    for (let i = from; i < from + count; i++) {
      await store.batch(batchOf(i), { sync: true });
      await this.scheduler.settle();
    }
  }
}

const keyOf = (i: number): string => `w/${String(i).padStart(4, "0")}`;
/** Writes an entry, and deletes the tenth one before it. */
const batchOf = (i: number) => [
  { key: keyOf(i), value: Buffer.from(`${i} ${VALUE}`) },
  { key: keyOf(i - 10), value: null },
];
/** The entries after this many writes. */
const expected = (count: number): string[] => {
  const first = Math.max(0, count - 10);
  return Array.from({ length: count - first }, (_, i) => `${keyOf(first + i)}=${first + i}`);
};

async function contents(store: KeyValueStore): Promise<string[]> {
  const found: string[] = [];
  for await (const [key, value] of store.entries({ gte: "w/", lt: "w~" }))
    found.push(`${key}=${value.toString().split(" ")[0]}`);
  return found;
}

describe("making snapshots", () => {
  test("one follows after each so many bytes of log; two are kept, and the log is trimmed behind the older one", async () => {
    const cluster = new Cluster();
    const store = await cluster.opened();
    await cluster.write(store, 0, 5);
    expect(await cluster.list()).toEqual([]);
    await cluster.write(store, 5, 10);
    const [first] = await cluster.list();
    expect(await cluster.list()).toHaveLength(1);
    expect((await cluster.log.extent(SHARD, 1)).first).toBe(1);
    await cluster.write(store, 15, MANY - 15);
    const [newest, older] = await cluster.list();
    expect(await cluster.list()).toHaveLength(2);
    expect(older?.seq).toBeGreaterThan(first?.seq ?? Infinity);
    const { first: begin, last, bytes } = await cluster.log.extent(SHARD, 1);
    expect([begin, last]).toEqual([older?.seq, MANY + 1]);
    expect(bytes).toBeLessThan(3 * LOG_BYTES);
    expect(store.metrics).toEqual({
      position: last,
      log: { entries: last - begin + 1, bytes },
      snapshot: newest,
      snapshotsMade: expect.any(Number),
      snapshotsFailed: 0,
    });
    expect(cluster.warnings).toEqual([]);

    const next = await cluster.opened();
    expect(await contents(next)).toEqual(expected(MANY));
  });

  test("one follows an hour after the last, if there is 1 MiB of new log", async () => {
    const cluster = new Cluster();
    const store = cluster.own(new MemoryKeyValueStore(), {});
    await store.open();
    await cluster.scheduler.advance(61 * MINUTE);
    for (let i = 0; i < 100; i++) await store.batch([{ key: "!check", value: null }]);
    await cluster.scheduler.advance(120 * MINUTE);
    expect(await cluster.list()).toEqual([]);
    await store.batch([{ key: "a", value: Buffer.alloc(MIB) }]);
    await cluster.scheduler.advance(2 * MINUTE);
    expect(await cluster.list()).toHaveLength(1);
    await cluster.scheduler.advance(90 * MINUTE);
    await store.batch([{ key: "a", value: Buffer.alloc(MIB) }]);
    await cluster.scheduler.advance(2 * MINUTE);
    expect(await cluster.list()).toHaveLength(2);
    await store.batch([{ key: "a", value: Buffer.alloc(MIB) }]);
    await cluster.scheduler.advance(50 * MINUTE);
    const before = await cluster.list();
    await cluster.scheduler.advance(15 * MINUTE);
    expect((await cluster.list())[1]).toEqual(before[0]);
    await store.close();
  });

  test("writes go on meanwhile; the snapshot has the database as it was at its position", async () => {
    const cluster = new Cluster();
    const store = await cluster.opened();
    let isHeld = true;
    let go = (): void => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    cluster.snapshots.beforePart = async () => {
      if (isHeld) await held;
    };
    // Larger than a part, so that it is not read at once.
    const large = Array.from({ length: 5 }, (_, i) => ({ key: `large/${i}`, value: Buffer.alloc(MIB) }));
    await store.batch(large);
    await cluster.scheduler.settle();
    await cluster.write(store, 0, 30);
    expect(await cluster.list()).toEqual([]);
    isHeld = false;
    go();
    await cluster.scheduler.settle();
    const [newest, older] = await cluster.list();
    expect([older?.seq, newest?.seq]).toEqual([2, 32]);
    const keys: string[] = [];
    for await (const [key] of readSnapshotParts(cluster.snapshots.read(older as ShardSnapshot)))
      keys.push(key);
    expect(keys).toEqual([...large.map(({ key }) => key), "~applied"]);
    cluster.snapshots.torn.add(newest?.id ?? "");
    const next = await cluster.opened();
    expect(await contents(next)).toEqual(expected(30));
  });

  test.each(["stops", "has lost the shard"])(
    "a node that %s gives it up, and waits for nothing",
    async (why) => {
      const cluster = new Cluster();
      const store = await cluster.opened();
      let go = (): void => undefined;
      const held = new Promise<void>((resolve) => (go = resolve));
      cluster.snapshots.beforePart = () => held;
      await cluster.write(store, 0, 15);
      if (why === "stops") await store.close();
      else {
        cluster.log.newEpoch(SHARD);
        await expect(store.batch(batchOf(15))).rejects.toMatchObject({ code: "log.fenced" });
      }
      go();
      await cluster.scheduler.advance(10 * MINUTE);
      expect(await cluster.list()).toEqual([]);
      expect(cluster.warnings).toEqual([]);
      expect(store.metrics?.snapshotsFailed).toBe(0);
    },
  );

  test("one that fails is logged, counted, and tried again", async () => {
    const cluster = new Cluster();
    const store = await cluster.opened();
    cluster.snapshots.beforePart = () => Promise.reject(new Error("the database is gone"));
    await cluster.write(store, 0, 15);
    expect(store.metrics).toMatchObject({ snapshotsMade: 0, snapshotsFailed: 1 });
    expect(cluster.warnings).toEqual([expect.stringContaining("the database is gone")]);
    cluster.snapshots.beforePart = async () => undefined;
    await cluster.scheduler.advance(MINUTE);
    expect(store.metrics).toMatchObject({ snapshotsMade: 1, snapshotsFailed: 1 });
    expect(await cluster.list()).toHaveLength(1);
  });
});

describe("starting", () => {
  /** A cluster whose log has been trimmed, and a database that has only its first entries. */
  async function trimmed(): Promise<{ readonly cluster: Cluster; readonly old: CrashingStore }> {
    const cluster = new Cluster();
    const old = new CrashingStore();
    const first = await cluster.opened(old);
    await cluster.write(first, 0, 4);
    await first.close();
    const second = await cluster.opened();
    await cluster.write(second, 4, MANY - 4);
    await second.close();
    expect((await cluster.log.extent(SHARD, 1)).first).toBeGreaterThan(10);
    return { cluster, old };
  }

  test("a database that is older than the log is replaced by a snapshot: what was deleted since is gone", async () => {
    const { cluster, old } = await trimmed();
    expect(await contents(await cluster.opened(old))).toEqual(expected(MANY));
    expect(cluster.snapshots.reads).toHaveLength(1);
  });

  test("its progress is reported, since the process is killed if there is none for long", async () => {
    const { cluster, old } = await trimmed();
    cluster.worked.clear();
    await cluster.opened(old);
    expect([...cluster.worked]).toEqual(["filling the database from a snapshot", "applying the log"]);
  });

  test("a database that the log reaches back to needs no snapshot", async () => {
    const cluster = new Cluster();
    const inner = new MemoryKeyValueStore();
    const first = await cluster.opened(inner);
    await cluster.write(first, 0, MANY);
    await first.close();
    const second = await cluster.opened();
    await cluster.write(second, MANY, 5);
    await second.close();
    const reads = cluster.snapshots.reads.length;
    expect(await contents(await cluster.opened(inner))).toEqual(expected(MANY + 5));
    expect(cluster.snapshots.reads).toHaveLength(reads);
  });

  test.each(["torn", "changed"] as const)(
    "a snapshot that is %s is not used, but the one before",
    async (how) => {
      const { cluster, old } = await trimmed();
      const [newest, older] = await cluster.list();
      cluster.snapshots[how].add(newest?.id ?? "");
      expect(await contents(await cluster.opened(old))).toEqual(expected(MANY));
      expect(cluster.snapshots.reads).toEqual([newest?.id, older?.id]);
      expect(cluster.warnings).toEqual([expect.stringContaining("a snapshot cannot be used")]);
    },
  );

  test("without a usable snapshot, the log is used if it has all entries", async () => {
    const cluster = new Cluster();
    const store = await cluster.opened();
    await cluster.write(store, 0, 15);
    const [only] = await cluster.list();
    cluster.snapshots.torn.add(only?.id ?? "");
    expect(await contents(await cluster.opened())).toEqual(expected(15));
    expect(cluster.snapshots.reads).toEqual([only?.id]);
  });

  test("otherwise the start is refused with the reasons, and the database stays as it is", async () => {
    const { cluster, old } = await trimmed();
    const [newest, older] = await cluster.list();
    cluster.snapshots.torn.add(newest?.id ?? "");
    cluster.snapshots.changed.add(older?.id ?? "");
    for (const inner of [old, new CrashingStore()]) {
      await expect(cluster.opened(inner)).rejects.toMatchObject({
        code: "journal.damaged",
        message: expect.stringMatching(
          /log of shard 2 has been trimmed.*has no part.*wrong checksum.*backup/,
        ),
      });
    }
    await old.open();
    expect(await contents(old)).toEqual(expected(4));
  });

  test("a database that is ahead of the log is refused, not replaced", async () => {
    const { cluster } = await trimmed();
    const inner = new MemoryKeyValueStore();
    const store = await cluster.opened(inner);
    await cluster.write(store, MANY, 3);
    await store.close();
    const restored = new Cluster();
    for (let i = 0; i < 20; i++) restored.log.newEpoch(SHARD);
    const other = await restored.opened();
    await restored.write(other, 0, 20);
    await expect(restored.opened(inner)).rejects.toMatchObject({
      code: "journal.damaged",
      message: expect.stringContaining("has lost entries"),
    });
    await inner.open();
    expect(await contents(inner)).toEqual(expected(MANY + 3));
  });

  test("a node that ends at any step of it begins anew", async () => {
    const { cluster, old } = await trimmed();
    let steps = 0;
    for (; ; steps++) {
      const inner = new CrashingStore();
      await inner.open();
      await old.open();
      for await (const [key, value] of old.entries({ gte: "", lt: "\x7f" }))
        await inner.batch([{ key, value }], { sync: false });
      const crash = new Crash(steps);
      inner.crash = crash;
      let isOpen = false;
      void cluster
        .own(inner, { logBytes: LOG_BYTES, crash })
        .open()
        .then(() => (isOpen = true));
      await cluster.scheduler.settle();
      expect(isOpen || crash.hasHappened).toBe(true);
      inner.crash = new Crash(Infinity);
      const next = await cluster.opened(inner);
      expect(await contents(next)).toEqual(expected(MANY));
      await next.close();
      if (isOpen) break;
    }
    expect(steps).toBeGreaterThan(15);
  });
});

test("a node that ends at any step of its work loses nothing that it has acknowledged", async () => {
  let steps = 0;
  for (; ; steps++) {
    const cluster = new Cluster();
    const inner = new CrashingStore();
    const crash = new Crash(steps);
    const store = cluster.own(inner, { logBytes: LOG_BYTES, crash });
    let acknowledged = 0;
    const work = async (): Promise<void> => {
      await store.open();
      for (; acknowledged < WORK; acknowledged++) await store.batch(batchOf(acknowledged));
    };
    void work();
    await cluster.scheduler.settle();
    expect(crash.hasHappened || acknowledged === WORK).toBe(true);

    const second = await cluster.opened(inner);
    const found = await contents(second);
    // The log may have one more entry than was acknowledged.
    const written = found.at(-1)?.startsWith(keyOf(acknowledged)) === true ? acknowledged + 1 : acknowledged;
    expect(found).toEqual(expected(written));
    await cluster.write(second, written, 12);
    expect(await cluster.list()).not.toEqual([]);
    const third = await cluster.opened();
    expect(await contents(third)).toEqual(expected(written + 12));
    if (!crash.hasHappened) break;
  }
  expect(steps).toBeGreaterThan(100);
});
