import {
  emptyWrites,
  type CheckpointHead,
  type NewCheckpoint,
  type PlannedTask,
  type PendingTaskWrites,
} from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import { smallMapBy } from "../model/small-map.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { type Command, graphCommandOf, graphInputOf } from "../model/run.ts";
import {
  rootCheckpointOf,
  subgraphCheckpointsOf,
  type SubgraphCheckpoint,
} from "../model/start-checkpoint.ts";
import type { Timer } from "../model/machine-timer.ts";
import type { Emission, EngineStep } from "../ports/engine.ts";
import { START } from "../graph/definition-checks.ts";
import {
  answersById,
  resumeRefusal,
  isResume,
  taskNamespace,
  type SubgraphAnswers,
} from "../graph/interrupts.ts";
import { chooseTargets } from "../graph/node-return.ts";
import {
  applyUpdates,
  deferNodes,
  planTasks,
  pullTask,
  pushTask,
  startTask,
  NextStepTriggers,
  type StoredTarget,
} from "../graph/superstep.ts";
import { hasAnswerOf, addAnswers, tasksWithSubgraphAnswers } from "./resume-answers.ts";
import { migrateState, graphChangeError, machineContinuationError } from "./graph-migration.ts";
import { isGiven, normalizeCommandUpdate, normalizeGoto } from "./command-input.ts";
import { commitStep, toClientError } from "./commit-step.ts";
import { NULL_TASK_ID, type SuperstepState } from "./superstep-state.ts";
import { checkRequiredKeys, normalizeInput, storedInput } from "./graph-input.ts";
import { planStep } from "./plan-step.ts";
import { copyPlannedTasks } from "./compute-state-update.ts";

/**
 * The first step of an attempt: applies the input, the command or the answers, or continues from the thread's checkpoint.
 * @throws ServiceError `resume.*`, `state.invalid`
 */
export function planFirstStep(superstep: SuperstepState): EngineStep {
  if (superstep.isGraphChanged) {
    const error = migrateState(superstep);
    if (error !== null) return superstep.failed(error);
  }
  if (superstep.isContinued) return continueStep(superstep, { rerun: new Set(), announce: false });
  const { kwargs } = superstep.run;
  const { timer } = kwargs;
  if (timer !== undefined) return takeTimer(superstep, timer);
  const command = graphCommandOf(kwargs);
  const input = graphInputOf(kwargs);
  if (command !== null && isResume(command)) return applyAnswers(superstep, command);
  if (command !== null && (isGiven(command.update) || isGiven(command.goto)))
    return applyCommand(superstep, command);
  const { head } = superstep;
  // A graph made from an XState machine begins even without an input, if the machine's context needs none.
  if (isGiven(input) || (head === null && superstep.definition.machine !== undefined))
    return applyInput(superstep, input);
  if (head === null) {
    return superstep.failed({
      error: "EmptyInputError",
      message: "The thread has no state to continue from: its first run needs an input",
    });
  }
  if (isFork(superstep)) {
    // Checks the machine before the branch begins, so that the thread keeps its question if the check fails.
    const machineError = machineContinuationError(superstep.definition, head, superstep.values);
    if (machineError !== null) return superstep.failed(machineError);
    return fork(superstep, subgraphCheckpointsOf(superstep.run.kwargs.config.configurable));
  }
  superstep.rerunAll = true;
  return continueStep(superstep, { rerun: idsOf(head.next), announce: true });
}

/**
 * The first step of a subgraph. Without a checkpoint, the subgraph applies `input`. With a checkpoint, it continues from there, and does
 * not run finished tasks again.
 * @throws ServiceError `state.invalid`
 */
export function planFirstSubgraphStep(superstep: SuperstepState, input: JsonObject): EngineStep {
  const { head, graphPosition, run } = superstep;
  if (head === null) return applyInput(superstep, input);
  if (superstep.isGraphChanged) {
    const error = migrateState(superstep);
    if (error !== null) return superstep.failed(error);
  }
  // A checkpoint with another namespace belongs to another branch of the thread: its step runs again, on a new branch.
  if (head.ns !== superstep.ns) {
    superstep.replaceValues({ values: superstep.values, changes: setAll(superstep.values) });
    return fork(superstep, graphPosition.startFrom.slice(1));
  }
  // Checks the graph before the answers are applied, so that the interrupts stay open if the check fails.
  const error =
    superstep.isGraphChanged && head.next[0]?.name !== START ? graphChangeError(superstep, "step") : null;
  if (error !== null) return superstep.failed(error);
  const { stored, rerun } = addAnswers(superstep, graphPosition.answers);
  for (const writes of stored) superstep.pendingWrites.set(writes.task, writes);
  const again = graphPosition.rerunPaused
    ? idsOf(head.next)
    : [...rerun, ...tasksWithSubgraphAnswers(superstep)];
  return continueStep(superstep, {
    rerun: new Set(again),
    announce: head.run_id !== run.run_id,
    writes: stored,
  });
}

const idsOf = (tasks: readonly PlannedTask[]) => new Set(tasks.map((task) => task.id));

/** True if the run names the checkpoint to start from, instead of using the latest one. */
function isFork({ run, head }: SuperstepState): boolean {
  return head !== null && rootCheckpointOf(run.kwargs.config.configurable) === head.id;
}

// --- input ---

function applyInput(superstep: SuperstepState, input: unknown): EngineStep {
  const kept = isObject(input) ? storedInput(superstep.definition, input) : {};
  const made = superstep.checkpoint("input", { [START]: kept }, (checkpoint, step) => [
    startTask({ ns: superstep.ns, checkpoint, step }),
  ]);
  return runStartTask(superstep, input, [made], [superstep.checkpointFact(true)]);
}

/** Runs the built-in `__start__` task. It writes the input, and its edges select the first nodes. */
function runStartTask(
  superstep: SuperstepState,
  input: unknown,
  checkpoints: readonly NewCheckpoint[],
  emissions: Emission[],
): EngineStep {
  const { definition } = superstep;
  const task = superstep.head?.next[0];
  if (task === undefined) throw new TypeError("The input's checkpoint has no task");
  const { update, untracked } = normalizeInput(definition, input, task.id);
  checkRequiredKeys(definition, superstep.values, update);
  if (untracked !== null) superstep.untrackedWrites.set(task.id, untracked);
  const goto = chooseTargets(definition, START, () => {
    const applied = applyUpdates(definition, superstep.values, [update]);
    superstep.precomputed = { task: task.id, applied };
    return superstep.withUntracked(applied.values, untracked ?? {});
  });
  const made = superstep.commit([{ task, update, goto }], null);
  emissions.push(superstep.checkpointFact(false));
  return planStep(superstep, { tasks: made.next, emissions, checkpoints: [...checkpoints, made], after: [] });
}

// --- commands ---

/**
 * Applies a command's `update` and `goto`, and makes a new checkpoint. The new checkpoint plans the tasks that were already
 * planned, and the targets of `goto`.
 */
function applyCommand(superstep: SuperstepState, command: Command): EngineStep {
  const { definition, run } = superstep;
  const { update, untracked } = normalizeCommandUpdate(definition, command.update, run.run_id);
  const moves = normalizeGoto(definition, command.goto);
  const waiting = (superstep.head?.next ?? []).filter(
    ({ name }) => name === START || definition.nodes.has(name),
  );
  superstep.updateValues(update);
  // The update may name a version that the graph has.
  const machineError = machineContinuationError(definition, superstep.head, superstep.values);
  if (machineError !== null) return superstep.failed(machineError);
  if (superstep.isGraphChanged) {
    const error = graphChangeError(superstep, "state");
    if (error !== null) return superstep.failed(error);
    superstep.markGraphChanged();
  }
  superstep.untracked = { ...superstep.untracked, ...untracked };
  const made = superstep.checkpoint("input", null, (checkpoint, step) => {
    const triggers = new NextStepTriggers();
    for (const move of moves) triggers.addTarget(move);
    const deferred = deferNodes(definition, triggers, superstep.waiting.deferred, waiting.length > 0);
    superstep.waiting = { ...superstep.waiting, deferred };
    for (const task of waiting) {
      if (task.input !== undefined) triggers.sends.push({ node: task.name, input: task.input.value });
      else for (const trigger of task.triggers) triggers.addPull(task.name, trigger);
    }
    return planTasks({ ns: superstep.ns, checkpoint, step }, triggers.pulls, triggers.sends);
  });
  return planStep(superstep, {
    tasks: made.next,
    emissions: [superstep.checkpointFact(false)],
    checkpoints: [made],
  });
}

/**
 * Sends the event of a timer to the machine. If the timer was cancelled before the run started, or the machine fails with the event, nothing
 * changes.
 */
function takeTimer(superstep: SuperstepState, timer: Timer): EngineStep {
  const { definition, values, head, pendingWrites } = superstep;
  let update: JsonObject | null;
  try {
    update = definition.machine?.timerUpdate(values, timer) ?? null;
  } catch (thrown) {
    return superstep.failed(toClientError(thrown));
  }
  if (update !== null) return applyCommand(superstep, { update });
  if (head === null || head.next.length === 0) return { plan: { kind: "done" }, ...superstep.noChanges() };
  const waiting = [...pendingWrites.values()].filter(({ interrupts }) => interrupts.length > 0);
  const interrupts = Object.fromEntries(waiting.map((one) => [one.task, one.interrupts]));
  return { plan: { kind: "paused", interrupts }, ...superstep.noChanges() };
}

function applyAnswers(superstep: SuperstepState, command: Command): EngineStep {
  const { head, run } = superstep;
  const error = superstep.isGraphChanged ? graphChangeError(superstep, "step") : null;
  if (error !== null) return superstep.failed(error);
  const waiting = (head?.next ?? []).flatMap((task) => superstep.pendingWrites.get(task.id) ?? []);
  const given = waiting.some(({ resumes }) => hasAnswerOf(run.run_id, resumes));
  // An earlier attempt of the run has already stored the answers and emitted the events.
  if (given && run.attempt > 1)
    return continueStep(superstep, { rerun: tasksWithSubgraphAnswers(superstep), announce: false });
  const pending = waiting.flatMap(({ interrupts }) => interrupts.map(({ id }) => id));
  const refused = resumeRefusal(command.resume, pending);
  if (refused !== null) throw new ServiceError(refused.code, refused.message);
  const byId = answersById(command.resume) ?? new Map([[pending[0] as string, command.resume]]);
  const answers: SubgraphAnswers = Object.fromEntries(
    [...byId].map(([id, value]) => [id, { value, run: run.run_id }] as const),
  );
  const { stored, rerun } = addAnswers(superstep, answers);
  const { update } = normalizeCommandUpdate(superstep.definition, command.update, run.run_id);
  const goto = normalizeGoto(superstep.definition, command.goto);
  if (update !== null || goto.length > 0) stored.push(commandWrites(head?.id ?? "", update, goto));
  for (const writes of stored) superstep.pendingWrites.set(writes.task, writes);
  return continueStep(superstep, { rerun, announce: true, writes: stored });
}

/** The pending writes for the `update` and `goto` of a command with an answer. They belong to no task, and are applied when the step commits. */
function commandWrites(
  checkpoint: string,
  update: JsonObject | null,
  goto: readonly StoredTarget[],
): PendingTaskWrites {
  return {
    ...emptyWrites({ ns: "", checkpoint, task: NULL_TASK_ID, name: "__input__" }),
    result: { value: update, goto },
  };
}

// --- continuing a step ---

interface ContinueOptions {
  /** Ids of tasks that run even if they are paused at an interrupt. Other paused tasks stay paused. */
  readonly rerun: ReadonlySet<string>;
  /** True: the event of the latest checkpoint is emitted again. */
  readonly announce: boolean;
  readonly writes?: readonly PendingTaskWrites[];
}

/** Runs the unfinished tasks of the latest checkpoint's step. */
function continueStep(
  superstep: SuperstepState,
  { rerun, announce, writes = [] }: ContinueOptions,
): EngineStep {
  const { head } = superstep;
  if (head === null) throw new TypeError("There is no checkpoint to go on from");
  if (head.next[0]?.name === START) {
    // If this run has made the checkpoint, uses the run's own input, because the checkpoint lacks the keys that are
    // never stored.
    const { run } = superstep;
    const given = head.run_id === run.run_id && superstep.ns === "";
    const input = given ? graphInputOf(run.kwargs) : head.writes?.[START];
    return runStartTask(superstep, isObject(input) ? input : {}, [], []);
  }
  if (superstep.isGraphChanged && head.next.length > 0) {
    const error = graphChangeError(superstep, "step");
    if (error !== null) return superstep.failed(error);
    superstep.markGraphChanged();
  }
  const all = [...head.next, ...commandTasks(superstep, head.id)];
  // The update of the command may name a version that the graph has. If the machine cannot continue, the run's answer is not stored, so that
  // the question stays open, and no later run gives the machine that answer.
  const machineError = machineContinuationError(superstep.definition, head, superstep.values);
  if (machineError !== null) return superstep.failed(machineError);
  const tasks = all.filter(({ id }) => {
    const taskWrites = superstep.pendingWrites.get(id);
    if (taskWrites === undefined || rerun.has(id)) return taskWrites?.result === undefined;
    return taskWrites.result === undefined && taskWrites.interrupts.length === 0;
  });
  const emissions = announce ? [superstep.checkpointFact(false)] : [];
  if (tasks.length > 0 || all.length === 0) return planStep(superstep, { tasks, all, emissions, writes });
  // All tasks have finished or are paused: the step can end at once.
  superstep.tasks = smallMapBy(all, ({ id }) => id);
  const closed = commitStep(superstep);
  return {
    ...closed,
    writes: [...writes, ...closed.writes],
    emissions: [...emissions, ...closed.emissions],
  };
}

/**
 * Applies the `update` of a command that also had an answer, from the command's pending writes. Returns the tasks that
 * the command's `goto` adds to the step.
 */
function commandTasks(superstep: SuperstepState, checkpoint: string): readonly PlannedTask[] {
  const writes = superstep.pendingWrites.get(NULL_TASK_ID);
  if (writes?.result === undefined || superstep.head === null) return [];
  const { value, goto = [] } = writes.result;
  superstep.updateValues(isObject(value) ? value : null);
  const site = { ns: superstep.ns, checkpoint, step: superstep.step };
  const planned = new Set(superstep.head.next.map((task) => task.name));
  let pushes = superstep.head.next.filter((task) => task.input !== undefined).length;
  const added: PlannedTask[] = [];
  const triggers = new NextStepTriggers();
  for (const move of goto as readonly StoredTarget[]) {
    if (typeof move !== "string") added.push(pushTask(site, move.node, pushes++, move.input));
    else if (superstep.definition.nodes.get(move)?.defer === true) triggers.addTarget(move);
    else if (superstep.definition.nodes.has(move) && !planned.has(move)) {
      planned.add(move);
      added.push(pullTask(site, move, [`branch:to:${move}`]));
    }
  }
  const deferred = deferNodes(superstep.definition, triggers, superstep.waiting.deferred, true);
  superstep.waiting = { ...superstep.waiting, deferred };
  return added;
}

/**
 * Runs the step of a named checkpoint again, on a new branch that begins with a copy of that checkpoint. The copy becomes the thread's
 * newest checkpoint, and its parent is the original. The pending writes of tasks and their subgraphs stay with the old branch.
 * @param within the checkpoints from which subgraphs continue, instead of starting anew
 */
function fork(superstep: SuperstepState, within: readonly SubgraphCheckpoint[]): EngineStep {
  const { head } = superstep;
  // If the checkpoint has a pending input, applying it makes the new branch.
  if (head?.next[0]?.name === START) return continueStep(superstep, { rerun: new Set(), announce: true });
  const error =
    superstep.isGraphChanged && head?.next.length !== 0 ? graphChangeError(superstep, "step") : null;
  if (error !== null) return superstep.failed(error);
  if (superstep.isGraphChanged) superstep.markGraphChanged();
  const made = superstep.checkpoint("fork", null, (checkpoint, step) => {
    const { next } = copyPlannedTasks(head, { ns: superstep.ns, checkpoint, step });
    return head === null ? next : continueSubgraph(head, next, within);
  });
  const step = continueStep(superstep, { rerun: new Set(), announce: true });
  return { ...step, checkpoints: [made, ...step.checkpoints] };
}

/**
 * Finds the planned task whose subgraph made the first checkpoint of `within`, and sets the task's `from` to `within`,
 * so that the subgraph continues from these checkpoints.
 */
function continueSubgraph(
  { ns, next: before }: CheckpointHead,
  next: readonly PlannedTask[],
  within: readonly SubgraphCheckpoint[],
): readonly PlannedTask[] {
  const subgraphTask = before.find(({ name, id }) => taskNamespace(ns, name, id) === within[0]?.ns);
  if (subgraphTask === undefined) return next;
  const sent = (tasks: readonly PlannedTask[]) => tasks.filter(({ input }) => input !== undefined);
  const task =
    subgraphTask.input === undefined
      ? next.find(({ name, input }) => name === subgraphTask.name && input === undefined)
      : sent(next)[sent(before).indexOf(subgraphTask)];
  return next.map((one) => (one === task ? { ...one, from: within } : one));
}

const setAll = (values: JsonObject) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, { kind: "set", value } as const]));
