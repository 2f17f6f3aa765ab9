import { shardOf } from "../model/shard-of.ts";
import type { ClusterMember, ClusterView } from "../ports/membership.ts";
import { nodeNameOf } from "./cluster-node-info.ts";

/** What {@link nextMove} needs to know besides a view of the cluster. */
export interface PlacementRules {
  /** The number of shards of the cluster. */
  readonly count: number;
  /** Whether a node can take shards. */
  canTakeShards(node: ClusterMember): boolean;
  /** Whether a node has been a member long enough to get shards that other nodes own. */
  isEstablished(node: ClusterMember): boolean;
  /** Whether the owner of a shard serves it. */
  isServed(shard: number, view: ClusterView): boolean;
}

/**
 * Returns the node that should own a shard, by rendezvous hashing of the node names; undefined if `nodes` is empty. When a node joins or
 * leaves, only its own shards move. A restarted node has the same name, so it gets the same shards again, whose data it still has.
 */
export function preferredOwner(shard: number, nodes: readonly ClusterMember[]): ClusterMember | undefined {
  let best: ClusterMember | undefined;
  let highest = -1;
  for (const node of nodes) {
    const weight = weightOf(shard, node);
    // Of nodes with the same name, the one with the highest id is chosen, so that all nodes choose the same.
    if (weight < highest || (weight === highest && best !== undefined && node.id < best.id)) continue;
    best = node;
    highest = weight;
  }
  return best;
}

/** The last slash is needed, because `shardOf` ignores the last character of a text that is as long as an id. */
const weightOf = (shard: number, { id }: ClusterMember): number =>
  shardOf(`${nodeNameOf(id)}/${shard}/`, 2 ** 32);

/** The shards that a node follows: those that it should take if the nodes that own them died. */
export const followedShards = (
  { nodes, owners }: ClusterView,
  id: string,
  canTakeShards: PlacementRules["canTakeShards"],
): readonly number[] =>
  owners.flatMap(({ shard, node }) => {
    if (node === id) return [];
    const others = nodes.filter((one) => one.id !== node && canTakeShards(one));
    return preferredOwner(shard, others)?.id === id ? [shard] : [];
  });

/** Whether every shard has an owner that serves it. */
export function isSettled(view: ClusterView, rules: PlacementRules): boolean {
  return view.owners.length === rules.count && view.owners.every(({ shard }) => rules.isServed(shard, view));
}

/** A shard that has to move to another node. */
export interface ShardMove {
  readonly shard: number;
  /** The node that should take the shard. */
  readonly to: ClusterMember;
}

/**
 * The shard that its owner should give up next; undefined if no shard should move now. All nodes compute the same move from the same view,
 * so the shards of a cluster move one at a time: each after the new owner serves the previous one.
 */
export function nextMove(view: ClusterView, rules: PlacementRules): ShardMove | undefined {
  const able = view.nodes.filter((one) => rules.canTakeShards(one));
  if (able.length === 0 || view.owners.length < rules.count) return undefined;
  const draining = new Set(view.nodes.filter((one) => one.isDraining).map(({ id }) => id));
  // A node that is not draining but does not serve its shard may be starting, so nothing moves until it does. The shard of a draining node
  // may move even if it is not served.
  if (view.owners.some((one) => !draining.has(one.node) && !rules.isServed(one.shard, view)))
    return undefined;
  const leaving = view.owners.find((one) => draining.has(one.node));
  if (leaving !== undefined) return moveOf(leaving.shard, able);
  for (const { shard, node } of view.owners) {
    const move = moveOf(
      shard,
      able.filter((one) => one.id === node || rules.isEstablished(one)),
    );
    if (move !== undefined && move.to.id !== node) return move;
  }
  return undefined;
}

function moveOf(shard: number, candidates: readonly ClusterMember[]): ShardMove | undefined {
  const to = preferredOwner(shard, candidates);
  return to && { shard, to };
}
