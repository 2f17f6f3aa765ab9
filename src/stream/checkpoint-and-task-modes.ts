import type { JsonText } from "../codec/large-json.ts";
import { withoutUser } from "../model/auth-user.ts";
import type { CheckpointHead, PlannedTask } from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import { uuid6Time } from "../model/ids.ts";
import { EMPTY_OBJECT, type JsonObject } from "../model/json.ts";
import type { EarlierRunTaskResult } from "../model/earlier-run-task-results.ts";
import { childMachinePositionsAt, childrenWithin, nextNodeNames, ownTasks } from "../model/machine-child.ts";
import type { RunRecord } from "../model/run.ts";
import { checkpointMapOf } from "../model/start-checkpoint.ts";
import { toIso } from "../model/time.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import {
  type FactOf,
  json,
  eventName,
  type RenderContext,
  isShown,
  type EventRenderer,
  taskNs,
} from "./render-context.ts";
import { messageMeta } from "./render-data-loader.ts";

/** The stream modes `checkpoints`, `tasks` and `debug`. They show checkpoints, and the start and the end of tasks. */

type CheckpointFact = FactOf<"checkpoint">;
type TaskFact = FactOf<"task">;
type ResultFact = FactOf<"result">;

// --- checkpoints ---

const placeOf = (run: RunRecord, ns: string, id: string, head: CheckpointHead | null): JsonObject => ({
  thread_id: run.thread_id,
  checkpoint_ns: ns,
  checkpoint_id: id,
  checkpoint_map: checkpointMapOf(ns, id, head?.metadata ?? {}),
});

/** The configuration to continue from checkpoint `id`. The user of this run is left out, because another user may continue the thread. */
function configAt(run: RunRecord, ns: string, id: string): JsonObject {
  const { config } = run.kwargs;
  const place = { thread_id: run.thread_id, checkpoint_ns: ns, checkpoint_id: id };
  return { ...config, configurable: { ...EMPTY_OBJECT, ...withoutUser(config.configurable), ...place } };
}

function metadataOf(run: RunRecord, fact: CheckpointFact, head: CheckpointHead | null): JsonObject {
  const metadata = head?.metadata ?? {};
  return {
    ...metadata,
    source: head?.source ?? (fact.input ? "input" : "loop"),
    step: fact.step,
    parents: metadata["parents"] ?? {},
    run_id: head === null ? run.run_id : head.run_id,
    thread_id: run.thread_id,
  };
}

function plannedOf(
  run: RunRecord,
  ns: string,
  { id, name, path }: PlannedTask,
  { interrupts = [], error, result, subgraph }: EarlierRunTaskResult = {},
): JsonObject {
  const place = { thread_id: run.thread_id, checkpoint_ns: taskNs(ns, name, id) };
  return {
    id,
    name,
    path,
    interrupts,
    ...(error !== undefined && { error: errorText(error) }),
    ...(result !== undefined && { result: result.value }),
    ...(subgraph && { checkpoint: { ...place, checkpoint_id: null, checkpoint_map: null } }),
    state: null,
  };
}

/** A child machine, shown as a task that runs a subgraph. `own`: the last segment of the child's namespace, `name:id`. */
function childTaskOf(run: RunRecord, ns: string, own: string): JsonObject {
  const [name = "", id = ""] = own.split(":");
  return plannedOf(run, ns, { id, name, path: ["__pregel_push", name], triggers: [] }, { subgraph: true });
}

/**
 * Calls `put` with the data of the event, which includes the state if the reader wants states. Does nothing if the mode does not show the
 * fact, or if the checkpoint was deleted.
 */
function withCheckpoint(
  fact: CheckpointFact,
  context: RenderContext,
  put: (payload: JsonObject, head: CheckpointHead | null) => void,
): Eventually<void> {
  const { ns, id } = fact;
  const { run } = context.data;
  if (!isShown(ns, context) || fact.shows === "values") return;
  const { showsStates } = context;
  return andThen(showsStates ? context.state(ns, id) : EMPTY_OBJECT, (values) => {
    if (values === null) return undefined;
    return andThen(context.checkpoint(ns, id), (head) => {
      if (!showsStates && head === null) return;
      const parent = head?.parent ?? null;
      const payload = {
        config: configAt(run, ns, id),
        parent_config: parent === null ? null : configAt(run, ns, parent),
        ...(showsStates && { values }),
        metadata: metadataOf(run, fact, head),
        next: nextNodeNames(head?.next ?? []),
        tasks: [
          ...ownTasks(head?.next ?? []).map((task) => plannedOf(run, ns, task, fact.tasks?.[task.id])),
          ...childrenWithin(childMachinePositionsAt(head), ns).map(({ own }) => childTaskOf(run, ns, own)),
        ],
        checkpoint: placeOf(run, ns, id, head),
        parent_checkpoint: parent === null ? null : placeOf(run, ns, parent, head),
      };
      put(payload, head);
    });
  });
}

export const checkpointsModeCheckpoint: EventRenderer<"checkpoint"> = {
  put: (fact, id, context) =>
    withCheckpoint(fact, context, (payload) =>
      context.put(id, eventName("checkpoints", fact.ns), json(payload)),
    ),
};

export const debugModeCheckpoint: EventRenderer<"checkpoint"> = {
  put: (fact, id, context) =>
    withCheckpoint(fact, context, (payload, head) => {
      const at = head?.created_at ?? timeOf(fact.id) ?? context.data.run.created_at;
      context.put(id, eventName("debug", fact.ns), envelope("checkpoint", fact.step, at, payload));
    }),
};

/** The time in a checkpoint's id, in milliseconds; undefined if the id is not a version 6 UUID. */
function timeOf(id: string): number | undefined {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-/.test(id) ? uuid6Time(id).ms : undefined;
}

function envelope(type: string, step: number | null, at: number, payload: JsonObject): JsonText {
  return json({ step, type, timestamp: toIso(at), payload });
}

// --- tasks ---

/** A planned task, and the number of its superstep. */
export interface TaskWithStep {
  /** Null if the checkpoint that planned the task is no longer stored. */
  readonly step: number | null;
  readonly planned: PlannedTask | undefined;
}

export function findPlannedTask(
  context: RenderContext,
  fact: TaskFact | ResultFact,
): Eventually<TaskWithStep> {
  return andThen(context.checkpoint(fact.ns, fact.checkpoint), (head) => ({
    step: head === null ? null : head.step + 1,
    planned: head?.next.find(({ id }) => id === fact.id),
  }));
}

/** The metadata that the events and the messages of a task have. */
export function taskMeta(
  run: RunRecord,
  fact: TaskFact | ResultFact,
  { step, planned }: TaskWithStep,
): JsonObject {
  const ns = taskNs(fact.ns, fact.name, fact.id);
  return messageMeta(run, {
    langgraph_step: step,
    langgraph_node: fact.name,
    langgraph_triggers: planned?.triggers ?? (fact.t === "task" ? fact.triggers : []),
    langgraph_path: planned?.path ?? ["__pregel_pull", fact.name],
    langgraph_checkpoint_ns: ns,
    checkpoint_ns: ns,
  });
}

/** The input of a task: `sent` if `send()` created the task with an input, otherwise the state at the task's checkpoint. */
export function resolveTaskInput(
  context: RenderContext,
  { ns, checkpoint }: TaskFact | ResultFact,
  sent: PlannedTask["input"],
): Eventually<unknown> {
  return sent === undefined ? context.state(ns, checkpoint) : sent.value;
}

function withStart(
  fact: TaskFact,
  context: RenderContext,
  put: (payload: JsonObject, step: number | null) => void,
): Eventually<void> {
  if (!isShown(fact.ns, context)) return;
  const { id, name, triggers } = fact;
  return andThen(findPlannedTask(context, fact), (place) =>
    andThen(context.showsStates ? resolveTaskInput(context, fact, fact.input) : undefined, (input) => {
      const metadata = taskMeta(context.data.run, fact, place);
      const shown = context.showsStates ? { input } : {};
      put({ id, name, ...shown, triggers, interrupts: [], metadata }, place.step);
    }),
  );
}

/** An error as JSON text, as in the tasks of a thread's state. Clients parse the text, and show the error under its `name`. */
const errorText = ({ error, message }: PlainError) => JSON.stringify({ name: error, message });

/** The end of a task. Has all members in every case, as LangGraph shows it: `result` is empty for a task that has failed or waits. */
function resultOf({ id, name, update, written, error, interrupts }: ResultFact): JsonObject {
  const result = error === undefined ? (written ?? update ?? EMPTY_OBJECT) : EMPTY_OBJECT;
  return { id, name, result, interrupts, error: error === undefined ? null : errorText(error) };
}

export const tasksModeTask: EventRenderer<"task"> = {
  put: (fact, id, context) =>
    withStart(fact, context, (payload) => context.put(id, eventName("tasks", fact.ns), json(payload))),
};

export const debugModeTask: EventRenderer<"task"> = {
  put: (fact, id, context) =>
    withStart(fact, context, (payload, step) =>
      context.put(id, eventName("debug", fact.ns), envelope("task", step, fact.at, payload)),
    ),
};

export const tasksModeResult: EventRenderer<"result"> = {
  put(fact, id, context) {
    if (isShown(fact.ns, context) && fact.again === undefined)
      context.put(id, eventName("tasks", fact.ns), json(resultOf(fact)));
  },
};

export const debugModeResult: EventRenderer<"result"> = {
  put(fact, id, context) {
    if (!isShown(fact.ns, context) || fact.again !== undefined) return;
    return andThen(findPlannedTask(context, fact), ({ step }) =>
      context.put(id, eventName("debug", fact.ns), envelope("task_result", step, fact.at, resultOf(fact))),
    );
  },
};
