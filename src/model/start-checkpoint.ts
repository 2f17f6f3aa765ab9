import { isObject, type JsonObject } from "./json.ts";

/**
 * The checkpoint from which a run starts, as stored in the run's `configurable`. It names everything that the run needs, so nothing has to
 * be looked up later.
 */
export interface StartCheckpoint {
  readonly checkpoint_id: string | null;
  /** The namespace of the checkpoint. Present only for a checkpoint of a subgraph. */
  readonly checkpoint_ns?: string;
  /** The ids of the checkpoints, by namespace, from the root graph to the subgraph. */
  readonly checkpoint_map?: JsonObject;
}

export const LATEST_CHECKPOINT: StartCheckpoint = { checkpoint_id: null };

export interface SubgraphCheckpoint {
  readonly ns: string;
  readonly id: string;
}

/** The namespaces above `ns`, from the root downwards. */
export function parentNamespaces(ns: string): readonly string[] {
  if (ns === "") return [];
  const segments = ns.split("|");
  return segments.map((_, depth) => segments.slice(0, depth).join("|"));
}

/**
 * The ids of a subgraph's checkpoint and of the checkpoints of the graphs above it, by namespace. The ids for the graphs above come from
 * `parents` in the metadata of the subgraph's checkpoint. Null for a checkpoint of the root graph.
 */
export function checkpointMapOf(ns: string, id: string, { parents }: JsonObject): JsonObject | null {
  return ns !== "" && isObject(parents) ? { ...parents, [ns]: id } : null;
}

/** The id of the root graph's checkpoint that a run's `configurable` names as its start; null: the thread's latest checkpoint. */
export function rootCheckpointOf(configurable: JsonObject): string | null {
  const { checkpoint_ns: ns, checkpoint_id: id, checkpoint_map: map } = configurable;
  const named = typeof ns === "string" && ns !== "" ? isObject(map) && map[""] : id;
  return typeof named === "string" ? named : null;
}

/**
 * The checkpoints of subgraphs that a run's `configurable` names as its start, from the outermost subgraph to the innermost. Empty if it
 * names a checkpoint of the root graph.
 */
export function subgraphCheckpointsOf({
  checkpoint_ns: ns,
  checkpoint_id,
  checkpoint_map: map,
}: JsonObject): readonly SubgraphCheckpoint[] {
  if (typeof ns !== "string" || ns === "" || typeof checkpoint_id !== "string" || !isObject(map)) return [];
  const within: SubgraphCheckpoint[] = [];
  for (const parentNs of parentNamespaces(ns).slice(1)) {
    const id = map[parentNs];
    // A namespace in between has no checkpoint if its graph is called in a node function.
    if (typeof id === "string") within.push({ ns: parentNs, id });
  }
  return [...within, { ns, id: checkpoint_id }];
}
