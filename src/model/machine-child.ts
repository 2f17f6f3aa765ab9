import type { CheckpointHead } from "./checkpoint.ts";
import { isObject } from "./json.ts";

/**
 * The latest checkpoint of a child machine. The root machine's checkpoints contain such a position for each child, in
 * their engine data.
 */
export interface ChildPosition {
  /** The number of the child, unique on its branch of the thread. */
  readonly start: number;
  readonly ns: string;
  readonly id: string;
  readonly step: number;
  /** The keys of the child machine's state. */
  readonly keys: readonly string[];
}

/** The child machines at a checkpoint, at all levels. */
export function childMachinePositionsAt(
  head: Pick<CheckpointHead, "engine"> | null,
): readonly ChildPosition[] {
  const children = head?.engine?.["children"];
  return Array.isArray(children) ? (children.filter(isObject) as unknown as readonly ChildPosition[]) : [];
}
