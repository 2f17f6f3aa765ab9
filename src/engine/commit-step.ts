import type { PlannedTask, PendingTaskWrites } from "../model/checkpoint.ts";
import { toPlainError, type PlainError } from "../model/errors.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Emission, EngineStep } from "../ports/engine.ts";
import { compareTasks, type FinishedTask } from "../graph/superstep.ts";
import { finishedTaskOf, type SuperstepState } from "./superstep-state.ts";
import { planStep } from "./plan-step.ts";

/**
 * Ends a step in which each task has finished or waits for answers. If all have finished, commits their
 * writes and plans the next step. If at least one waits, pauses the run.
 */
export function commitStep(superstep: SuperstepState): EngineStep {
  const done: { readonly task: PlannedTask; readonly writes: PendingTaskWrites }[] = [];
  const waiting: Record<string, readonly Interrupt[]> = {};
  for (const task of superstep.tasks.values()) {
    const writes = superstep.pendingWrites.get(task.id);
    if (writes?.result !== undefined) done.push({ task, writes });
    else if (writes !== undefined && writes.interrupts.length > 0) waiting[task.id] = writes.interrupts;
    else if (superstep.pausedTasks.has(task.id)) waiting[task.id] = [];
    else throw new TypeError(`The task ${task.id} of "${task.name}" has not ended`);
  }
  for (const _ in waiting) return pause(superstep, waiting);
  if (done.length > 1) done.sort((a, b) => compareTasks(a.task, b.task));
  if (superstep.graphPosition.path.length > 0) {
    const parentCommands = done.flatMap(({ writes }) => parentCommandsOf(writes));
    if (parentCommands.length > 0)
      return { plan: { kind: "left", moves: parentCommands }, ...superstep.noChanges() };
  }
  const finished = done.map(({ task, writes }) => finishedTaskOf(task, writes));
  const after = finished.map((one) => one.task.name);
  const { machine } = superstep.definition;
  const taken = machine === undefined ? [] : finished.flatMap(({ update }) => machine.takenRuns(update));
  superstep.lastAllowedStep += taken.length * (machine?.stepsOfEvent ?? 0);
  const changed =
    machine === undefined ? [] : finished.flatMap(({ update }) => machine.changedChildren(update));
  const children = superstep.commitChildren(changed);
  let checkpoint;
  try {
    checkpoint = superstep.commit(finished, updatesOf(finished));
  } catch (thrown) {
    return superstep.failed(toClientError(thrown));
  }
  const step = planStep(superstep, {
    tasks: checkpoint.next,
    emissions: [
      ...superstep.endedChildTasks(finished, checkpoint.next),
      ...children.emissions,
      superstep.checkpointFact(false),
    ],
    checkpoints: [...children.checkpoints, checkpoint],
    after,
  });
  return taken.length === 0 ? step : { ...step, taken };
}

/** The updates of the step, by node. A node that ran several times has a list of updates. */
function updatesOf(finished: readonly FinishedTask[]): JsonObject {
  const [only] = finished;
  if (finished.length === 1 && only !== undefined) return { [only.task.name]: only.update };
  const updates: Record<string, unknown> = {};
  const counts = new Map<string, unknown[]>();
  for (const { task, update } of finished) {
    const several = counts.get(task.name);
    if (several === undefined) counts.set(task.name, [update]);
    else several.push(update);
  }
  for (const [name, list] of counts) updates[name] = list.length === 1 ? list[0] : list;
  return updates;
}

/** Pauses the run within the step. The writes of the step's finished tasks stay pending writes of the checkpoint. */
function pause(
  superstep: SuperstepState,
  waiting: { readonly [task: string]: readonly Interrupt[] },
): EngineStep {
  const emissions: Emission[] = [superstep.interruptFact(Object.values(waiting).flat())];
  for (const task of superstep.tasks.values()) {
    const interrupts = waiting[task.id];
    if (interrupts !== undefined && superstep.tries.has(task.id)) {
      emissions.push(...superstep.resultFacts(task, { interrupts }));
    }
  }
  const asked = Object.entries(waiting).filter(([, interrupts]) => interrupts.length > 0);
  return {
    plan: { kind: "paused", interrupts: Object.fromEntries(asked) },
    ...superstep.noChanges(),
    emissions,
  };
}

/** The commands for the parent graph that a finished task returned instead of an update; see `NodeResult.parentCommands`. */
export function parentCommandsOf({ result }: PendingTaskWrites): readonly unknown[] {
  const [first] = result?.goto ?? [];
  return isObject(first) && Array.isArray(first["leaves"]) ? (first["leaves"] as readonly unknown[]) : [];
}

/** Converts an error to the form that clients see. A `ServiceError` gets the name `InvalidUpdateError`, which LangGraph uses. */
export function toClientError(thrown: unknown, node?: string): PlainError {
  // Compares the error's name instead of using `instanceof`, because a graph file may have loaded its own copy of the
  // class.
  if (!(thrown instanceof Error) || thrown.name !== "ServiceError") return toPlainError(thrown);
  return {
    error: "InvalidUpdateError",
    message: node === undefined ? thrown.message : `Node "${node}": ${thrown.message}`,
  };
}
