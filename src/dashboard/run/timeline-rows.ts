import { isJsonRecord, type Run } from "../api/records.ts";
import type { Task, Trace } from "../live/trace.ts";

export interface TimelineRow {
  readonly task: Task;
  /** How deep the task's graph is nested: 0 for the root graph, 1 for its subgraphs, and so on. */
  readonly depth: number;
  /** The names of the child machines that the task belongs to, outermost first; absent if it belongs to none. */
  readonly within?: readonly string[];
}

/** The tasks of one superstep of the root graph, each followed by the tasks of the subgraph that it called. */
export interface TimelineGroup {
  readonly step: number;
  readonly lines: readonly TimelineRow[];
}

interface TimelineRoot extends Pick<TimelineRow, "task" | "within"> {
  readonly step: number;
}

const namesIn = (ns: string): readonly string[] => ns.split("|").map((part) => part.split(":")[0] ?? "");

const parentOf = ({ ns }: Task): string => ns.slice(ns.lastIndexOf(":") + 1);

/** Groups the tasks of a run by superstep of the root graph, in the order of the supersteps. */
export function timelineGroups({ tasks }: Trace): readonly TimelineGroup[] {
  const children = new Map<string, Task[]>();
  const roots: TimelineRoot[] = [];
  let last: number | undefined;
  for (const task of tasks.values()) {
    const parent = task.ns === "" ? undefined : tasks.get(parentOf(task));
    if (parent !== undefined) addTo(children, parent.id, task);
    // A task of a child machine has no parent task, and the machine counts its own steps. So the task is put into the
    // latest superstep of the root graph.
    else if (task.ns !== "") roots.push({ task, step: last ?? task.step, within: namesIn(task.ns) });
    else {
      last = task.step;
      roots.push({ task, step: task.step });
    }
  }
  const below = (task: Task, depth: number): readonly TimelineRow[] => [
    { task, depth },
    ...(children.get(task.id) ?? []).flatMap((child) => below(child, depth + 1)),
  ];
  const groups = new Map<number, TimelineRow[]>();
  for (const { task, step, within } of roots)
    for (const row of below(task, 0)) addTo(groups, step, within === undefined ? row : { ...row, within });
  return [...groups].toSorted(([a], [b]) => a - b).map(([step, lines]) => ({ step, lines }));
}

function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** Returns the groups with only the first `most` rows, counted across all groups. */
export function firstRows(groups: readonly TimelineGroup[], most: number): readonly TimelineGroup[] {
  let left = most;
  return groups.flatMap(({ step, lines }) => {
    const shown = lines.slice(0, left);
    left -= shown.length;
    return shown.length === 0 ? [] : [{ step, lines: shown }];
  });
}

/**
 * Where a replay began, stored in the metadata of its run: the id of the original run, and the displayed number of the
 * first superstep that was run again.
 */
export interface ReplayOrigin {
  readonly run: string;
  readonly step: number;
}

/** Reads where a replay began from the metadata of its run, or of a checkpoint that the run made; null for other runs. */
export function replayOriginOf({ metadata }: Pick<Run, "metadata">): ReplayOrigin | null {
  const { run, step } = isJsonRecord(metadata["replay"]) ? metadata["replay"] : {};
  return typeof run === "string" && Number.isInteger(step) ? { run, step: Number(step) } : null;
}

/**
 * Returns a function that converts the API's number of a superstep to the displayed number. Displayed numbers start at
 * 1 or, in a replay, at the number of the first replayed superstep. The API counts the supersteps of all runs of a
 * thread, and updates of its state.
 */
export function createStepNumbering(run: Run, groups: readonly TimelineGroup[]): (step: number) => number {
  const [first] = groups;
  const from = replayOriginOf(run)?.step ?? 1;
  return (step) => (first === undefined ? step : step - first.step + from);
}

/**
 * Returns the task that took longest among those that called no subgraph. Null if fewer than two of them have ended.
 */
export function slowestTaskOf(groups: readonly TimelineGroup[]): Task | null {
  const lines = groups.flatMap((group) => group.lines);
  const leaves = lines.filter(({ depth }, i) => (lines[i + 1]?.depth ?? 0) <= depth);
  const ended = leaves.map(({ task }) => task).filter((task) => taskDurationMs(task) !== null);
  if (ended.length < 2) return null;
  return ended.reduce((slowest, task) =>
    (taskDurationMs(task) ?? 0) > (taskDurationMs(slowest) ?? 0) ? task : slowest,
  );
}

/** Returns how long a task ran, in milliseconds; null if it has not begun or has not ended. */
export const taskDurationMs = ({ begunAt, endedAt }: Task): number | null =>
  begunAt === null || endedAt === null ? null : endedAt - begunAt;

export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns the start and end of a run, in epoch milliseconds. `now`: the end of a run in progress; null for a run that
 * has ended. Times before the creation of the run are ignored, because the run may continue from a much older state.
 */
export function timeRangeOf(run: Run, trace: Trace, now: number | null): TimeRange {
  const created = Date.parse(run.created_at);
  const times = [...trace.tasks.values()]
    .flatMap(({ begunAt, endedAt }) => [begunAt, endedAt])
    .concat(trace.steps.map(({ at }) => at))
    // The end of the run may be later than that of its tasks: tasks that do not stop when they are aborted get a grace
    // period.
    .concat(trace.endedAt)
    .filter((at): at is number => at !== null && at >= created);
  if (times.length === 0) return { from: 0, to: 1 };
  const from = times.reduce((first, at) => Math.min(first, at));
  const last = times.reduce((latest, at) => Math.max(latest, at));
  return { from, to: Math.max(from + 1, last, now ?? 0) };
}

/**
 * Returns the milliseconds between the checkpoint with a question and the creation of this run, which answers the
 * question. Null if this run answers no question, or if that checkpoint is not known.
 */
export function questionWaitMs({ kwargs: { command }, created_at }: Run, { steps }: Trace): number | null {
  if (!isJsonRecord(command) || command["resume"] === undefined || command["resume"] === null) return null;
  const created = Date.parse(created_at);
  const earlier = steps.map(({ at }) => at).filter((at) => at < created);
  return earlier.length === 0 ? null : created - Math.max(...earlier);
}

/**
 * Returns whether a text occurs in a task's name, id, error, messages, log lines, input or result. Case does not
 * matter.
 */
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

/**
 * Returns round distances from the start of a range, in milliseconds, for the labels of a time axis. They divide the
 * range into at most `most` parts.
 */
export function axisTicksOf({ from, to }: TimeRange, most: number): readonly number[] {
  const length = to - from;
  const rough = Math.max(1, length / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? 10 * power;
  const ticks: number[] = [];
  for (let at = 0; at <= length; at += size) ticks.push(at);
  return ticks;
}
