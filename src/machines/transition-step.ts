import type { Ctx } from "../graph/node-context.ts";
import { taskNamespace } from "../graph/interrupts.ts";
import { uuid5 } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import type { MachineMailbox, WaitingEvent } from "../model/machine-mailbox.ts";
import { isSameTimer, type Timer } from "../model/machine-timer.ts";
import { computeMacrostep, type PrecomputedMacrosteps } from "./precomputed-macrosteps.ts";
import { nameInNamespace } from "./machine-node-names.ts";
import { canTake, whyNotEvent } from "./event-validation.ts";
import {
  addressKey,
  type ChildrenByAddress,
  isSameActorAddress,
  activeChildState,
  namespaceOfActor,
  STOPPED,
  storedChange,
} from "./stored-child-machines.ts";
import {
  type Address,
  type ChildState,
  type Effect,
  isWithin,
  type MachineDriver,
  type MachineEvent,
  type StoredSnapshot,
  type AcceptedByState,
} from "./machine-driver.ts";
import {
  storedChildrenOf,
  EVENTS_KEY,
  INPUT_KEY,
  OUTPUT_KEY,
  MACHINE_KEYS,
  type PendingEvent,
  SNAPSHOT_KEY,
  type StoredChild,
  snapshotOf,
  STATE_KEY,
  type ReplayableMacrostep,
  type SetTimer,
  storedMachineOf,
  type StoredMachine,
  timersOf,
  VERSION_KEY,
} from "./machine-state.ts";
import { toStorableWithErrors } from "./stored-errors.ts";
import type { MachineVersions } from "./machine-versions.ts";
import { defaultInput } from "./machine-input.ts";

/**
 * Marks a stored machine that `transitionStep` has made and whose values can all be stored as they are, so that the channel does not copy
 * it. No client can set the mark, because JSON has no symbols.
 */
export const STORABLE = Symbol("storable");
/** A stored machine that may have the mark. */
export type Marked = { [STORABLE]?: true };

/**
 * The first of the waiting events that the machine takes in its state, without an error; undefined if it takes none. The other events stay,
 * for a later state or the end of the run. An event that fails then fails its own run.
 */
function eventToTake(
  { driver, values, run, precomputed }: MachineAtWork,
  all: readonly WaitingEvent[],
): WaitingEvent | undefined {
  const snapshot = snapshotOf(values);
  let accepted: AcceptedByState | undefined;
  return all.find((one) => {
    if (!("timer" in one)) {
      accepted ??= driver.accepted(snapshot);
      if (whyNotEvent(one.event, accepted) !== undefined || !canTake(accepted, one.event as MachineEvent))
        return false;
    }
    const step = stepOfPending(pendingOf(one), snapshot, timersOf(values));
    if (step === undefined) return false;
    const key = precomputedKey(run, one.run);
    const { result } = precomputed.compute(values[SNAPSHOT_KEY], key, () => computeMacrostep(driver, step));
    return result !== undefined;
  });
}

/** A machine whose promise actors are running, and which may take events of queued runs meanwhile. `run`: the run in progress. */
interface MachineAtWork {
  readonly driver: MachineDriver;
  readonly values: JsonObject;
  readonly run: string;
  readonly precomputed: PrecomputedMacrosteps;
}

/**
 * The key of an event in {@link PrecomputedMacrosteps}. `run`: the run that processes the event. `sender`: the run that has sent it, if that is
 * another one.
 */
export const precomputedKey = (run: string, sender = run) => `${run} ${sender}`;

/** The macrostep that processes an event or a timer; undefined if the timer is not set any more. */
function stepOfPending(
  pending: Exclude<PendingEvent, { readonly actor: Address }>,
  before: StoredSnapshot,
  timers: readonly SetTimer[],
): ReplayableMacrostep | undefined {
  if ("event" in pending) return { before, message: { to: [], event: pending.event } };
  const timer = timers.find((one) => isSameTimer(one, pending.timer));
  return timer && { before, message: { to: timer.to, event: timer.event } };
}

const pendingOf = (sent: WaitingEvent) =>
  "timer" in sent ? { timer: sent.timer } : { event: sent.event as MachineEvent };

/** Whether the machine takes one of the events of queued runs in its current state. Called while a promise actor of the machine runs. */
export function isEventDue(machine: Omit<MachineAtWork, "values">, mailbox: MachineMailbox): boolean {
  const waiting = mailbox.waiting();
  if (waiting.length === 0) return false;
  const { values } = mailbox;
  // The custom actions of the last macrostep run first. When they have ended, this superstep ends, and the waiting events are checked
  // again.
  if (storedMachineOf(values).actions.length > 0) return false;
  return eventToTake({ ...machine, values }, waiting) !== undefined;
}

/**
 * Processes all pending events, each in a separate macrostep. If there are none and promise actors are running, processes one event of a
 * queued run, if the machine takes one. A machine that begins processes only its input.
 * @returns `update`: the changes of the state, which contain the stored machine (`machine`); `work`: the promise actors that are to run
 */
export function transitionStep(
  versions: MachineVersions,
  precomputed: PrecomputedMacrosteps,
  stored: JsonObject,
  ctx: Ctx,
) {
  const input = stored[INPUT_KEY];
  const begins = input !== undefined;
  const { driver, state } = begins
    ? { driver: versions.current, state: stored }
    : versions.continuationOf(stored);
  // The numbers of actors and timers continue, so that results and timers of the thread's earlier machine are not taken for those of the
  // new machine.
  const { started: lastNumber = 0, rest: restBefore } =
    (state[SNAPSHOT_KEY] as Partial<StoredMachine> | undefined) ?? {};
  let started = lastNumber;
  let work = begins ? [] : [...storedMachineOf(state).work];
  let timers = begins ? [] : [...timersOf(state)];
  const children: ChildrenByAddress = new Map(
    (begins ? [] : (storedMachineOf(state).children ?? [])).map((one) => [addressKey(one.at), one]),
  );
  const changed = new Map<number, StoredChild & { read(): ChildState }>();
  let snapshot = begins ? null : snapshotOf(state);
  let output: unknown = begins ? null : (state[OUTPUT_KEY] ?? null);
  for (const { id, delay } of begins ? [] : (storedMachineOf(state).delayed ?? [])) {
    const timer = { id: `${++started}:${id}`, name: id, from: [], to: [], event: { type: id } };
    timers.push({ ...timer, due: dueAfter(delay, ctx) });
  }
  const actions: ReplayableMacrostep[] = [];
  const pendingEvents = (state[EVENTS_KEY] ?? []) as readonly PendingEvent[];
  let queue = begins ? [] : pendingEvents;
  let taken: readonly string[] | undefined;
  const mailbox = queue.length === 0 && work.length > 0 ? ctx["~mailbox"] : undefined;
  if (mailbox !== undefined && snapshot !== null) {
    const machine = { driver, values: state, run: ctx.runId, precomputed };
    const sent = eventToTake(machine, mailbox.waiting());
    if (sent !== undefined) [queue, taken] = [[pendingOf(sent)], [sent.run]];
  }
  const known = begins
    ? undefined
    : precomputed.take(stored[SNAPSHOT_KEY], precomputedKey(ctx.runId, taken?.[0]));
  const apply = (step: ReplayableMacrostep) => {
    // Only an event that is alone in its step can have a precomputed macrostep. The results of promise actors have none.
    const isKnown = queue.length === 1 && !("actor" in (queue[0] as PendingEvent));
    const made = (isKnown ? known : undefined) ?? computeMacrostep(driver, step);
    if (made.effects.some(({ kind }) => kind === "action")) actions.push(step);
    const carryOut = (effect: Effect) => {
      if (effect.kind === "start") {
        const { kind: _, ...start } = effect;
        const ns = namespaceOfActor(children, start.at);
        work.push({ ...start, start: ++started, ...(ns !== "" && { ns }) });
      } else if (effect.kind === "stop") {
        work = work.filter(({ at }) => !isWithin(at, effect.at));
        timers = timers.filter(({ from, to }) => !isWithin(from, effect.at) && !isWithin(to, effect.at));
        if (children.has(addressKey(effect.at)))
          for (const [key, { at }] of children) if (isWithin(at, effect.at)) children.delete(key);
      } else if (effect.kind === "child") {
        const { at, src, begins: isNew, read } = effect;
        let child = isNew ? undefined : children.get(addressKey(at));
        if (child === undefined) {
          const parent = children.get(addressKey(at.slice(0, -1)));
          const id = uuid5(String(++started), ctx.taskId);
          const ns = taskNamespace(parent?.ns ?? "", nameInNamespace(src), id);
          child = { start: started, parent: parent?.start ?? null, at, src, ns };
          children.set(addressKey(at), child);
        }
        changed.set(child.start, { ...child, read });
      } else if (effect.kind === "timer") {
        const { id: name = null, from, to, delay, event } = effect;
        const id = `${++started}:${name ?? event.type}`;
        timers.push({ id, name, from, to, due: dueAfter(delay, ctx), event });
      } else if (effect.kind === "cancel")
        timers = timers.filter(
          ({ name, from }) => name !== effect.id || !isSameActorAddress(from, effect.from),
        );
      else if (effect.kind === "emit")
        ctx["~emitIn"]?.(namespaceOfActor(children, effect.from), toStorableWithErrors(effect.event, "emit"));
      else if (effect.kind === "log") ctx.log.info(textOf(effect.label, effect.value));
    };
    made.effects.forEach(carryOut);
    ({ snapshot, output } = made);
    if (made.status !== "done") return;
    [work, timers] = [[], []];
    children.clear();
  };
  // The child machines of the thread's earlier machine end together with that machine.
  for (const child of begins ? storedChildrenOf(state) : []) {
    const last = activeChildState(restBefore, child.at);
    if (last !== undefined)
      changed.set(child.start, { ...child, read: () => ({ ...last, status: STOPPED }) });
  }
  if (begins) apply({ before: null, input: input ?? defaultInput(driver) });
  for (const pending of queue) {
    if (snapshot === null || snapshot.rest["status"] !== "active") break;
    if (!("actor" in pending)) {
      const step = stepOfPending(pending, snapshot, timers);
      if ("timer" in pending) timers = timers.filter((one) => !isSameTimer(one, pending.timer));
      // If the timer is missing, it was cancelled before its event was processed.
      if (step !== undefined) apply(step);
      continue;
    }
    const { actor, start, result } = pending;
    // If the actor is not listed, the machine has left the state that started it. The actor's result is dropped.
    if (!work.some((one) => one.start === start)) continue;
    work = work.filter((one) => one.start !== start);
    apply({ before: snapshot, message: { to: actor, result } });
  }
  const { context, rest, value: stateValue } = snapshot as StoredSnapshot;
  const unset = Object.keys(state).filter((key) => !MACHINE_KEYS.has(key) && !Object.hasOwn(context, key));
  const kept: { -readonly [K in keyof StoredMachine]: StoredMachine[K] } & Marked = {
    rest,
    work,
    started,
    timers,
    actions,
    unset,
  };
  if (taken !== undefined) kept.taken = taken;
  if (children.size > 0) kept.children = [...children.values()];
  if (changed.size > 0) kept.changed = [...changed.values()].map((one) => storedChange(one, children));
  const update: Record<string, unknown> = {};
  for (const key of unset) update[key] = null;
  Object.assign(update, context);
  // Also written if the machine declares no version but the stored state has one, because the old version would stay in the state
  // otherwise.
  if (versions.areDeclared || state[VERSION_KEY] !== undefined) update[VERSION_KEY] = driver.version;
  update[STATE_KEY] = stateValue;
  update[OUTPUT_KEY] = output;
  update[SNAPSHOT_KEY] = kept;
  if (pendingEvents.length > 0) update[EVENTS_KEY] = [];
  return { update, work, machine: kept };
}

/**
 * The update that sends the event of a timer to the machine; null if the state does not have this timer any more.
 * @throws the error of a machine that fails with the event, before anything has changed
 */
export function timerUpdate(versions: MachineVersions, values: JsonObject, timer: Timer): JsonObject | null {
  if (!timersOf(values).some((one) => isSameTimer(one, timer))) return null;
  const { driver, state } = versions.continuationOf(values);
  const step = stepOfPending({ timer }, snapshotOf(state), timersOf(state));
  if (step !== undefined) computeMacrostep(driver, step);
  return { [EVENTS_KEY]: [{ timer }] };
}

const textOf = (label: string | undefined, logged: unknown) =>
  `${label === undefined ? "" : `${label}: `}${typeof logged === "string" ? logged : jsonOrText(logged)}`;

/** The text of a logged value: JSON if possible. A value that JSON cannot express, such as a cycle, does not fail the run. */
function jsonOrText(logged: unknown): string {
  try {
    return JSON.stringify(logged) ?? String(logged);
  } catch {
    return typeof logged === "bigint" ? String(logged) : "[no JSON]";
  }
}

/** The latest time that a JavaScript `Date` can represent, in epoch milliseconds. */
const LATEST_TIME_MS = 8.64e15;

/** When a timer is due, in epoch milliseconds. As with `setTimeout`, an invalid or negative delay counts as 0. */
function dueAfter(delay: number, ctx: Ctx): number {
  const ms = Number.isFinite(delay) ? Math.max(0, Math.ceil(delay)) : 0;
  return Math.min((ctx["~now"]?.() ?? 0) + ms, LATEST_TIME_MS);
}
