import type { PlannedTask, TaskWrites } from "../model/checkpoint.ts";
import { plainError, type PlainError } from "../model/errors.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Emission, Step } from "../ports/engine.ts";
import { inOrder, type Left } from "../graph/superstep.ts";
import { leftOf, type Frame } from "./superstep-state.ts";
import { plan } from "./plan-step.ts";

/** Ends a step whose tasks have all finished or wait: commits their writes and plans on, or pauses the run. */
export function commitStep(frame: Frame): Step {
  const done: { readonly task: PlannedTask; readonly writes: TaskWrites }[] = [];
  const waiting: Record<string, readonly Interrupt[]> = {};
  for (const task of frame.tasks.values()) {
    const writes = frame.left.get(task.id);
    if (writes?.result !== undefined) done.push({ task, writes });
    else if (writes !== undefined && writes.interrupts.length > 0) waiting[task.id] = writes.interrupts;
    else if (frame.held.has(task.id)) waiting[task.id] = [];
    else throw new TypeError(`The task ${task.id} of "${task.name}" has not ended`);
  }
  for (const _ in waiting) return pause(frame, waiting);
  if (done.length > 1) done.sort((a, b) => inOrder(a.task, b.task));
  if (frame.place.path.length > 0) {
    const leaves = done.flatMap(({ writes }) => leavesOf(writes));
    if (leaves.length > 0) return { plan: { kind: "left", moves: leaves }, ...frame.still() };
  }
  const lefts = done.map(({ task, writes }) => leftOf(task, writes));
  const after = lefts.map((left) => left.task.name);
  let made;
  try {
    made = frame.commit(lefts, updatesOf(lefts));
  } catch (thrown) {
    return frame.failed(errorOf(thrown));
  }
  return plan(frame, {
    tasks: made.next,
    emissions: [frame.announce(false)],
    checkpoints: [made],
    after,
  });
}

/** The updates of the step, by node: a list for a node that ran several times. */
function updatesOf(lefts: readonly Left[]): JsonObject {
  const [only] = lefts;
  if (lefts.length === 1 && only !== undefined) return { [only.task.name]: only.update };
  const updates: Record<string, unknown> = {};
  const counts = new Map<string, unknown[]>();
  for (const { task, update } of lefts) {
    const several = counts.get(task.name);
    if (several === undefined) counts.set(task.name, [update]);
    else several.push(update);
  }
  for (const [name, list] of counts) updates[name] = list.length === 1 ? list[0] : list;
  return updates;
}

/** Pauses the run within the step: the writes of its finished tasks stay pending, stored beside the checkpoint. */
function pause(frame: Frame, waiting: { readonly [task: string]: readonly Interrupt[] }): Step {
  const emissions: Emission[] = [frame.pauseFact(Object.values(waiting).flat())];
  for (const task of frame.tasks.values()) {
    const interrupts = waiting[task.id];
    if (interrupts !== undefined && frame.tries.has(task.id)) {
      emissions.push({ fact: frame.resultFact(task, { interrupts }) });
    }
  }
  const asked = Object.entries(waiting).filter(([, interrupts]) => interrupts.length > 0);
  return { plan: { kind: "paused", interrupts: Object.fromEntries(asked) }, ...frame.still(), emissions };
}

/** The commands for the parent graph that a finished task returned instead of an update: see `Reading.leaves`. */
export function leavesOf({ result }: TaskWrites): readonly unknown[] {
  const [first] = result?.goto ?? [];
  return isObject(first) && Array.isArray(first["leaves"]) ? (first["leaves"] as readonly unknown[]) : [];
}

/** The error that clients see: a `ServiceError` becomes an `InvalidUpdateError`, as LangGraph calls it. */
export function errorOf(thrown: unknown, node?: string): PlainError {
  // By name: a graph file may have loaded its own copy of the class.
  if (!(thrown instanceof Error) || thrown.name !== "ServiceError") return plainError(thrown);
  return {
    error: "InvalidUpdateError",
    message: node === undefined ? thrown.message : `Node "${node}": ${thrown.message}`,
  };
}
