import { isJsonRecord, type Run } from "../api/records.ts";
import type { Task, Trace } from "../live/trace.ts";

/** A task as a row of the timeline. */
export interface TimelineRow {
  readonly task: Task;
  /** The nesting level of the task's subgraph; 0: the root graph. */
  readonly depth: number;
}

/** The tasks of one superstep of the root graph, each followed by the tasks of its subgraph. */
export interface TimelineGroup {
  readonly step: number;
  readonly lines: readonly TimelineRow[];
}

const parentOf = ({ ns }: Task): string => ns.slice(ns.lastIndexOf(":") + 1);

/** Groups the tasks of a run by superstep. */
export function timelineGroups({ tasks }: Trace): readonly TimelineGroup[] {
  const children = new Map<string, Task[]>();
  const roots: Task[] = [];
  for (const task of tasks.values()) {
    const parent = task.ns === "" ? undefined : tasks.get(parentOf(task));
    if (task.ns === "" || parent === undefined) roots.push(task);
    else addTo(children, parent.id, task);
  }
  const below = (task: Task, depth: number): readonly TimelineRow[] => [
    { task, depth },
    ...(children.get(task.id) ?? []).flatMap((child) => below(child, depth + 1)),
  ];
  const groups = new Map<number, TimelineRow[]>();
  for (const task of roots) for (const row of below(task, 0)) addTo(groups, task.step, row);
  return [...groups].toSorted(([a], [b]) => a - b).map(([step, lines]) => ({ step, lines }));
}

function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** Returns the first `most` rows of all groups together, in their groups. */
export function firstRows(groups: readonly TimelineGroup[], most: number): readonly TimelineGroup[] {
  let left = most;
  return groups.flatMap(({ step, lines }) => {
    const shown = lines.slice(0, left);
    left -= shown.length;
    return shown.length === 0 ? [] : [{ step, lines: shown }];
  });
}

/** The origin of a replay, stored in the metadata of the replay's run: the original run and the first replayed step. */
export interface ReplayOrigin {
  readonly run: string;
  readonly step: number;
}

export function replayOriginOf({ metadata }: Run): ReplayOrigin | null {
  const { run, step } = isJsonRecord(metadata["replay"]) ? metadata["replay"] : {};
  return typeof run === "string" && Number.isInteger(step) ? { run, step: Number(step) } : null;
}

/**
 * Returns a function that converts a superstep's number in the API to the displayed number. Displayed numbers start at
 * 1, or in a replay at the first replayed superstep. The API numbers the supersteps of a thread across all of its runs,
 * and also counts updates of the state.
 */
export function stepNumbering(run: Run, groups: readonly TimelineGroup[]): (step: number) => number {
  const [first] = groups;
  const from = replayOriginOf(run)?.step ?? 1;
  return (step) => (first === undefined ? step : step - first.step + from);
}

/** Returns the slowest task that ran no subgraph; null if fewer than two have ended. */
export function slowestTaskOf(groups: readonly TimelineGroup[]): Task | null {
  const lines = groups.flatMap((group) => group.lines);
  const leaves = lines.filter(({ depth }, i) => (lines[i + 1]?.depth ?? 0) <= depth);
  const ended = leaves.map(({ task }) => task).filter((task) => taskDurationMs(task) !== null);
  if (ended.length < 2) return null;
  return ended.reduce((slowest, task) =>
    (taskDurationMs(task) ?? 0) > (taskDurationMs(slowest) ?? 0) ? task : slowest,
  );
}

/** Returns how long a task ran, in milliseconds; null if the task has not begun or not ended. */
export const taskDurationMs = ({ begunAt, endedAt }: Task): number | null =>
  begunAt === null || endedAt === null ? null : endedAt - begunAt;

export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns the start and the end of a run; the end is `now` while the run is active. Times before the run's creation are
 * left out: the state from which the run continues may be much older.
 */
export function timeRangeOf(run: Run, trace: Trace, now: number | null): TimeRange {
  const created = Date.parse(run.created_at);
  const times = [...trace.tasks.values()]
    .flatMap(({ begunAt, endedAt }) => [begunAt, endedAt])
    .concat(trace.steps.map(({ at }) => at))
    // Includes the grace period of tasks that do not stop when they are aborted.
    .concat(trace.endedAt)
    .filter((at): at is number => at !== null && at >= created);
  if (times.length === 0) return { from: 0, to: 1 };
  const from = times.reduce((first, at) => Math.min(first, at));
  const last = times.reduce((latest, at) => Math.max(latest, at));
  return { from, to: Math.max(from + 1, last, now ?? 0) };
}

/** Returns the milliseconds between the state with a question and this run, which answers it; null if the run gives no answer. */
export function questionWaitMs({ kwargs: { command }, created_at }: Run, { steps }: Trace): number | null {
  if (!isJsonRecord(command) || command["resume"] === undefined || command["resume"] === null) return null;
  const created = Date.parse(created_at);
  const earlier = steps.map(({ at }) => at).filter((at) => at < created);
  return earlier.length === 0 ? null : created - Math.max(...earlier);
}

/** Checks whether any data of a task contains the text. */
export function taskContains(trace: Trace, task: Task, text: string): boolean {
  const wanted = text.toLowerCase();
  const said = task.messages.map((id) => trace.messages.get(id)?.text ?? "").join(" ");
  return [
    task.name,
    task.id,
    task.error ?? "",
    said,
    task.lines.map(({ message, stack = "" }) => `${message} ${stack}`).join(" "),
    JSON.stringify(task.input ?? ""),
    JSON.stringify(task.result ?? ""),
  ].some((part) => part.toLowerCase().includes(wanted));
}

/** Returns round times for the axis of a range, in whole milliseconds from its start. They divide the range into at most `most` parts. */
export function ticksOf({ from, to }: TimeRange, most: number): readonly number[] {
  const length = to - from;
  const rough = Math.max(1, length / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? 10 * power;
  const ticks: number[] = [];
  for (let at = 0; at <= length; at += size) ticks.push(at);
  return ticks;
}
