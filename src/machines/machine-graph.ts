import {
  defineGraph,
  type DescribedGraph,
  type GraphDefinition,
  type MachineParts,
  type MachineSchemas,
} from "../graph/definition.ts";
import { value } from "../graph/channels/last-value.ts";
import { ephemeral } from "../graph/channels/ephemeral.ts";
import { reduce } from "../graph/channels/reduce.ts";
import type { ChannelRule } from "../graph/channel.ts";
import { END, send } from "../graph/commands.ts";
import type { Ctx } from "../graph/node-context.ts";
import { jsonSchemaOf } from "../graph/json-schema-conversion.ts";
import type { SchemaResult } from "../graph/standard-schema.ts";
import { taskNamespace } from "../graph/interrupts.ts";
import { toPlainError } from "../model/errors.ts";
import { uuid5 } from "../model/ids.ts";
import { isObject, type JsonObject, toStorable } from "../model/json.ts";
import type { AcceptedEvents, MachineMailbox, WaitingEvent } from "../model/machine-mailbox.ts";
import { isSameTimer, type Timer } from "../model/machine-timer.ts";
import { computeMacrostep, MacrostepAttempts } from "./macrostep-attempts.ts";
import { RunningPromiseActors } from "./promise-actors.ts";
import {
  actorNode,
  ACTIONS_NODE,
  nameInNamespace,
  TRANSITION_NODE,
  WAIT_NODE,
} from "./machine-node-names.ts";
import {
  canTake,
  acceptedEventSchema,
  describeEvents,
  questionOf,
  refusesAnswer,
  whyNotEvent,
} from "./event-validation.ts";
import {
  addressKey,
  changedChildren,
  type ChildrenByAddress,
  isSameActorAddress,
  activeChildState,
  namespaceOfMachine,
  STOPPED,
  storedChange,
} from "./stored-child-machines.ts";
import {
  type ActorResult,
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
  isStartedPromiseActor,
  OUTPUT_KEY,
  MACHINE_KEYS,
  type PendingInput,
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
  type StartedPromiseActor,
} from "./machine-state.ts";
import { toStorableWithErrors, toStoredThrown } from "./stored-errors.ts";
import { type MachineVersions, versionOfState } from "./machine-versions.ts";
import { hasActorReference, REFERENCE_FAULT } from "./actor-references.ts";
import { writeFault, updateEnteringState } from "./state-edits.ts";

/** The number of steps that an event takes while promise actors run: one step processes the event, and one waits for the actors again. */
const STEPS_OF_EVENT = 2;

/** The default of `recursion_limit`, in steps. Each promise actor takes two steps, and a machine may well run a hundred of them. */
const RECURSION_LIMIT = 1_000;

/**
 * Marks a stored machine that `transitionStep` has made and whose values can all be stored as they are, so that the channel does not copy
 * it. No client can set the mark, because JSON has no symbols.
 */
const STORABLE = Symbol("storable");
type Marked = { [STORABLE]?: true };

/** Channel rules for a state with any keys, because the keys of a machine's context are known only when the machine runs. */
class OpenRules extends Map<string, ChannelRule> {
  override get(key: string): ChannelRule {
    return super.get(key) ?? CONTEXT_RULE;
  }
  override has(): boolean {
    return true;
  }
}

const CONTEXT_RULE = value();

/**
 * The description that all child machines have in common, without its member `machine`. Their state and output schemas have the keys of
 * `rules` and those of the context.
 */
const CHILD: DescribedGraph = Object.freeze({
  name: null,
  rules: new Map([STATE_KEY, OUTPUT_KEY].map((key) => [key, CONTEXT_RULE])),
  required: [],
  context: undefined,
  input: new Map(),
  output: null,
  outputSchemas: null,
});

/**
 * Creates a graph that runs a machine. One node processes events, each in a separate macrostep; its checkpoint contains the machine's
 * snapshot. Each promise actor is a separate node, so that its result is stored before the machine processes it. While no actor is running,
 * another node waits for an event.
 */
export function createMachineGraph(
  versions: MachineVersions,
  actors: readonly string[],
  views: Pick<MachineParts, "chart" | "drawing">,
): GraphDefinition {
  const live = new RunningPromiseActors();
  const attempts = new MacrostepAttempts();
  const snapshotChannel = {
    ...value<StoredMachine>(),
    read: (write: unknown, at: string) =>
      (write as Marked | null)?.[STORABLE] === true ? write : toStorable(write, at),
  };
  const runActor = async (input: unknown, ctx: Ctx) => {
    // An input of another form comes from a task that an earlier version of Heddle has planned. The task ends without a result, and
    // {@link TRANSITION_NODE} then fails with an error that says why the state cannot be used.
    if (!isStartedPromiseActor(input)) return undefined;
    const { version, ...work } = input as Sent;
    // The state must be migrated before the actor runs, so the task ends without a result. The migrated machine starts the actor again.
    if (versions.migrates(version)) return undefined;
    const driver = versions.only(version);
    const mailbox = ctx["~mailbox"];
    const interruptions = mailbox && {
      isDue: () => isEventDue({ driver, run: ctx.runId, attempts }, mailbox),
      watch: (arrived: () => void) => mailbox.watch(arrived),
    };
    const result = await live.next(ctx.runId, keyOf(work), {
      start: (emit) => driver.startActor(work, emit),
      emit: (event) => ctx["~emitIn"]?.(work.ns ?? "", event),
      signal: ctx.signal,
      interruptions,
    });
    // The run was stopped. A task that has not ended is planned again when the thread goes on.
    if (result === undefined) ctx.signal.throwIfAborted();
    // Another actor has ended first, or the machine can take an event.
    if (result === undefined) return undefined;
    const stored: ActorResult =
      "error" in result
        ? { error: toStoredThrown(result.error) }
        : { output: toStorableWithErrors(result.output ?? null, `the output of ${work.at.join(".")}`) };
    return { [EVENTS_KEY]: [{ actor: work.at, start: work.start, result: stored }] };
  };
  const definition = defineGraph({
    state: {
      [STATE_KEY]: value(),
      [OUTPUT_KEY]: value(),
      [SNAPSHOT_KEY]: snapshotChannel,
      // Collects the results of all actors that end in one superstep. Writing an empty list clears it.
      [EVENTS_KEY]: reduce<readonly PendingInput[]>([], (all, more) =>
        more.length === 0 ? [] : [...all, ...more],
      ),
      ...(versions.areDeclared && { [VERSION_KEY]: value() }),
      [INPUT_KEY]: ephemeral(),
    },
    nodes: {
      [TRANSITION_NODE]: (state: JsonObject, ctx: Ctx) => {
        const { update, work, machine } = transitionStep(versions, attempts, state, ctx);
        // Timers and actions contain values that the machine's code has made. Everything else can be stored as it is.
        if (machine.timers.length === 0 && machine.actions.length === 0) machine[STORABLE] = true;
        if (work.length === 0) live.stop(ctx.runId);
        else live.retain(ctx.runId, new Set(work.map(keyOf)));
        return update;
      },
      [WAIT_NODE]: async (stored: JsonObject, ctx: Ctx) => {
        // A timer has fired while the machine was waiting. Its event is processed, and no client is asked for an event.
        if ((stored[EVENTS_KEY] as readonly PendingInput[]).length > 0) return {};
        const { driver, state } = versions.at(stored);
        // The state to which the machine was migrated invokes actors, or sets timers: this is done before a client is asked for an event.
        const { work, delayed = [] } = storedMachineOf(state);
        if (work.length + delayed.length > 0 && ctx["~isAnswered"] !== true) return {};
        const accepted = driver.accepted(snapshotOf(state));
        const whyFails = (sent: MachineEvent) => {
          const step = { before: snapshotOf(state), message: { to: [], event: sent } };
          const key = attemptKey(ctx.runId);
          const made = attempts.attempt(stored[SNAPSHOT_KEY], key, () => computeMacrostep(driver, step));
          return made.result === undefined ? made.why : undefined;
        };
        const event = await ctx.interrupt(versionedQuestion(driver, state, accepted), {
          schema: acceptedEventSchema(accepted, driver.schemas, whyFails),
        });
        return { [EVENTS_KEY]: [{ event }] };
      },
      [ACTIONS_NODE]: async (state: JsonObject, ctx: Ctx) => {
        // The actions need the driver of the version that made the state: they are computed from the snapshot before the macrostep, and a
        // migration converts only the snapshot after the macrostep.
        const driver = versions.only(versionOfState(state));
        for (const step of storedMachineOf(state).actions) {
          // oxlint-disable-next-line no-await-in-loop -- an action may build on those before it
          for (const effect of computeMacrostep(driver, step).effects)
            if (effect.kind === "action") await effect.run();
        }
        live.release(ctx.runId);
      },
      ...Object.fromEntries(actors.map((src) => [actorNode(src), runActor])),
    },
    edges: {
      start: TRANSITION_NODE,
      [TRANSITION_NODE]: (state: JsonObject) => nextNodes(versions, state),
      [WAIT_NODE]: TRANSITION_NODE,
      [ACTIONS_NODE]: TRANSITION_NODE,
      ...Object.fromEntries(actors.map((src) => [actorNode(src), TRANSITION_NODE])),
    },
  });
  return Object.freeze({
    ...definition,
    hash: versions.hash,
    rules: new OpenRules(definition.rules),
    // The graph declares no input keys: the machine gets the whole input, under the state key `inputKey`.
    input: new Map(),
    machine: {
      ...views,
      inputKey: INPUT_KEY,
      schemas: schemasOf(versions),
      recursionLimit: RECURSION_LIMIT,
      refusesAnswer: (answer: unknown, question: unknown) =>
        isOfMigrated(versions, question)
          ? whyNotEvent(answer, versions, "takes")
          : refusesAnswer(answer, question),
      migratedQuestion: (values: JsonObject) => migratedQuestion(versions, values),
      continuationError: (values: JsonObject, isChanged: boolean) =>
        continuationError(versions, values, isChanged),
      refusesEvent: (event: unknown) => whyNotEvent(event, versions, "takes"),
      acceptedEvents: (values: JsonObject) => acceptedEvents(versions, values),
      writeFault: (write: JsonObject, values: () => JsonObject) => writeFault(versions, write, values),
      updateEnteringState: (name: string, values: JsonObject) => updateEnteringState(versions, name, values),
      stateNames: () => versions.current.states,
      whyNotInput: (input: unknown) => (hasActorReference(input) ? REFERENCE_FAULT : undefined),
      whyNeedsInput: () => whyNeedsInput(versions.current),
      firstContext: () => firstContext(versions.current),
      timers: (values: JsonObject) => timersOf(values).map(({ id, due }) => ({ id, due })),
      takenRuns: (update: JsonObject | null) =>
        (update?.[SNAPSHOT_KEY] as Partial<StoredMachine> | undefined)?.taken ?? [],
      changedChildren,
      childOfTask: (input: unknown) => {
        const { ns, start } = (isStartedPromiseActor(input) ? input : {}) as Partial<StartedPromiseActor>;
        return ns === undefined || start === undefined ? null : { ns, start };
      },
      children: (values: JsonObject) => storedChildrenOf(values).map(({ start }) => start),
      childMachines: () =>
        new Map(
          versions.current.childMachines().map(({ path, firstContext: first }) => {
            const machine = { inputKey: INPUT_KEY, firstContext: first };
            return [path.map(nameInNamespace).join("|"), { ...CHILD, machine }];
          }),
        ),
      stepsOfEvent: STEPS_OF_EVENT,
      runEnded: (run: string) => live.stop(run),
      timerUpdate: (values: JsonObject, timer: Timer) => timerUpdate(versions, values, timer),
    },
  });
}

/** The input of an actor's node. `version`: the version of the machine that has started the actor. */
interface Sent extends StartedPromiseActor {
  readonly version: string | null;
}

const keyOf = ({ at, start }: Pick<StartedPromiseActor, "at" | "start">) => `${start}:${at.join(".")}`;

/**
 * The first of the waiting events that the machine takes in its state, without an error; undefined if it takes none. The other events stay,
 * for a later state or the end of the run. An event that fails then fails its own run.
 */
function eventToTake(
  { driver, values, run, attempts }: TakingMachine,
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
    const key = attemptKey(run, one.run);
    const { result } = attempts.attempt(values[SNAPSHOT_KEY], key, () => computeMacrostep(driver, step));
    return result !== undefined;
  });
}

/** A machine whose promise actors run, in the run `run`, and which may take events meanwhile. */
interface TakingMachine {
  readonly driver: MachineDriver;
  readonly values: JsonObject;
  readonly run: string;
  readonly attempts: MacrostepAttempts;
}

/** The name of the event that the run `of` has sent, among the {@link MacrostepAttempts} of the run that takes it. */
const attemptKey = (run: string, of = run) => `${run} ${of}`;

/** The macrostep that processes an event or a timer; undefined if the timer is not set any more. */
function stepOfPending(
  pending: Exclude<PendingInput, { readonly actor: Address }>,
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
function isEventDue(machine: Omit<TakingMachine, "values">, mailbox: MachineMailbox): boolean {
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
 * queued run, if the machine takes one.
 */
function transitionStep(
  versions: MachineVersions,
  attempts: MacrostepAttempts,
  stored: JsonObject,
  ctx: Ctx,
) {
  const input = stored[INPUT_KEY];
  const begins = input !== undefined;
  const { driver, state } = begins ? { driver: versions.current, state: stored } : versions.at(stored);
  // The numbers of actors and timers continue, so that results and timers of the thread's earlier machine are not taken for those of the
  // new machine.
  const { started: before = 0, rest: restBefore } =
    (state[SNAPSHOT_KEY] as Partial<StoredMachine> | undefined) ?? {};
  let started = before;
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
  const pendingEvents = (state[EVENTS_KEY] ?? []) as readonly PendingInput[];
  let queue = begins ? [] : pendingEvents;
  let taken: readonly string[] | undefined;
  const mailbox = queue.length === 0 && work.length > 0 ? ctx["~mailbox"] : undefined;
  if (mailbox !== undefined && snapshot !== null) {
    const machine = { driver, values: state, run: ctx.runId, attempts };
    const sent = eventToTake(machine, mailbox.waiting());
    if (sent !== undefined) [queue, taken] = [[pendingOf(sent)], [sent.run]];
  }
  const attempted = begins
    ? undefined
    : attempts.take(stored[SNAPSHOT_KEY], attemptKey(ctx.runId, taken?.[0]));
  const apply = (step: ReplayableMacrostep) => {
    // An attempt is for the only event of its step. A result of a promise actor is not attempted before.
    const isAttempted = queue.length === 1 && !("actor" in (queue[0] as PendingInput));
    const made = (isAttempted ? attempted : undefined) ?? computeMacrostep(driver, step);
    if (made.effects.some(({ kind }) => kind === "action")) actions.push(step);
    const asked = (effect: Effect) => {
      if (effect.kind === "start") {
        const { kind: _, ...start } = effect;
        const ns = namespaceOfMachine(children, start.at);
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
        ctx["~emitIn"]?.(
          namespaceOfMachine(children, effect.from),
          toStorableWithErrors(effect.event, "emit"),
        );
      else if (effect.kind === "log") ctx.log.info(textOf(effect.label, effect.value));
    };
    made.effects.forEach(asked);
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
function timerUpdate(versions: MachineVersions, values: JsonObject, timer: Timer): JsonObject | null {
  if (!timersOf(values).some((one) => isSameTimer(one, timer))) return null;
  const { driver, state } = versions.at(values);
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

function nextNodes(versions: MachineVersions, state: JsonObject) {
  const { work, actions, timers, rest } = storedMachineOf(state);
  const version = versionOfState(state);
  const sent = work.map((one) => send(actorNode(one.src), { ...one, version } satisfies Sent));
  if (actions.length > 0) return [ACTIONS_NODE, ...sent];
  if (rest["status"] !== "active") return END;
  if (sent.length > 0) return sent;
  if (timers.length > 0) return WAIT_NODE;
  // A machine that handles no event would wait forever, so the run ends. If the version of the state is missing, {@link WAIT_NODE} reports
  // that.
  return versions.find(version)?.accepted(snapshotOf(state)).events.length === 0 ? END : WAIT_NODE;
}

function continuationError(versions: MachineVersions, values: JsonObject, isChanged: boolean) {
  if ((values[SNAPSHOT_KEY] ?? null) === null) return null;
  try {
    const { driver, state } = versions.at(values);
    if (isChanged) driver.accepted(snapshotOf(state));
    return null;
  } catch (thrown) {
    return toPlainError(thrown);
  }
}

function acceptedEvents(versions: MachineVersions, values: JsonObject): AcceptedEvents | null {
  const driver = versions.find(versionOfState(values));
  if (driver === undefined) return null;
  try {
    if (storedMachineOf(values).work.length === 0) return null;
    const { events } = driver.accepted(snapshotOf(values));
    const schema = driver.schemas === null ? null : describeEvents(events, driver.schemas);
    return { state: values[STATE_KEY], events, schema };
  } catch {
    // The machine has not begun yet, or it no longer has the stored state.
    return null;
  }
}

const versionedQuestion = ({ version }: MachineDriver, state: JsonObject, accepted: AcceptedByState) => ({
  ...questionOf(state, accepted),
  ...(version !== null && { version }),
});

/**
 * Whether the version of the machine that asked a question has to be migrated. The events that the migrated machine takes depend on the
 * thread's state, so an answer is checked completely only when its run has migrated the machine.
 */
function isOfMigrated(versions: MachineVersions, question: unknown): boolean {
  const { version = null } = isObject(question) ? question : {};
  return (version === null || typeof version === "string") && versions.migrates(version);
}

/**
 * The question that the machine in a thread's state asks after its migration. Null if its version is one of the graph's and so needs no
 * migration, or if it cannot be migrated.
 */
function migratedQuestion(versions: MachineVersions, values: JsonObject) {
  if (!versions.migrates(versionOfState(values))) return null;
  try {
    const { driver, state } = versions.at(values);
    const accepted = driver.accepted(snapshotOf(state));
    return {
      value: versionedQuestion(driver, state, accepted),
      schema: jsonSchemaOf(acceptedEventSchema(accepted, driver.schemas), "input"),
    };
  } catch {
    // The next run fails with the error.
    return null;
  }
}

/**
 * The schemas of a graph's machine. An input is validated by the schema of the current version, an event by that of the version of the
 * thread's state.
 */
function schemasOf(versions: MachineVersions): MachineSchemas | undefined {
  if (!versions.haveSchemas) return undefined;
  const { input = null, inputJson = null } = versions.current.schemas ?? {};
  return {
    input,
    inputJson,
    areByVersion: !versions.isSingle,
    parseEvent: async (event, values) => {
      if (whyNotEvent(event, versions) !== undefined) return { value: event };
      const { schemas } = versions.find(versionOfState(values ?? {})) ?? versions.current;
      return schemas === null ? { value: event } : schemas.parseEvent(event as MachineEvent);
    },
  };
}

function whyNeedsInput(driver: MachineDriver): string | undefined {
  try {
    const none = resultWithoutInput(driver);
    if (none !== null && none.issues !== undefined)
      return "is required: the machine declares a schema for it";
    driver.begin(defaultInput(driver) ?? undefined);
    return undefined;
  } catch (thrown) {
    return `is required: the machine cannot begin without one (${toPlainError(thrown).message})`;
  }
}

/** What the schema of the input returns where no input is given; null if there is no schema, or if it is asynchronous. */
function resultWithoutInput({ schemas }: MachineDriver): SchemaResult<unknown> | null {
  const result = schemas?.input?.["~standard"].validate(undefined) ?? null;
  if (!(result instanceof Promise)) return result;
  // Nobody awaits the result. If it rejected, the unhandled rejection would end the process.
  result.catch(() => undefined);
  return null;
}

/** The input of a machine that is given none: the default of its schema; null if there is none. */
function defaultInput(driver: MachineDriver): unknown {
  const result = resultWithoutInput(driver);
  return result === null || result.issues !== undefined
    ? null
    : toStorable(result.value ?? null, "the default of the input");
}

function firstContext(driver: MachineDriver): JsonObject | undefined {
  try {
    return driver.begin({}).snapshot.context;
  } catch {
    return undefined;
  }
}
