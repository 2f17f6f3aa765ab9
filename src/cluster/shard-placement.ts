import type { ClusterMember, ClusterView } from "../ports/membership.ts";

/** What is known of nodes and shards beyond a view of the cluster. */
export interface PlacementRules {
  /** How many shards there are. */
  readonly count: number;
  /** Whether a node can take shards. */
  isReady(node: ClusterMember): boolean;
  /** Whether the owner of a shard serves it. */
  isServed(shard: number, view: ClusterView): boolean;
}

/** Whether every shard has an owner that serves it. */
export function isSettled(view: ClusterView, rules: PlacementRules): boolean {
  return view.owners.length === rules.count && view.owners.every(({ shard }) => rules.isServed(shard, view));
}

/**
 * The shard that its owner should give up next; undefined if there is none now. All nodes compute the same from the same
 * view, so one shard of the cluster moves at a time: the next one follows when its new owner serves the one before.
 */
export function nextMove(view: ClusterView, rules: PlacementRules): number | undefined {
  const draining = new Set(view.nodes.filter((one) => one.isDraining).map(({ id }) => id));
  const isPlaced = (one: ClusterView["owners"][number]): boolean => !draining.has(one.node);
  if (!view.nodes.some((one) => !one.isDraining && rules.isReady(one))) return undefined;
  if (view.owners.length < rules.count) return undefined;
  // A shard that is not served may leave a draining node, but holds up all others: its new owner may be starting.
  if (view.owners.some((one) => isPlaced(one) && !rules.isServed(one.shard, view))) return undefined;
  return view.owners.find((one) => !isPlaced(one))?.shard;
}
