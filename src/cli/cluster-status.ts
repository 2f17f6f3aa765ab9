import { nodeNameOf, parseNodeAddress } from "../cluster/node-address.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import { findClusterDatabase } from "../postgres/cluster-database.ts";
import type { ClusterDatabaseLocation } from "./cluster-network.ts";

/**
 * Prints the living nodes of a cluster, and which node has which shard. Returns the number of shards that no node has.
 */
export async function showClusterStatus(
  place: ClusterDatabaseLocation,
  say: (line: string) => void,
): Promise<number> {
  const database = await findClusterDatabase(place, { scheduler: systemScheduler });
  try {
    const { nodes, owners } = await database.membership.view();
    say(`Cluster ${database.id}: ${database.shards} shards, ${nodes.length} nodes`);
    for (const { id, address, isDraining } of nodes) {
      const draining = isDraining ? ", draining" : "";
      say(`  node ${nodeNameOf(id)} at ${parseNodeAddress(address).url || "(starting)"}${draining}`);
    }
    let free = 0;
    for (let shard = 0; shard < database.shards; shard++) {
      const owner = owners.find((one) => one.shard === shard);
      if (owner === undefined) free++;
      // oxlint-disable-next-line no-await-in-loop -- lines are printed in the order of the shards
      const last = await database.log.last(shard);
      const who = owner === undefined ? "no node" : `node ${nodeNameOf(owner.node)}, epoch ${owner.epoch}`;
      say(`  shard ${shard}: ${who}, ${last} entries in the log`);
    }
    return free;
  } finally {
    await database.close();
  }
}
