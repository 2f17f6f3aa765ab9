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
 * The first step of an attempt: applies the input, the command or the answers, or goes on from where the thread stands.
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
 * The first step of a subgraph: of a task that starts, from the keys of `input` that both states have; else from where it
 * got to, without what has ended there.
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
  // Before the answers are taken: the questions wait on.
  const error = frame.changed && head.next[0]?.name !== START ? misfit(frame, "step") : null;
  if (error !== null) return frame.failed(error);
  const { stored, rerun } = placeAnswers(frame, place.answers);
  for (const writes of stored) frame.left.set(writes.task, writes);
  const again = place.again ? idsOf(head.next) : [...rerun, ...withInward(frame)];
  return goOn(frame, { rerun: new Set(again), announce: head.run_id !== run.run_id, writes: stored });
}

const idsOf = (tasks: readonly PlannedTask[]) => new Set(tasks.map((task) => task.id));

/** Does the run start from a checkpoint that it names, instead of the latest one? */
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

/** Runs the hidden first task: it writes the input, and its edge names the first nodes. */
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

/** An update and targets from outside: a checkpoint of their own, beside what waited to run. */
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
  // An earlier attempt has stored them, and all that was to be told with them.
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

/** What came with an answer, kept until the step commits: it belongs to no task. */
function noTask(checkpoint: string, update: JsonObject | null, goto: readonly Move[]): TaskWrites {
  return {
    ...blank({ ns: "", checkpoint, task: NO_TASK, name: "__input__" }),
    result: { value: update, goto },
  };
}

// --- going on ---

interface Going {
  /** Tasks that run although they wait at an interrupt. */
  readonly rerun: ReadonlySet<string>;
  /** Are readers to be told of the checkpoint once more? */
  readonly announce: boolean;
  readonly writes?: readonly TaskWrites[];
}

/** Runs what is left to run of the latest checkpoint's step. */
function goOn(frame: Frame, { rerun, announce, writes = [] }: Going): Step {
  const { head } = frame;
  if (head === null) throw new TypeError("There is no checkpoint to go on from");
  if (head.next[0]?.name === START) {
    // The run's own input has more than the checkpoint keeps: what is never stored.
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
  // All have ended, or wait: the step can be closed at once.
  frame.tasks = fewBy(all, ({ id }) => id);
  const closed = commitStep(frame);
  return {
    ...closed,
    writes: [...writes, ...closed.writes],
    emissions: [...emissions, ...closed.emissions],
  };
}

/** Applies the update that came with an answer; the tasks that its targets add to the step. */
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
 * Runs a step once more, on a branch of its own: from a checkpoint like the one that was named, whose child it is. So the
 * thread's latest checkpoint is the newest one, and what tasks, and subgraphs in them, have left stays with the other branch.
 * `within`: where a subgraph of the step is to begin instead of at its start.
 */
function fork(frame: Frame, within: readonly Within[]): Step {
  const { head } = frame;
  // The input that is to be applied makes a branch of its own.
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

/** Tasks that were planned once more: the one in whose place a subgraph stood at the first of `within` goes on from there. */
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
