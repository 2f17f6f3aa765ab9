import { START } from "./definition-checks.ts";

/**
 * The breakpoints of a run in the subgraph at `path` (the node names from the root graph down); null if there are none.
 * A breakpoint `node|inner` is returned as `inner`. A name or `*` without a path only means nodes of the root graph.
 */
export function breakpointsWithin(
  points: readonly string[] | "*" | null,
  path: readonly string[],
): readonly string[] | "*" | null {
  if (path.length === 0) return points;
  if (points === null || points === "*") return null;
  const above = `${path.join("|")}|`;
  const inner = points.filter((point) => point.startsWith(above)).map((point) => point.slice(above.length));
  if (inner.includes("*")) return "*";
  return inner.length === 0 ? null : inner;
}

/** True if a breakpoint names at least one of these nodes. `*` names all nodes except `__start__`. */
export function hasBreakpoint(points: readonly string[] | "*" | null, names: Iterable<string>): boolean {
  if (points === null) return false;
  for (const name of names) if (name !== START && (points === "*" || points.includes(name))) return true;
  return false;
}
