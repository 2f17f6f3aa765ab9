import type { Task } from "../live/trace.ts";
import type { TimelineGroup, TimelineRow } from "./timeline-rows.ts";

/**
 * Returns the critical path of a run: of each superstep, the task that ended last and, if this task called a subgraph,
 * the critical path of the subgraph. The run becomes faster only if a task on this path does. Empty if all tasks that
 * have begun are on the path, because none of them ran in parallel.
 */
export function criticalPath(groups: readonly TimelineGroup[]): ReadonlySet<Task> {
  const path = new Set(groups.flatMap(({ lines }) => pathThrough(lines, 0)));
  const begun = groups.flatMap(({ lines }) => lines).filter(({ task }) => task.begunAt !== null);
  return path.size === begun.length ? new Set() : path;
}

/**
 * Returns the critical path through one superstep. `lines`: the tasks of the superstep, each followed by the tasks of
 * its subgraph. `depth`: the depth of the superstep's own tasks.
 */
function pathThrough(lines: readonly TimelineRow[], depth: number): readonly Task[] {
  const heads = lines.flatMap(({ task, depth: own }, at) =>
    own === depth && task.begunAt !== null ? [{ task, at }] : [],
  );
  if (heads.length === 0) return [];
  const last = heads.reduce((latest, one) => (endOf(one.task) > endOf(latest.task) ? one : latest));
  const next = lines.findIndex((row, at) => at > last.at && row.depth <= depth);
  const below = lines.slice(last.at + 1, next < 0 ? undefined : next);
  return [last.task, ...bySuperstep(below, depth + 1).flatMap((step) => pathThrough(step, depth + 1))];
}

/**
 * Returns when a task ended; Infinity if it has not. A stopped task counts as the first to end: another task failed, so
 * the run did not wait for this one.
 */
const endOf = ({ endedAt, status }: Task): number =>
  status === "stopped" ? -Infinity : (endedAt ?? Infinity);

/** Groups the tasks of a subgraph by the subgraph's supersteps. `depth`: the depth of the subgraph's own tasks. */
function bySuperstep(lines: readonly TimelineRow[], depth: number): readonly TimelineRow[][] {
  const steps = new Map<number, TimelineRow[]>();
  let step = 0;
  for (const row of lines) {
    if (row.depth === depth) ({ step } = row.task);
    steps.set(step, [...(steps.get(step) ?? []), row]);
  }
  return [...steps.values()];
}
