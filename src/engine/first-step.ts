import {
  blank,
  type CheckpointHead,
  type NewCheckpoint,
  type PlannedTask,
  type TaskWrites,
} from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import { fewBy } from "../model/small-map.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Command } from "../model/run.ts";
import { startOf, startWithin, type Within } from "../model/run-start.ts";
import type { Emission, Step } from "../ports/engine.ts";
import { START } from "../graph/definition-checks.ts";
import { answersById, refusal, resumes, taskNs, type Inward } from "../graph/interrupts.ts";
import { readEdge } from "../graph/node-return.ts";
import {
  applyUpdates,
  holdBack,
  planTasks,
  pull,
  push,
  startTask,
  Triggers,
  type Move,
} from "../graph/superstep.ts";
import { isAnsweredBy, placeAnswers, withInward } from "./resume-answers.ts";
import { migrate, misfit } from "./graph-migration.ts";
import { isGiven, readCommandUpdate, readTargets } from "./command-input.ts";
import { commitStep } from "./commit-step.ts";
import { NO_TASK, type Frame } from "./superstep-state.ts";
import { checkRequired, readInput, storedInput } from "./graph-input.ts";
import { plan } from "./plan-step.ts";
import { again } from "./state-update.ts";

/**
 * The first step of an attempt: applies the input, the command or the answers, or continues from the thread's checkpoint.
 * @throws ServiceError `resume.*`, `state.invalid`
 */
export function begin(frame: Frame): Step {
  if (frame.changed) {
    const error = migrate(frame);
    if (error !== null) return frame.failed(error);
  }
  if (frame.continued) return goOn(frame, { rerun: new Set(), announce: false });
  const { command, input } = frame.run.kwargs;
  if (command !== null && resumes(command)) return answer(frame, command);
  if (command !== null && (isGiven(command.update) || isGiven(command.goto))) return direct(frame, command);
  if (isGiven(input)) return takeInput(frame, input);
  const { head } = frame;
  if (head === null) {
    return frame.failed({
      error: "EmptyInputError",
      message: "The thread has nothing to go on with: its first run needs an input",
    });
  }
  if (isFork(frame)) return fork(frame, startWithin(frame.run.kwargs.config.configurable));
  frame.again = true;
  return goOn(frame, { rerun: idsOf(head.next), announce: true });
}

/**
 * The first step of a subgraph. A new one takes as its input the keys of `input` that both graphs have; one that has a
 * checkpoint continues from it, without its finished tasks.
 * @throws ServiceError `state.invalid`
 */
export function beginInner(frame: Frame, input: JsonObject): Step {
  const { head, place, run } = frame;
  if (head === null) return takeInput(frame, input);
  if (frame.changed) {
    const error = migrate(frame);
    if (error !== null) return frame.failed(error);
  }
  if (head.ns !== frame.ns) {
    frame.adopt({ values: frame.values, changes: whole(frame.values) });
    return fork(frame, place.from.slice(1));
  }
  // Checked before the answers are applied, so that the questions stay open on a failure.
  const error = frame.changed && head.next[0]?.name !== START ? misfit(frame, "step") : null;
  if (error !== null) return frame.failed(error);
  const { stored, rerun } = placeAnswers(frame, place.answers);
  for (const writes of stored) frame.left.set(writes.task, writes);
  const again = place.again ? idsOf(head.next) : [...rerun, ...withInward(frame)];
  return goOn(frame, { rerun: new Set(again), announce: head.run_id !== run.run_id, writes: stored });
}

const idsOf = (tasks: readonly PlannedTask[]) => new Set(tasks.map((task) => task.id));

/** True if the run names the checkpoint to start from, instead of using the latest one. */
function isFork({ run, head }: Frame): boolean {
  return head !== null && startOf(run.kwargs.config.configurable) === head.id;
}

// --- input ---

function takeInput(frame: Frame, input: unknown): Step {
  const kept = isObject(input) ? storedInput(frame.definition, input) : {};
  const made = frame.checkpoint("input", { [START]: kept }, (checkpoint, step) => [
    startTask({ ns: frame.ns, checkpoint, step }),
  ]);
  return start(frame, input, [made], [frame.announce(true)]);
}

/** Runs the built-in `__start__` task: it writes the input, and its edges select the first nodes. */
function start(
  frame: Frame,
  input: unknown,
  checkpoints: readonly NewCheckpoint[],
  emissions: Emission[],
): Step {
  const { definition } = frame;
  const task = frame.head?.next[0];
  if (task === undefined) throw new TypeError("The input's checkpoint has no task");
  const { update, untracked } = readInput(definition, input, task.id);
  checkRequired(definition, frame.values, update);
  if (untracked !== null) frame.loose.set(task.id, untracked);
  const goto = readEdge(definition, START, () => {
    const applied = applyUpdates(definition, frame.values, [update]);
    frame.fresh = { task: task.id, applied };
    return frame.withLoose(applied.values, untracked ?? {});
  });
  const made = frame.commit([{ task, update, goto }], null);
  emissions.push(frame.announce(false));
  return plan(frame, { tasks: made.next, emissions, checkpoints: [...checkpoints, made], after: [] });
}

// --- commands ---

/** Applies a command's `update` and `goto` in a checkpoint of their own; planned tasks are planned again with the targets. */
function direct(frame: Frame, command: Command): Step {
  const { definition, run } = frame;
  const { update, untracked } = readCommandUpdate(definition, command.update, run.run_id);
  const moves = readTargets(definition, command.goto);
  const waiting = (frame.head?.next ?? []).filter(({ name }) => name === START || definition.nodes.has(name));
  frame.patch(update);
  if (frame.changed) {
    const error = misfit(frame, "state");
    if (error !== null) return frame.failed(error);
    frame.markChanged();
  }
  frame.untracked = { ...frame.untracked, ...untracked };
  const made = frame.checkpoint("input", null, (checkpoint, step) => {
    const triggers = new Triggers();
    for (const move of moves) triggers.go(move);
    const deferred = holdBack(definition, triggers, frame.waiting.deferred, waiting.length > 0);
    frame.waiting = { ...frame.waiting, deferred };
    for (const task of waiting) {
      if (task.input !== undefined) triggers.sends.push({ node: task.name, input: task.input.value });
      else for (const trigger of task.triggers) triggers.pull(task.name, trigger);
    }
    return planTasks({ ns: frame.ns, checkpoint, step }, triggers.pulls, triggers.sends);
  });
  return plan(frame, { tasks: made.next, emissions: [frame.announce(false)], checkpoints: [made] });
}

// --- answers ---

function answer(frame: Frame, command: Command): Step {
  const { head, run } = frame;
  const error = frame.changed ? misfit(frame, "step") : null;
  if (error !== null) return frame.failed(error);
  const waiting = (head?.next ?? []).flatMap((task) => frame.left.get(task.id) ?? []);
  const given = waiting.some(({ resumes }) => isAnsweredBy(run.run_id, resumes));
  // An earlier attempt has stored the answers and has emitted their events.
  if (given && run.attempt > 1) return goOn(frame, { rerun: withInward(frame), announce: false });
  const pending = waiting.flatMap(({ interrupts }) => interrupts.map(({ id }) => id));
  const refused = refusal(command.resume, pending);
  if (refused !== null) throw new ServiceError(refused.code, refused.message);
  const byId = answersById(command.resume) ?? new Map([[pending[0] as string, command.resume]]);
  const answers: Inward = Object.fromEntries(
    [...byId].map(([id, value]) => [id, { value, run: run.run_id }] as const),
  );
  const { stored, rerun } = placeAnswers(frame, answers);
  const { update } = readCommandUpdate(frame.definition, command.update, run.run_id);
  const goto = readTargets(frame.definition, command.goto);
  if (update !== null || goto.length > 0) stored.push(noTask(head?.id ?? "", update, goto));
  for (const writes of stored) frame.left.set(writes.task, writes);
  return goOn(frame, { rerun, announce: true, writes: stored });
}

/** Pending writes of the command that brought an answer: they belong to no task and wait until the step commits. */
function noTask(checkpoint: string, update: JsonObject | null, goto: readonly Move[]): TaskWrites {
  return {
    ...blank({ ns: "", checkpoint, task: NO_TASK, name: "__input__" }),
    result: { value: update, goto },
  };
}

// --- going on ---

interface Going {
  /** Ids of tasks to run although they are paused at an interrupt. */
  readonly rerun: ReadonlySet<string>;
  /** Emit the event of the latest checkpoint again? */
  readonly announce: boolean;
  readonly writes?: readonly TaskWrites[];
}

/** Runs the unfinished tasks of the latest checkpoint's step. */
function goOn(frame: Frame, { rerun, announce, writes = [] }: Going): Step {
  const { head } = frame;
  if (head === null) throw new TypeError("There is no checkpoint to go on from");
  if (head.next[0]?.name === START) {
    // The run's own input also has the keys that are never stored in a checkpoint.
    const { run } = frame;
    const given = head.run_id === run.run_id && frame.ns === "";
    const input = given ? run.kwargs.input : head.writes?.[START];
    return start(frame, isObject(input) ? input : {}, [], []);
  }
  if (frame.changed && head.next.length > 0) {
    const error = misfit(frame, "step");
    if (error !== null) return frame.failed(error);
    frame.markChanged();
  }
  const all = [...head.next, ...extras(frame, head.id)];
  const tasks = all.filter(({ id }) => {
    const left = frame.left.get(id);
    if (left === undefined || rerun.has(id)) return left?.result === undefined;
    return left.result === undefined && left.interrupts.length === 0;
  });
  const emissions = announce ? [frame.announce(false)] : [];
  if (tasks.length > 0 || all.length === 0) return plan(frame, { tasks, all, emissions, writes });
  // All tasks have finished or are paused: the step can end at once.
  frame.tasks = fewBy(all, ({ id }) => id);
  const closed = commitStep(frame);
  return {
    ...closed,
    writes: [...writes, ...closed.writes],
    emissions: [...emissions, ...closed.emissions],
  };
}

/** Applies the update of the command that brought an answer, and returns the tasks that its `goto` adds to the step. */
function extras(frame: Frame, checkpoint: string): readonly PlannedTask[] {
  const writes = frame.left.get(NO_TASK);
  if (writes?.result === undefined || frame.head === null) return [];
  const { value, goto = [] } = writes.result;
  frame.patch(isObject(value) ? value : null);
  const site = { ns: frame.ns, checkpoint, step: frame.step };
  const planned = new Set(frame.head.next.map((task) => task.name));
  let pushes = frame.head.next.filter((task) => task.input !== undefined).length;
  const added: PlannedTask[] = [];
  for (const move of goto as readonly Move[]) {
    if (typeof move !== "string") added.push(push(site, move.node, pushes++, move.input));
    else if (frame.definition.nodes.get(move)?.defer === true) {
      const deferred = { ...frame.waiting.deferred, [move]: [`branch:to:${move}`] };
      frame.waiting = { ...frame.waiting, deferred };
    } else if (frame.definition.nodes.has(move) && !planned.has(move)) {
      planned.add(move);
      added.push(pull(site, move, [`branch:to:${move}`]));
    }
  }
  return added;
}

/**
 * Runs the step of a named checkpoint again on a new branch: makes a copy of the checkpoint as its child. This keeps the
 * thread's latest checkpoint the newest one, and pending writes of tasks and their subgraphs stay with the other branch.
 * @param within checkpoints of the subgraphs to continue from, instead of their start
 */
function fork(frame: Frame, within: readonly Within[]): Step {
  const { head } = frame;
  // The pending input makes the new branch when it is applied.
  if (head?.next[0]?.name === START) return goOn(frame, { rerun: new Set(), announce: true });
  const error = frame.changed && head?.next.length !== 0 ? misfit(frame, "step") : null;
  if (error !== null) return frame.failed(error);
  if (frame.changed) frame.markChanged();
  const made = frame.checkpoint("fork", null, (checkpoint, step) => {
    const { next } = again(head, { ns: frame.ns, checkpoint, step });
    return head === null ? next : ledOn(head, next, within);
  });
  const step = goOn(frame, { rerun: new Set(), announce: true });
  return { ...step, checkpoints: [made, ...step.checkpoints] };
}

/** The replanned tasks: the task whose subgraph made the first checkpoint in `within` continues from there. */
function ledOn(
  { ns, next: before }: CheckpointHead,
  next: readonly PlannedTask[],
  within: readonly Within[],
): readonly PlannedTask[] {
  const led = before.find(({ name, id }) => taskNs(ns, name, id) === within[0]?.ns);
  if (led === undefined) return next;
  const sent = (tasks: readonly PlannedTask[]) => tasks.filter(({ input }) => input !== undefined);
  const task =
    led.input === undefined
      ? next.find(({ name, input }) => name === led.name && input === undefined)
      : sent(next)[sent(before).indexOf(led)];
  return next.map((one) => (one === task ? { ...one, from: within } : one));
}

const whole = (values: JsonObject) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, { kind: "set", value } as const]));
