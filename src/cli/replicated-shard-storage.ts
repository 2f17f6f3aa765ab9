import { systemClock } from "../platform/clock.ts";
import { systemRandom } from "../platform/random.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { Logger } from "../ports/logger.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { openExistingClusterDatabase } from "../postgres/cluster-database.ts";
import { type OwnedShard, ReplicatedKeyValueStore } from "../replication/replicated-key-value-store.ts";
import type { StorageOptions } from "../storage/open-storage.ts";
import { type ClusterTask, killThisProcess } from "./cluster-child.ts";

/**
 * Creates the storage options of a shard of a cluster. The storage replicates each batch of writes to the cluster's log. The process ends
 * if another node has taken over the shard. `onCaughtUp`: called again and again while the process has applied the whole log, but its node
 * does not own the shard yet.
 */
export async function createReplicatedStorageOptions(
  owned: OwnedShard,
  directory: string,
  { snapshotBytes: logBytes, ...place }: ClusterTask,
  logger: Logger,
  onProgress: OnProgress,
  onCaughtUp: () => void,
): Promise<StorageOptions> {
  const { log, snapshots: store } = await openExistingClusterDatabase(place, { scheduler: systemScheduler });
  const deps = {
    clock: systemClock,
    scheduler: systemScheduler,
    random: systemRandom(),
    snapshots: { store, logBytes, logger },
    onProgress,
    onCaughtUp,
    onFenced: () => {
      logger.warn("another node has taken the shard over: this process ends");
      killThisProcess();
    },
  };
  return {
    kind: "replicated",
    directory,
    replicate: (local) => new ReplicatedKeyValueStore(local, log, owned, deps),
  };
}
