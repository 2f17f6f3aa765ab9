import { nodeNameOf, parseClusterNodeInfo } from "../cluster/cluster-node-info.ts";
import { systemClock } from "../platform/clock.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { ShardSnapshot } from "../ports/shard-snapshots.ts";
import { openExistingClusterDatabase } from "../postgres/cluster-database.ts";
import type { ClusterDatabaseLocation } from "./cluster-child.ts";

/**
 * Prints the living nodes of a cluster, the node that has each shard and those that follow it, and what the database stores of each shard: the extent of its log and
 * its newest snapshot. Returns the number of shards that no node has.
 */
export async function showClusterStatus(
  place: ClusterDatabaseLocation,
  say: (line: string) => void,
): Promise<number> {
  const database = await openExistingClusterDatabase(place, { scheduler: systemScheduler });
  try {
    const { nodes, owners } = await database.membership.view();
    say(`Cluster ${database.id}: ${database.shards} shards, ${nodes.length} nodes`);
    for (const { id, address, isDraining } of nodes) {
      const draining = isDraining ? ", draining" : "";
      say(`  node ${nodeNameOf(id)} at ${parseClusterNodeInfo(address).url || "(starting)"}${draining}`);
    }
    let free = 0;
    for (let shard = 0; shard < database.shards; shard++) {
      const owner = owners.find((one) => one.shard === shard);
      if (owner === undefined) free++;
      // oxlint-disable-next-line no-await-in-loop -- lines are printed in the order of the shards
      const { first, last, bytes } = await database.log.extent(shard, 1);
      // oxlint-disable-next-line no-await-in-loop -- as above
      const [newest] = await database.snapshots.list(shard);
      const followers = nodes.flatMap(({ id, address }) => {
        const position = parseClusterNodeInfo(address).followed?.[shard];
        return position === undefined || owner?.node === id ? [] : [followerText(id, last - position)];
      });
      const who = owner === undefined ? "no node" : `node ${nodeNameOf(owner.node)}, epoch ${owner.epoch}`;
      const log = `${last - first + 1} entries in the log up to ${last} (${sizeText(bytes)})`;
      const snapshot = newest === undefined ? "no snapshot" : snapshotText(newest);
      say(`  shard ${shard}: ${[who, log, snapshot, ...followers].join(", ")}`);
    }
    return free;
  } finally {
    await database.close();
  }
}

/** `behind`: the number of entries of the log that the node lacks, as it has said at its last renewal. */
const followerText = (id: string, behind: number): string =>
  `followed by ${nodeNameOf(id)}${behind > 0 ? ` (${behind} behind)` : ""}`;

function snapshotText({ seq, bytes, madeAt }: ShardSnapshot): string {
  // `max`, because the clock of this machine may be behind the clock that set `madeAt`.
  const minutes = Math.max(0, Math.floor((systemClock.now() - madeAt) / 60_000));
  const age = minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
  return `snapshot at ${seq} (${sizeText(bytes)}, ${age} old)`;
}

const sizeText = (bytes: number): string =>
  `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;
