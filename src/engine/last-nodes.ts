import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import { START } from "../graph/definition-checks.ts";

/**
 * The nodes that were the last to run before a checkpoint, side by side; null where it cannot be told: an input
 * has come since. A superstep's checkpoint says it by what it wrote, another one by a note of its own.
 */
export function lastRan(head: CheckpointHead | null): readonly string[] | null {
  if (head === null) return [START];
  const { source, writes, parent, engine } = head;
  if (source === "loop") return writes === null ? [START] : Object.keys(writes);
  const noted = engine?.["last"];
  if (Array.isArray(noted)) return noted as readonly string[];
  return source === "input" && parent === null ? [START] : null;
}

/** The note of it. */
export function ranLast(last: readonly string[] | null): JsonObject {
  return last === null ? {} : { last };
}
