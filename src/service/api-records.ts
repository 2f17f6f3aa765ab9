import { START } from "../graph/definition-checks.ts";
import type { AssistantRecord, AssistantVersion } from "../model/assistant.ts";
import type { Checkpoint, CheckpointHead, PlannedTask, PendingTaskWrites } from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import type { CronRecord } from "../model/cron.ts";
import type { Interrupt } from "../model/interrupt.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type { RunWithoutKwargs } from "../model/run-search.ts";
import { nextNodeNames, ownTasks } from "../model/machine-child.ts";
import { checkpointMapOf } from "../model/start-checkpoint.ts";
import { type ThreadKey, type ThreadRecord, threadStatusOf, ttlWithDueTime } from "../model/thread.ts";
import type { StoredRows, StoredSizes } from "../model/stored-sizes.ts";
import { toIso } from "../model/time.ts";

/** The functions in this file convert stored records to the shape that the API returns. */

export function apiAssistantVersion(version: AssistantVersion): JsonObject {
  return {
    assistant_id: version.assistant_id,
    graph_id: version.graph_id,
    version: version.version,
    name: version.name,
    description: version.description,
    config: version.config,
    context: version.context,
    metadata: version.metadata,
    created_at: toIso(version.created_at),
  };
}

export function apiAssistant(assistant: AssistantRecord): JsonObject {
  return { ...apiAssistantVersion(assistant), updated_at: toIso(assistant.updated_at) };
}

/** When a thread expires, and what is deleted then; null: never. */
export function apiTtl({ ttl, rested_at }: ThreadRecord): JsonObject | null {
  if (ttl === null) return null;
  const { strategy, minutes } = ttl;
  return {
    strategy,
    ttl: minutes,
    ttl_minutes: minutes,
    expires_at: toIso(Math.max(ttl.due, ttlWithDueTime(ttl, rested_at).due)),
  };
}

/** A thread as the API shows it. `values`: its state; null when it has none yet. */
export function apiThread(thread: ThreadRecord, values: JsonObject | null): JsonObject {
  const status = threadStatusOf(thread);
  return {
    thread_id: thread.thread_id,
    created_at: toIso(thread.created_at),
    updated_at: toIso(thread.updated_at),
    state_updated_at: toIso(thread.state_updated_at),
    metadata: thread.metadata,
    status,
    config: thread.config,
    values,
    interrupts: thread.interrupts,
    ...(status === "error" && thread.error !== null && { error: thread.error }),
  };
}

/**
 * The numbers and bytes of the rows that a thread has stored. `checkpoints`, `channel_values`, `pending_writes` and their sum `total_bytes`
 * are also returned by LangGraph's own server. The other members exist only in Heddle.
 */
export function apiStoredSizes(
  { thread }: ThreadKey,
  { checkpoints, channels, writes, runs, events, thread: record }: StoredSizes,
): JsonObject {
  const byChannel = [...channels].sort(([one], [other]) => (one < other ? -1 : 1));
  const values = { count: 0, bytes: 0 };
  for (const [, { count, bytes }] of byChannel) {
    values.count += count;
    values.bytes += bytes;
  }
  return {
    thread_id: thread,
    total_bytes: checkpoints.bytes + values.bytes + writes.bytes,
    checkpoints: apiRows(checkpoints),
    channel_values: {
      ...values,
      by_channel: Object.fromEntries(
        byChannel.map(([name, { count, bytes }]) => [name, { versions: count, bytes }]),
      ),
    },
    pending_writes: apiRows(writes),
    runs: apiRows(runs),
    events: apiRows(events),
    thread: apiRows(record),
  };
}

const apiRows = ({ count, bytes }: StoredRows): JsonObject => ({ count, bytes });

/** Properties of a run that its stored record does not contain. */
export interface RunProgress {
  readonly isRunning: boolean;
  /** Position in the queue, counted from 1; undefined when the run is not queued. */
  readonly position: number | undefined;
}

/** A run as the search over all threads returns it: its outcome, without its arguments. */
export function apiRunSummary(run: RunWithoutKwargs, isRunning: boolean): JsonObject {
  const { run_id, thread_id, assistant_id, graph_id, metadata, multitask_strategy, attempt } = run;
  const timeOf = (at: number | null) => (at === null ? null : toIso(at));
  return {
    run_id,
    thread_id,
    assistant_id,
    graph_id,
    created_at: toIso(run.created_at),
    updated_at: toIso(run.updated_at),
    started_at: timeOf(run.started_at),
    ended_at: timeOf(run.ended_at),
    metadata,
    status: isRunning && run.status === "pending" ? "running" : run.status,
    multitask_strategy,
    attempt,
    origin: run.origin,
    usage: run.usage ?? [],
    slowest_node: run.slowest_node,
    error: run.error && { error: run.error.error, message: run.error.message },
    ...(run.due !== null && { scheduled_for: toIso(run.due) }),
    ...(run.cancel_reason !== null && { cancel_reason: run.cancel_reason }),
  };
}

export function apiRun(run: RunRecord, { isRunning, position }: RunProgress): JsonObject {
  return {
    run_id: run.run_id,
    thread_id: run.thread_id,
    assistant_id: run.assistant_id,
    created_at: toIso(run.created_at),
    updated_at: toIso(run.updated_at),
    metadata: run.metadata,
    status: isRunning && run.status === "pending" ? "running" : run.status,
    kwargs: run.kwargs,
    multitask_strategy: run.multitask_strategy,
    ...(position !== undefined && { queue_position: position }),
    ...(run.due !== null && { scheduled_for: toIso(run.due) }),
    ...(run.cancel_reason !== null && { cancel_reason: run.cancel_reason }),
    ...(run.slowest_node !== null && { slowest_node: run.slowest_node }),
  };
}

export function apiCron(cron: CronRecord): JsonObject {
  return {
    cron_id: cron.cron_id,
    assistant_id: cron.assistant_id,
    thread_id: cron.thread_id,
    on_run_completed: cron.on_run_completed,
    schedule: cron.schedule,
    timezone: cron.timezone,
    end_time: cron.end_time === null ? null : toIso(cron.end_time),
    next_run_date: cron.next === null ? null : toIso(cron.next),
    enabled: cron.enabled,
    payload: cron.payload,
    metadata: cron.metadata,
    user_id: cron.user?.["identity"] ?? null,
    ...(cron.last_run && { last_run: { ...cron.last_run, ended_at: toIso(cron.last_run.ended_at) } }),
    created_at: toIso(cron.created_at),
    updated_at: toIso(cron.updated_at),
  };
}

/** The state of a thread that has not run yet. It has no checkpoint, which clients interpret as "no history". */
export const emptyApiState: JsonObject = {
  values: {},
  next: [],
  tasks: [],
  metadata: {},
  created_at: null,
  checkpoint: null,
  parent_checkpoint: null,
  interrupts: [],
  checkpoint_id: null,
  parent_checkpoint_id: null,
};

export interface StateParts {
  readonly thread: string;
  readonly checkpoint: Checkpoint;
  readonly values: JsonObject;
  readonly writes: readonly PendingTaskWrites[];
  /** True: the metadata includes the updates of the nodes, which may be as large as the state. */
  readonly withWrites: boolean;
  /** The next newer checkpoint of the same namespace; absent when this state is the latest. */
  readonly later?: CheckpointHead;
  /** Subgraphs in the tasks, by task id. */
  readonly within?: ReadonlyMap<string, TaskSubgraph>;
}

/** A subgraph in a task: its namespace, and its state if the client requested it. */
export type TaskSubgraph =
  | { readonly ns: string; readonly state?: undefined }
  | { readonly ns: string; readonly state: JsonObject };

export function apiState(parts: StateParts): JsonObject {
  const { thread, checkpoint, values, writes, withWrites, later, within } = parts;
  const { id, ns, parent, metadata } = checkpoint;
  const left = new Map(writes.map((task) => [task.task, task]));
  return {
    values,
    // In the latest state, a finished task that waits for other tasks of its superstep is left out of `next`,
    // because it does not run again.
    next: nextNodeNames(
      checkpoint.next.filter((task) => later !== undefined || left.get(task.id)?.result === undefined),
    ),
    tasks: ownTasks(checkpoint.next).map((task) => {
      const shown = taskOf(thread, task, { left: left.get(task.id), within: within?.get(task.id), later });
      return shown["result"] === null ? { ...shown, result: resultOf(task, checkpoint, later) } : shown;
    }),
    metadata: apiCheckpointMetadata(thread, checkpoint, withWrites),
    created_at: toIso(checkpoint.created_at),
    checkpoint: apiCheckpoint(thread, ns, id, metadata),
    parent_checkpoint: parent === null ? null : apiCheckpoint(thread, ns, parent, metadata),
    interrupts: pendingInterruptsOf(checkpoint, writes),
    checkpoint_id: id,
    parent_checkpoint_id: parent,
  };
}

/**
 * A checkpoint from which a run can start. For a checkpoint of a subgraph, the result also names the checkpoints of the graphs that contain
 * the subgraph; they are taken from `metadata`.
 */
export function apiCheckpoint(thread: string, ns: string, id: string, metadata: JsonObject = {}): JsonObject {
  return {
    thread_id: thread,
    checkpoint_ns: ns,
    checkpoint_id: id,
    checkpoint_map: checkpointMapOf(ns, id, metadata),
  };
}

export function apiCheckpointMetadata(
  thread: string,
  checkpoint: Checkpoint,
  withWrites: boolean,
): JsonObject {
  return {
    user_id: "",
    ...checkpoint.metadata,
    source: checkpoint.source,
    step: checkpoint.step,
    parents: checkpoint.metadata["parents"] ?? {},
    ...(withWrites && { writes: checkpoint.writes }),
    run_id: checkpoint.run_id,
    thread_id: thread,
  };
}

function taskOf(
  thread: string,
  task: PlannedTask,
  {
    left,
    within,
    later,
  }: {
    readonly left: PendingTaskWrites | undefined;
    readonly within: TaskSubgraph | undefined;
    readonly later: CheckpointHead | undefined;
  },
): JsonObject {
  const { error } = left ?? { error: null };
  return {
    id: task.id,
    name: task.name,
    path: task.path,
    error: errorText(error),
    interrupts: left === undefined ? [] : interruptsOf(left, later !== undefined),
    checkpoint:
      within === undefined || within.state !== undefined
        ? null
        : { thread_id: thread, checkpoint_ns: within.ns },
    state: within?.state ?? null,
    // The update of a finished task that waits for other tasks of its superstep.
    result: left?.result?.value ?? null,
  };
}

/** An error as JSON text. Clients parse the text, and show the error under its `name`. */
const errorText = (error: PlainError | null | undefined): string | null =>
  (error ?? null) === null ? null : JSON.stringify({ name: error?.error, message: error?.message });

/**
 * A child machine, shown as a task of its parent machine. It is shown for information only: no such task is executed, because the child
 * handles its events within the supersteps of the parent.
 * @param name the name of the child, with its id
 * @param error the error of an actor of the child, or of an actor of a machine below the child
 */
export function apiChildTask(
  thread: string,
  name: string,
  { ns, state }: { readonly ns: string; readonly state: JsonObject | null },
  error?: PlainError | null,
): JsonObject {
  const [node, id] = name.split(":");
  const checkpoint = state === null ? { thread_id: thread, checkpoint_ns: ns } : null;
  return {
    id,
    name: node,
    path: ["__pregel_push", node],
    error: errorText(error),
    interrupts: [],
    checkpoint,
    state,
    result: null,
  };
}

/** The interrupts of a task that wait for an answer. `isOlder`: the state is not the latest, so the answered interrupts are included. */
function interruptsOf(
  { result, interrupts, answered = [] }: PendingTaskWrites,
  isOlder: boolean,
): readonly Interrupt[] {
  const waiting = result === undefined ? interrupts : [];
  return isOlder ? [...answered, ...waiting] : waiting;
}

/**
 * The update of a task; null if it is not known. The update of the task that takes the input is stored in the task's own checkpoint, every
 * other update in the next checkpoint (`later`).
 */
function resultOf(task: PlannedTask, { id, next, writes }: CheckpointHead, later?: CheckpointHead): unknown {
  if (task.name === START) return writes?.[START] ?? null;
  if (later === undefined || later.parent !== id || later.source !== "loop") return null;
  const written =
    later.writes !== null && Object.hasOwn(later.writes, task.name) ? later.writes[task.name] : null;
  // A node that ran several times in one superstep has a list of updates, in the order of its tasks.
  const same = next.filter(({ name }) => name === task.name);
  return same.length > 1 && Array.isArray(written) ? (written[same.indexOf(task)] ?? null) : written;
}

/** The interrupts of a checkpoint that wait for an answer, in the order of its tasks. */
export function pendingInterruptsOf(
  checkpoint: Checkpoint,
  writes: readonly PendingTaskWrites[],
): readonly Interrupt[] {
  const left = new Map(writes.map((task) => [task.task, task]));
  return checkpoint.next.flatMap(({ id }) => {
    const task = left.get(id);
    return task === undefined || task.result !== undefined ? [] : task.interrupts;
  });
}
