import type { PlannedTask } from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import type { PlainError } from "../model/errors.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Plan, TaskOutcome } from "../ports/engine.ts";
import type { GraphDefinition } from "../graph/definition.ts";
import { unpackSubgraphAnswers, taskNamespace } from "../graph/interrupts.ts";
import { to, type ToParent } from "../graph/commands.ts";
import { findPartialMessagesKey } from "./keep-partial-messages.ts";
import type { SuperstepState } from "./superstep-state.ts";
import type { GraphPosition } from "./graph-position.ts";

/**
 * The position of the subgraph that a task runs: its namespace, its path, and the checkpoints of the graphs around it.
 */
export function subgraphPositionOf(superstep: SuperstepState, task: PlannedTask): GraphPosition {
  const { graphPosition, head, pendingWrites, rerunAll } = superstep;
  return {
    ns: taskNamespace(graphPosition.ns, task.name, task.id),
    path: [...graphPosition.path, task.name],
    parentGraph: superstep.definition,
    parents: { ...graphPosition.parents, [graphPosition.ns]: head?.id ?? "" },
    answers: unpackSubgraphAnswers(pendingWrites.get(task.id)?.resumes ?? []),
    keepsPartial: graphPosition.keepsPartial && findPartialMessagesKey(superstep.definition) !== undefined,
    rerunPaused: rerunAll || graphPosition.rerunPaused,
    startFrom: task.from ?? [],
  };
}

/**
 * The input of a subgraph. It has the keys of the task's input that the subgraph's state has too. If the subgraph declares an `input`, only
 * the keys named there are included.
 * @throws ServiceError `state.invalid`
 */
export function subgraphInput(
  { rules, input: allowed }: GraphDefinition,
  input: unknown,
  { path }: GraphPosition,
): JsonObject {
  if (!isObject(input)) {
    throw new ServiceError("state.invalid", `the input of "${path.at(-1)}" must be an object of state keys`);
  }
  return Object.fromEntries(
    Object.entries(input).filter(
      ([key, value]) => rules.has(key) && (allowed === null || allowed.has(key)) && value !== undefined,
    ),
  );
}

/**
 * The outcome of a task whose subgraph has ended, has failed, is paused, or was left for the parent graph.
 */
export function subgraphOutcome(
  superstep: SuperstepState,
  plan: Plan | null,
  failure: PlainError | null,
  refused: boolean,
): TaskOutcome {
  if (failure !== null) {
    const waiting = openInterrupts(superstep);
    if (refused) return { kind: "failed", error: failure, refused: { interrupts: waiting, places: [] } };
    return { kind: "failed", error: failure, waiting };
  }
  switch (plan?.kind) {
    case "done":
      return { kind: "returned", value: returnedUpdate(superstep) };
    case "paused":
      return { kind: "interrupted", interrupts: Object.values(plan.interrupts).flat() };
    case "left":
      return {
        kind: "returned",
        value: (plan.moves as readonly ToParent[]).map(({ parent, write }) => to(parent, write)),
      };
    default:
      throw new TypeError(`The subgraph at ${superstep.ns} has not come to an end`);
  }
}

/** The open interrupts of the step's tasks. */
function openInterrupts({ pendingWrites, head }: SuperstepState): readonly Interrupt[] {
  return (head?.next ?? []).flatMap(({ id }) => {
    const writes = pendingWrites.get(id);
    return writes === undefined || writes.result !== undefined ? [] : writes.interrupts;
  });
}

/**
 * The update that a subgraph returns to its parent: the keys that its nodes have written and that the parent's state has
 * too. A graph with `output` returns only the keys named there.
 */
function returnedUpdate({ state, writtenKeys, graphPosition, definition }: SuperstepState): JsonObject {
  const shown = definition.output;
  const update: Record<string, unknown> = {};
  for (const key of writtenKeys ?? []) {
    if (shown !== null && !shown.includes(key)) continue;
    if (graphPosition.parentGraph?.rules.has(key) && Object.hasOwn(state, key)) update[key] = state[key];
  }
  return update;
}

/**
 * Converts the failure of a subgraph to an `Error` for the `when` function of its node's retry policy. The error has only a
 * name and a message.
 */
export function errorFromPlain({ error, message }: PlainError): Error {
  return Object.assign(new Error(message), { name: error });
}
