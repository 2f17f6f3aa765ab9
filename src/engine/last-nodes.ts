import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import { START } from "../graph/definition-checks.ts";

/**
 * The nodes of the last superstep before a checkpoint; `__start__` if no superstep has run; null if they are unknown,
 * because an input was stored after that superstep.
 */
export function lastNodesOf(head: CheckpointHead | null): readonly string[] | null {
  if (head === null) return [START];
  const { source, writes, parent, engine } = head;
  // The checkpoint of a superstep names its nodes in `writes`, other checkpoints in the field `last` of their engine
  // data.
  if (source === "loop") return writes === null ? [START] : Object.keys(writes);
  const noted = engine?.["last"];
  if (Array.isArray(noted)) return noted as readonly string[];
  return source === "input" && parent === null ? [START] : null;
}

/** Engine data that records the last nodes, for {@link lastNodesOf}. */
export function lastNodesData(last: readonly string[] | null): JsonObject {
  return last === null ? {} : { last };
}
