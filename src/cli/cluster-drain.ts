import { checkClusterSecret, deriveClusterKeys } from "../access/cluster-keys.ts";
import {
  canAnotherNodeTakeShards,
  checkSameSecret,
  isReady,
  nodeNameOf,
} from "../cluster/cluster-node-info.ts";
import { ServiceError } from "../model/errors.ts";
import { systemClock } from "../platform/clock.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { ClusterMember, ClusterView } from "../ports/membership.ts";
import { type ClusterDatabase, openExistingClusterDatabase } from "../postgres/cluster-database.ts";
import type { ClusterDatabaseLocation } from "./cluster-child.ts";

/** Milliseconds between two reads of the cluster's state. */
const LOOK_MS = 200;
/** Milliseconds without a change of the shards after which the command fails. */
const PATIENCE_MS = 60_000;

interface NamedNode {
  readonly place: ClusterDatabaseLocation;
  readonly node: string;
  readonly secret: string;
}

type Say = (line: string) => void;

/**
 * Makes a node give up its shards, and prints which node takes each of them. Resolves when the node has no shards.
 * @throws ServiceError `config.invalid` if the node or the secret is wrong, no other node can take shards, or the drain is cancelled;
 * `storage.unavailable` if the database fails or nothing changes for {@link PATIENCE_MS}
 */
export function drainNode(named: NamedNode, say: Say): Promise<void> {
  return withNode(named, async ({ membership }, node, view) => {
    const { node: name } = named;
    const shards = shardsOf(view, node);
    if (shards.length > 0 && !canAnotherNodeTakeShards(view, node.id)) {
      const why = `No other node could take the shards of ${name}: start another one first, or stop ${name}`;
      throw new ServiceError("config.invalid", why);
    }
    await setDraining(membership, node, true);
    say(`Node ${name} gives up ${shards.length === 0 ? "no shards" : `the shards ${shards.join(", ")}`}`);
    await watch(membership, node, shards, say);
    say(`Node ${name} has no shards, and takes none until "heddle cluster undrain ${name}" or its restart`);
  });
}

/** Lets a node take shards again. @throws ServiceError `config.invalid`, `storage.unavailable` */
export function undrainNode(named: NamedNode, say: Say): Promise<void> {
  return withNode(named, async ({ membership }, node) => {
    await setDraining(membership, node, false);
    say(`Node ${named.node} takes shards again`);
  });
}

/**
 * Finds a living node by its name, and calls `work` with it. Throws if `secret` is not the secret of the cluster, or if no living node has
 * this name.
 */
async function withNode(
  { place, node: name, secret }: NamedNode,
  work: (database: ClusterDatabase, node: ClusterMember, view: ClusterView) => Promise<void>,
): Promise<void> {
  checkClusterSecret(secret);
  const database = await openExistingClusterDatabase(place, { scheduler: systemScheduler });
  try {
    const view = await database.membership.view();
    checkSameSecret(view.nodes, deriveClusterKeys(secret, database.id).check);
    // An earlier process with the same node name may count as living until its lease ends, so a ready node is preferred.
    const named = view.nodes.filter(({ id }) => nodeNameOf(id) === name);
    const node = named.find(isReady) ?? named[0];
    if (node === undefined) {
      const names = view.nodes.map(({ id }) => nodeNameOf(id)).join(", ");
      const there = names === "" ? "there are none" : `there are: ${names}`;
      throw new ServiceError("config.invalid", `The cluster has no living node "${name}"; ${there}`);
    }
    await work(database, node, view);
  } finally {
    await database.close();
  }
}

async function setDraining(
  membership: ClusterDatabase["membership"],
  node: ClusterMember,
  isDraining: boolean,
): Promise<void> {
  if (await membership.setDraining(node.id, isDraining)) return;
  throw new ServiceError("config.invalid", `The node ${nodeNameOf(node.id)} has just left the cluster`);
}

const shardsOf = ({ owners }: ClusterView, { id }: ClusterMember): readonly number[] =>
  owners.filter((one) => one.node === id).map(({ shard }) => shard);

/** Prints which node takes each of `shards`. Resolves when `node` has no shards, and other nodes have all of `shards`. */
async function watch(
  membership: ClusterDatabase["membership"],
  node: ClusterMember,
  shards: readonly number[],
  say: Say,
): Promise<void> {
  const left = new Set(shards);
  let changedAt = systemClock.mono();
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- each read follows the pause after the last one
    const view = await membership.view();
    for (const { shard, node: owner } of view.owners) {
      if (owner === node.id || !left.delete(shard)) continue;
      changedAt = systemClock.mono();
      say(`  shard ${shard}: node ${nodeNameOf(owner)}`);
    }
    if (left.size === 0 && shardsOf(view, node).length === 0) return;
    if (view.nodes.some(({ id, isDraining }) => id === node.id && !isDraining))
      throw new ServiceError("config.invalid", `The drain of ${nodeNameOf(node.id)} was called off`);
    if (systemClock.mono() - changedAt >= PATIENCE_MS) {
      const shown = [...left].join(", ");
      throw new ServiceError(
        "storage.unavailable",
        `Nothing has changed for ${PATIENCE_MS / 1_000} s; not yet at another node: ${shown}. The drain goes on: see heddle cluster status`,
      );
    }
    // oxlint-disable-next-line no-await-in-loop -- a pause
    await new Promise<void>((resolve) => systemScheduler.after(LOOK_MS, resolve, true));
  }
}
