import { deepEqual, equal, rejects } from "node:assert/strict";
import type { ShardSnapshot, ShardSnapshots } from "../ports/shard-snapshots.ts";
import { defineContract } from "./contract.ts";

/** The snapshots of a new cluster with at least two shards: 0 and 1. The checks access them as two different nodes. */
export interface ShardSnapshotsHarness {
  readonly snapshots: ShardSnapshots;
  /** The snapshots of the same cluster, as another node accesses them. */
  readonly other: ShardSnapshots;
}

const DELETED = { name: "ServiceError", code: "log.trimmed" };

async function* texts(...parts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield new TextEncoder().encode(part);
}

async function read(snapshots: ShardSnapshots, snapshot: ShardSnapshot | undefined): Promise<string[]> {
  const found: string[] = [];
  if (snapshot === undefined) return ["none"];
  for await (const part of snapshots.read(snapshot)) found.push(new TextDecoder().decode(part));
  return found;
}

const newest = async (snapshots: ShardSnapshots, shard: number): Promise<ShardSnapshot | undefined> =>
  (await snapshots.list(shard))[0];

/** Starts to store a snapshot. Resolves when its first part is stored; the second part follows when `finish` is called. */
async function begun(
  snapshots: ShardSnapshots,
  seq: number,
  shard = 0,
): Promise<{ readonly put: Promise<ShardSnapshot>; finish(): void }> {
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  let put: Promise<ShardSnapshot> | undefined;
  await new Promise<void>((resolve) => {
    async function* parts(): AsyncGenerator<Uint8Array> {
      yield* texts("first");
      resolve();
      await finished;
      yield* texts("second");
    }
    put = snapshots.put(shard, seq, parts());
  });
  return { put: put as Promise<ShardSnapshot>, finish };
}

/** The contract of {@link ShardSnapshots}. */
export const shardSnapshotsContract = defineContract<ShardSnapshotsHarness>({
  "a new cluster has no snapshots": async ({ snapshots }) => {
    equal(await newest(snapshots, 0), undefined);
    await snapshots.prune(0, 1);
  },

  "gives back what was put, through another node": async ({ snapshots, other }) => {
    const put = await snapshots.put(0, 7, texts("one", "", "three"));
    const { id: _, madeAt, ...others } = put;
    deepEqual(others, { shard: 0, seq: 7, parts: 3, bytes: 8 });
    equal(Number.isSafeInteger(madeAt), true);
    deepEqual(await newest(other, 0), put);
    deepEqual(await read(other, put), ["one", "", "three"]);
    equal(await newest(other, 1), undefined);
  },

  "keeps a snapshot without parts": async ({ snapshots }) => {
    const put = await snapshots.put(1, 1, texts());
    deepEqual(await newest(snapshots, 1), put);
    deepEqual(await read(snapshots, put), []);
  },

  "keeps parts of any bytes, of some megabytes": async ({ snapshots, other }) => {
    const part = Uint8Array.from({ length: 1024 * 1024 }, (_, i) => (i * 31) % 256);
    async function* parts(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 3; i++) yield part;
    }
    const put = await snapshots.put(0, 1, parts());
    let count = 0;
    for await (const found of other.read(put)) {
      equal(Buffer.compare(found, part), 0);
      count++;
    }
    equal(count, 3);
  },

  "the newest is the one with the highest position, in whatever order they are put": async ({
    snapshots,
  }) => {
    const second = await snapshots.put(0, 20, texts("b"));
    await snapshots.put(0, 10, texts("a"));
    deepEqual(await newest(snapshots, 0), second);
    const third = await snapshots.put(0, 30, texts("c"));
    deepEqual(await newest(snapshots, 0), third);
  },

  "all complete ones are listed, from the highest position to the lowest": async ({ snapshots, other }) => {
    const second = await snapshots.put(0, 20, texts("b"));
    const first = await snapshots.put(0, 10, texts("a"));
    const third = await other.put(0, 30, texts("c"));
    await snapshots.put(1, 40, texts("d"));
    deepEqual(await other.list(0), [third, second, first]);
  },

  "pruning keeps as many as it is told": async ({ snapshots, other }) => {
    const put: ShardSnapshot[] = [];
    for (let seq = 1; seq <= 4; seq++) put.push(await snapshots.put(0, seq, texts("a", "b")));
    await other.prune(0, 2);
    deepEqual(await snapshots.list(0), [put[3], put[2]]);
    deepEqual(await read(other, put[2]), ["a", "b"]);
    await other.prune(0, 3);
    equal((await snapshots.list(0)).length, 2);
  },

  "two nodes may put a snapshot at one position": async ({ snapshots, other }) => {
    await Promise.all([snapshots.put(0, 5, texts("a", "b")), other.put(0, 5, texts("a", "b"))]);
    await snapshots.prune(0, 1);
    deepEqual(await read(other, await newest(other, 0)), ["a", "b"]);
  },

  "is seen only when it is complete": async ({ snapshots, other }) => {
    const before = await snapshots.put(0, 1, texts("before"));
    const { put, finish } = await begun(snapshots, 2);
    deepEqual(await newest(other, 0), before);
    finish();
    const after = await put;
    deepEqual(await newest(other, 0), after);
    deepEqual(await read(other, after), ["first", "second"]);
  },

  "passes on an error of its source, and then there is no such snapshot": async ({ snapshots, other }) => {
    async function* parts(): AsyncGenerator<Uint8Array> {
      yield* texts("a");
      throw new Error("the copy cannot be read");
    }
    await rejects(snapshots.put(0, 1, parts()), /the copy cannot be read/);
    equal(await newest(other, 0), undefined);
  },

  "a new one ends those that are put at lower positions of the shard, and only those": async ({
    snapshots,
    other,
  }) => {
    const [late, same] = [await begun(snapshots, 1), await begun(snapshots, 2)];
    const elsewhere = await begun(snapshots, 1, 1);
    await other.put(0, 2, texts("new"));
    for (const { finish } of [late, same, elsewhere]) finish();
    await rejects(late.put, DELETED);
    deepEqual(await read(other, await same.put), ["first", "second"]);
    deepEqual(await read(other, await elsewhere.put), ["first", "second"]);
  },

  "pruning keeps the newest": async ({ snapshots, other }) => {
    const parts = Array.from({ length: 40 }, (_, i) => `part ${i}`);
    const old = await snapshots.put(0, 1, texts(...parts));
    const elsewhere = await snapshots.put(1, 1, texts("elsewhere"));
    const last = await snapshots.put(0, 2, texts(...parts));
    await other.prune(0, 1);
    await other.prune(0, 1);
    deepEqual(await newest(snapshots, 0), last);
    deepEqual(await read(snapshots, last), parts);
    deepEqual(await read(snapshots, elsewhere), ["elsewhere"]);
    await rejects(read(snapshots, old), DELETED);
  },

  "a reader whose snapshot is pruned gets an error, not a part of it": async ({ snapshots, other }) => {
    const old = await snapshots.put(0, 1, texts("a", "b", "c"));
    const reader = snapshots.read(old)[Symbol.asyncIterator]();
    await reader.next();
    await other.put(0, 2, texts("new"));
    await other.prune(0, 1);
    await rejects(async () => {
      while ((await reader.next()).done !== true);
    }, DELETED);
  },

  "pruning ends snapshots that are put below the newest, and only those": async ({ snapshots, other }) => {
    await other.put(0, 2, texts("new"));
    const [next, late] = [await begun(snapshots, 3), await begun(snapshots, 1)];
    await other.prune(0, 1);
    late.finish();
    next.finish();
    await rejects(late.put, DELETED);
    deepEqual(await read(other, await next.put), ["first", "second"]);
    deepEqual(await newest(other, 0), await next.put);
  },
});
