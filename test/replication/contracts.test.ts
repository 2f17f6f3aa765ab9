import { join } from "node:path";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import type { ReplaceableKeyValueStore } from "../../src/ports/key-value-store.ts";
import { MemoryShardLog } from "../../src/replication/memory-shard-log.ts";
import { MemoryMembership } from "../../src/replication/memory-membership.ts";
import { MemoryShardSnapshots } from "../../src/replication/memory-shard-snapshots.ts";
import { ReplicatedKeyValueStore } from "../../src/replication/replicated-key-value-store.ts";
import { LevelDbKeyValueStore } from "../../src/storage/leveldb-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { membershipContract, shardLogContract, shardSnapshotsContract } from "../../src/testing.ts";
import { testKeyValueStore } from "../contracts/key-value-store.ts";
import { runContract } from "../contracts/run-contract.ts";
import { temporary } from "../storage/support.ts";

runContract("shard log: memory", shardLogContract, async () => {
  const log = new MemoryShardLog();
  return { harness: { log, other: log, newEpoch: async (shard) => log.newEpoch(shard) } };
});

runContract("membership: memory", membershipContract, async () => {
  let now = 0;
  const log = new MemoryShardLog();
  const membership = new MemoryMembership(log, { now: () => now, mono: () => now }, 1_000);
  const pass = async (ms: number): Promise<void> => void (now += ms);
  return { harness: { membership, other: membership, log, leaseMs: 1_000, pass } };
});

runContract("snapshots: memory", shardSnapshotsContract, async () => {
  const snapshots = new MemoryShardSnapshots(systemClock);
  return { harness: { snapshots, other: snapshots } };
});

const deps = { clock: systemClock, scheduler: systemScheduler, random: systemRandom() };
function replicated(inner: ReplaceableKeyValueStore): ReplicatedKeyValueStore {
  const log = new MemoryShardLog();
  return new ReplicatedKeyValueStore(inner, log, { shard: 3, epoch: log.newEpoch(3) }, deps);
}

testKeyValueStore("replicated, over memory", () => ({ store: replicated(new MemoryKeyValueStore()) }));
testKeyValueStore("replicated, over LevelDB", () => {
  const directory = temporary();
  return {
    store: replicated(new LevelDbKeyValueStore(join(directory.path, "level"), false)),
    end: directory.remove,
  };
});
