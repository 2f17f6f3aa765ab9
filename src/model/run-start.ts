import { isObject, type JsonObject } from "./json.ts";

/** The place that a run is to start from, as its `configurable` keeps it: whole, so that nothing is to be looked up later. */
export interface RunStart {
  readonly checkpoint_id: string | null;
  /** Of a subgraph alone. */
  readonly checkpoint_ns?: string;
  /** By namespace the checkpoints from the root's down to it. */
  readonly checkpoint_map?: JsonObject;
}

export const LATEST: RunStart = { checkpoint_id: null };

/** A checkpoint of a subgraph. */
export interface Within {
  readonly ns: string;
  readonly id: string;
}

/** The namespaces above one, from the root's down. */
export function above(ns: string): readonly string[] {
  if (ns === "") return [];
  const segments = ns.split("|");
  return segments.map((_, depth) => segments.slice(0, depth).join("|"));
}

/** By namespace a subgraph's checkpoint and those above it, as its metadata names them; null for one of the root graph. */
export function mapOf(ns: string, id: string, { parents }: JsonObject): JsonObject | null {
  return ns !== "" && isObject(parents) ? { ...parents, [ns]: id } : null;
}

/** The checkpoint of the root graph that a run starts from, as its `configurable` says; null: the thread's latest. */
export function startOf(configurable: JsonObject): string | null {
  const { checkpoint_ns: ns, checkpoint_id: id, checkpoint_map: map } = configurable;
  const named = typeof ns === "string" && ns !== "" ? isObject(map) && map[""] : id;
  return typeof named === "string" ? named : null;
}

/** The subgraphs' checkpoints that it starts from, from the outermost down to the one that was named; none: where they begin. */
export function startWithin({
  checkpoint_ns: ns,
  checkpoint_id,
  checkpoint_map: map,
}: JsonObject): readonly Within[] {
  if (typeof ns !== "string" || ns === "" || typeof checkpoint_id !== "string" || !isObject(map)) return [];
  const within: Within[] = [];
  for (const place of above(ns).slice(1)) {
    const id = map[place];
    // What a node's body calls has no checkpoints in between.
    if (typeof id === "string") within.push({ ns: place, id });
  }
  return [...within, { ns, id: checkpoint_id }];
}
