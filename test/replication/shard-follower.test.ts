import { expect, onTestFinished, test } from "vitest";
import { packWriteBatch } from "../../src/codec/value-encoding.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { ShardLog } from "../../src/ports/shard-log.ts";
import { MemoryShardLog } from "../../src/replication/memory-shard-log.ts";
import { MemoryShardSnapshots } from "../../src/replication/memory-shard-snapshots.ts";
import { ShardFollower } from "../../src/replication/shard-follower.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { FaultyShardLog } from "./faulty-shard-log.ts";

const SHARD = 1;

/** A log with an owner, and a follower with a store of its own, for which no time passes in a pause. */
function followed({
  log,
  isTaken = () => false,
}: { log?: (shared: MemoryShardLog) => ShardLog; isTaken?: () => boolean } = {}) {
  const shared = new MemoryShardLog();
  const epoch = shared.newEpoch(SHARD);
  const kv = new MemoryKeyValueStore();
  const warnings: string[] = [];
  let open = 0;
  const write = async (key: string): Promise<void> => {
    const batch = packWriteBatch([{ key, value: Buffer.from(key) }]);
    await shared.append(SHARD, (await shared.last(SHARD)) + 1, epoch, batch);
  };
  const follower = new ShardFollower({
    shard: SHARD,
    log: log?.(shared) ?? shared,
    store: new MemoryShardSnapshots({ now: () => 0, mono: () => 0 }),
    scheduler: {
      soon: (task) => void setImmediate(task),
      after: (_, task) => {
        const timer = setImmediate(task);
        return () => clearImmediate(timer);
      },
    },
    logger: {
      debug: () => undefined,
      info: () => undefined,
      warn: (text) => void warnings.push(text),
      error: () => undefined,
    },
    open: async () => {
      if (isTaken()) throw new ServiceError("storage.locked", "Another process has it");
      await kv.open();
      open++;
      return {
        kv,
        close: async () => {
          open--;
          await kv.close();
        },
      };
    },
  });
  onTestFinished(() => follower.stop());
  return { follower, kv, write, warnings, open: () => open };
}

test("a follower applies what the owner appends, until it is stopped", async () => {
  const { follower, kv, write, open } = followed();
  await write("a");
  await write("b");
  await expect.poll(() => follower.position).toBe(2);
  expect((await kv.get("b"))?.toString()).toBe("b");
  await write("c");
  await expect.poll(() => follower.position).toBe(3);
  await follower.stop();
  expect(open()).toBe(0);
  await write("d");
  expect(follower.position).toBe(3);
});

test("a follower whose log does not answer says so once, and goes on when it answers", async () => {
  let log: FaultyShardLog | undefined;
  const { follower, write, warnings, open } = followed({
    log: (shared) => (log = new FaultyShardLog(shared)),
  });
  await write("a");
  await expect.poll(() => follower.position).toBe(1);
  if (log === undefined) throw new Error("no log");
  log.isDown = true;
  await expect.poll(() => warnings.length).toBe(1);
  await write("b");
  log.isDown = false;
  await expect.poll(() => follower.position).toBe(2);
  expect([warnings.length, open()]).toEqual([1, 1]);
});

test("a follower waits while another process has the directory, and says nothing", async () => {
  let isTaken = true;
  const { follower, write, warnings } = followed({ isTaken: () => isTaken });
  await write("a");
  await new Promise((resolve) => setImmediate(resolve));
  expect(follower.position).toBeUndefined();
  isTaken = false;
  await expect.poll(() => follower.position).toBe(1);
  expect(warnings).toEqual([]);
});
