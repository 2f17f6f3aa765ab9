import {
  type ChangedChildMachine,
  defineGraph,
  type DescribedGraph,
  type GraphDefinition,
  type MachineParts,
} from "../graph/definition.ts";
import { value } from "../graph/channels/last-value.ts";
import { ephemeral } from "../graph/channels/ephemeral.ts";
import { reduce } from "../graph/channels/reduce.ts";
import type { ChannelRule } from "../graph/channel.ts";
import { END, send } from "../graph/commands.ts";
import type { Ctx } from "../graph/node-context.ts";
import type { Schema } from "../graph/standard-schema.ts";
import { taskNamespace } from "../graph/interrupts.ts";
import { toPlainError } from "../model/errors.ts";
import { uuid5 } from "../model/ids.ts";
import { isObject, type JsonObject, toStorable } from "../model/json.ts";
import type { MachineAtWork, MachineMailbox, WaitingEvent } from "../model/mailbox.ts";
import type { ChildMachineStatus } from "../model/machine-child.ts";
import { isSameTimer, type Timer } from "../model/machine-timer.ts";
import { PromiseActors } from "./promise-actors.ts";
import {
  type ActorResult,
  type Address,
  type ChildState,
  type Effect,
  isHandled,
  isWithin,
  type MachineDriver,
  type MachineEvent,
  type StoredSnapshot,
  type Taken,
  type Waiting,
} from "./machine-driver.ts";
import {
  storedChildrenOf,
  EVENTS_KEY,
  INPUT_KEY,
  isWork,
  OUTPUT_KEY,
  MACHINE_KEYS,
  type Pending,
  SNAPSHOT_KEY,
  type StoredChild,
  snapshotOf,
  STATE_KEY,
  type Step,
  storedMachineOf,
  type StoredMachine,
  timersOf,
  VERSION_KEY,
  type Work,
} from "./machine-state.ts";
import { type MachineVersions, versionOf } from "./machine-versions.ts";

/** The nodes that are not actors. No actor has such a name, because XState reserves the prefix. */
const TRANSITION = "xstate.transition";
const WAIT = "xstate.wait";
const ACTIONS = "xstate.actions";

/** The steps that an event costs while promise actors work: one that processes the event, and one that waits for the actors again. */
const STEPS_OF_EVENT = 2;

/** Characters. */
const LONGEST_NAME = 100;

/** Characters. XState keeps each type that a machine with wildcards is ever sent in memory, for as long as the process lives. */
const LONGEST_TYPE = 256;

/** Steps: the default of `recursion_limit`. Each actor takes two steps, and a machine may well run a hundred actors. */
const RECURSION_LIMIT = 1_000;
/** Channel rules for a state with any keys: the keys of a machine's context are known only when the machine runs. */
class OpenRules extends Map<string, ChannelRule> {
  override get(key: string): ChannelRule {
    return super.get(key) ?? CONTEXT_RULE;
  }
  override has(): boolean {
    return true;
  }
}

const CONTEXT_RULE = value();

/** The schemas of a child machine have these keys, besides those of its context. */
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
 * Makes a graph that runs a machine. One node processes events, each in a macrostep of its own; its checkpoint holds
 * the machine's snapshot. Each promise actor is a node of its own, so that its result is stored before the machine
 * processes it. While no actor is running, another node waits for an event.
 */
export function machineGraph(
  versions: MachineVersions,
  actors: readonly string[],
  views: Pick<MachineParts, "chart" | "drawing">,
): GraphDefinition {
  const live = new PromiseActors();
  const runActor = async (input: unknown, ctx: Ctx) => {
    // An earlier version of Heddle has planned this task. The node TRANSITION then fails, and its error says why the state cannot be used.
    if (!isWork(input)) return undefined;
    const { version, ...work } = input as Sent;
    // The state has to be migrated first. The machine starts the actor again after that.
    if (versions.migrates(version)) return undefined;
    const driver = versions.only(version);
    const mailbox = ctx["~mailbox"];
    const interruptions = mailbox && {
      isDue: () => isEventDue(driver, mailbox),
      watch: (arrived: () => void) => mailbox.watch(arrived),
    };
    const result = await live.next(ctx.runId, keyOf(work), {
      start: (emit) => driver.startActor(work, emit),
      emit: (event) => ctx["~emitIn"]?.(work.ns ?? "", event),
      signal: ctx.signal,
      interruptions,
    });
    // The actor was aborted, another actor has ended first, or the machine can take an event.
    if (result === undefined) return undefined;
    const stored: ActorResult =
      "error" in result
        ? { error: toPlainError(result.error) }
        : { output: toStorable(result.output ?? null, `the output of ${work.at.join(".")}`) };
    return { [EVENTS_KEY]: [{ actor: work.at, start: work.start, result: stored }] };
  };
  const definition = defineGraph({
    state: {
      [STATE_KEY]: value(),
      [OUTPUT_KEY]: value(),
      [SNAPSHOT_KEY]: value(),
      // Collects the results of all actors that end in one superstep. An empty list clears it.
      [EVENTS_KEY]: reduce<readonly Pending[]>([], (all, more) =>
        more.length === 0 ? [] : [...all, ...more],
      ),
      ...(versions.areDeclared && { [VERSION_KEY]: value() }),
      [INPUT_KEY]: ephemeral(),
    },
    nodes: {
      [TRANSITION]: (state: JsonObject, ctx: Ctx) => {
        const { update, work } = transitionStep(versions, state, ctx);
        live.retain(ctx.runId, new Set(work.map(keyOf)));
        return update;
      },
      [WAIT]: async (stored: JsonObject, ctx: Ctx) => {
        // A timer has fired while the machine was waiting. Its event is processed, and no client is asked for one.
        if ((stored[EVENTS_KEY] as readonly Pending[]).length > 0) return {};
        const { driver, state } = versions.at(stored);
        const waiting = driver.waiting(snapshotOf(state));
        const event = await ctx.interrupt(questionOf(state, waiting), { schema: eventSchema(waiting) });
        return { [EVENTS_KEY]: [{ event }] };
      },
      [ACTIONS]: async (state: JsonObject, ctx: Ctx) => {
        // The actions need the driver of the version that made the state: they are computed from the snapshot before
        // the macrostep, and a migration converts only the snapshot after the macrostep.
        const driver = versions.only(versionOf(state));
        for (const step of storedMachineOf(state).actions) {
          // oxlint-disable-next-line no-await-in-loop -- an action may build on those before it
          for (const effect of take(driver, step).effects) if (effect.kind === "action") await effect.run();
        }
        live.release(ctx.runId);
      },
      ...Object.fromEntries(actors.map((src) => [nodeOf(src), runActor])),
    },
    edges: {
      start: TRANSITION,
      [TRANSITION]: (state: JsonObject) => nextNodes(versions, state),
      [WAIT]: TRANSITION,
      [ACTIONS]: TRANSITION,
      ...Object.fromEntries(actors.map((src) => [nodeOf(src), TRANSITION])),
    },
  });
  return Object.freeze({
    ...definition,
    hash: versions.hash,
    rules: new OpenRules(definition.rules),
    // The graph declares no input keys: the machine gets the input as a whole, under `inputKey`.
    input: new Map(),
    machine: {
      ...views,
      inputKey: INPUT_KEY,
      recursionLimit: RECURSION_LIMIT,
      refusesAnswer,
      refusesEvent: (event: unknown) => whyNotEvent(event, versions, "takes"),
      takesAtWork: (values: JsonObject) => takesAtWork(versions, values),
      whyNeedsInput: () => whyNeedsInput(versions.current),
      firstContext: () => firstContext(versions.current),
      timers: (values: JsonObject) => timersOf(values).map(({ id, due }) => ({ id, due })),
      takenRuns: (update: JsonObject | null) =>
        (update?.[SNAPSHOT_KEY] as Partial<StoredMachine> | undefined)?.taken ?? [],
      changedChildren,
      childOfTask: (input: unknown) => {
        const { ns, start } = (isWork(input) ? input : {}) as Partial<Work>;
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
      timerUpdate: (values: JsonObject, timer: Timer) =>
        timersOf(values).some((one) => isSameTimer(one, timer)) ? { [EVENTS_KEY]: [{ timer }] } : null,
    },
  });
}

const isSameAddress = (one: Address, other: Address) => one.length === other.length && isWithin(one, other);

/** The input of an actor's node. */
interface Sent extends Work {
  readonly version: string | null;
}

const keyOf = ({ at, start }: Pick<Work, "at" | "start">) => `${start}:${at.join(".")}`;

function take(driver: MachineDriver, step: Step): Taken {
  // Stored values have no `undefined`: a machine that began without an input has null here.
  return step.before === null
    ? driver.begin(step.input ?? undefined)
    : driver.take(step.before, step.message);
}

/** The first of the waiting events that the machine takes in its state. Others stay, for a later state or the end of the run. */
function eventToTake(
  driver: MachineDriver,
  snapshot: StoredSnapshot,
  timers: readonly Timer[],
  all: readonly WaitingEvent[],
): WaitingEvent | undefined {
  let waiting: Waiting | undefined;
  return all.find((one) => {
    if ("timer" in one) return timers.some((timer) => isSameTimer(timer, one.timer));
    waiting ??= driver.waiting(snapshot);
    return whyNotEvent(one.event, waiting) === undefined && canTake(waiting, one.event as MachineEvent);
  });
}

/** False also if a guard throws. The event then stays, and its own run fails with that error. */
function canTake(waiting: Waiting, event: MachineEvent): boolean {
  try {
    return waiting.can(event);
  } catch {
    return false;
  }
}

const pendingOf = (sent: WaitingEvent): Pending =>
  "timer" in sent ? { timer: sent.timer } : { event: sent.event as MachineEvent };

/** Returns whether the machine takes one of the waiting events in its current state. Called while one of its promise actors runs. */
function isEventDue(driver: MachineDriver, mailbox: MachineMailbox): boolean {
  const waiting = mailbox.waiting();
  if (waiting.length === 0) return false;
  const { values } = mailbox;
  // The custom actions of the last macrostep run first. When they have ended, this superstep ends too, and the event is looked for again.
  if (storedMachineOf(values).actions.length > 0) return false;
  return eventToTake(driver, snapshotOf(values), timersOf(values), waiting) !== undefined;
}

/** Processes all pending events, each in a macrostep of its own. If there are none and actors work, processes one event of a waiting run. */
function transitionStep(versions: MachineVersions, stored: JsonObject, ctx: Ctx) {
  const input = stored[INPUT_KEY];
  const begins = input !== undefined;
  const { driver, state } = begins ? { driver: versions.current, state: stored } : versions.at(stored);
  // The numbers continue, so that results and timers of the thread's earlier machine are not mistaken for those of the new one.
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
  const actions: Step[] = [];
  const pendingEvents = (state[EVENTS_KEY] ?? []) as readonly Pending[];
  let queue = begins ? [] : pendingEvents;
  let taken: readonly string[] | undefined;
  const mailbox = queue.length === 0 && work.length > 0 ? ctx["~mailbox"] : undefined;
  if (mailbox !== undefined && snapshot !== null) {
    const sent = eventToTake(driver, snapshot, timers, mailbox.waiting());
    if (sent !== undefined) [queue, taken] = [[pendingOf(sent)], [sent.run]];
  }
  const apply = (step: Step) => {
    const made = take(driver, step);
    if (made.effects.some(({ kind }) => kind === "action")) actions.push(step);
    const asked = (effect: Effect) => {
      if (effect.kind === "start") {
        const { kind: _, ...start } = effect;
        const ns = namespaceOf(children, start.at);
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
        timers = timers.filter(({ name, from }) => name !== effect.id || !isSameAddress(from, effect.from));
      else if (effect.kind === "emit") ctx["~emitIn"]?.(namespaceOf(children, effect.from), effect.event);
      else if (effect.kind === "log") ctx.log.info(textOf(effect.label, effect.value));
    };
    made.effects.forEach(asked);
    ({ snapshot, output } = made);
    if (made.status !== "done") return;
    [work, timers] = [[], []];
    children.clear();
  };
  // The children of the machine before end with it.
  for (const child of begins ? storedChildrenOf(state) : []) {
    const last = livingChild(restBefore, child.at);
    if (last !== undefined)
      changed.set(child.start, { ...child, read: () => ({ ...last, status: STOPPED }) });
  }
  if (begins) apply({ before: null, input });
  for (const pending of queue) {
    if (snapshot === null || snapshot.rest["status"] !== "active") break;
    if ("event" in pending) {
      apply({ before: snapshot, message: { to: [], event: pending.event } });
      continue;
    }
    if ("timer" in pending) {
      const timer = timers.find((one) => isSameTimer(one, pending.timer));
      timers = timers.filter((one) => one !== timer);
      // If the timer is missing, it was cancelled before its event was processed.
      if (timer !== undefined) apply({ before: snapshot, message: { to: timer.to, event: timer.event } });
      continue;
    }
    const { actor, start, result } = pending;
    // The actor is unknown if the machine has left the state that started it. Its result is dropped.
    if (!work.some((one) => one.start === start)) continue;
    work = work.filter((one) => one.start !== start);
    apply({ before: snapshot, message: { to: actor, result } });
  }
  const { context, rest, value: stateValue } = snapshot as StoredSnapshot;
  const reserved = Object.keys(context).find((key) => MACHINE_KEYS.has(key));
  if (reserved !== undefined)
    throw new TypeError(
      `The context has a key ${reserved}, which Heddle keeps for itself: name it otherwise`,
    );
  const unset = Object.keys(state).filter((key) => !MACHINE_KEYS.has(key) && !Object.hasOwn(context, key));
  const kept: { -readonly [K in keyof StoredMachine]: StoredMachine[K] } = {
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
  // Also written if no version is declared any more, but the stored state still has one.
  if (versions.areDeclared || state[VERSION_KEY] !== undefined) update[VERSION_KEY] = driver.version;
  update[STATE_KEY] = stateValue;
  update[OUTPUT_KEY] = output;
  update[SNAPSHOT_KEY] = kept;
  if (pendingEvents.length > 0) update[EVENTS_KEY] = [];
  return { update, work };
}

/** The child machines of a machine, at all levels. A machine may have thousands. */
type ChildrenByAddress = Map<string, StoredChild>;

const addressKey = (at: Address): string => JSON.stringify(at);

/** The namespace of the machine that an actor is, or that has started it. */
function namespaceOf(children: ChildrenByAddress, at: Address): string {
  if (at.length === 0) return "";
  return children.get(addressKey(at))?.ns ?? namespaceOf(children, at.slice(0, -1));
}

/** A change of a child machine, as it is stored. It has the child's state only if the parent's snapshot does not have that. */
function storedChange({ read, ...child }: StoredChild & { read(): ChildState }, children: ChildrenByAddress) {
  return children.get(addressKey(child.at))?.start === child.start ? child : { ...child, state: read() };
}

const ACTIVE: ChildMachineStatus = Object.freeze({ status: "active" });
const STOPPED: ChildMachineStatus = Object.freeze({ status: "stopped" });

/** The child machines that have changed in a step, with their states as they are shown in their namespaces. */
function changedChildren(update: JsonObject | null): readonly ChangedChildMachine[] {
  const { changed, rest, work = [] } = (update?.[SNAPSHOT_KEY] ?? {}) as Partial<StoredMachine>;
  return (changed ?? []).flatMap(({ start, parent, at, ns = "", state }) => {
    const shown = state ?? livingChild(rest, at);
    if (shown === undefined) return [];
    const { value: stateValue, context, output, status = state === undefined ? ACTIVE : STOPPED } = shown;
    const values = { ...context, [STATE_KEY]: stateValue, [OUTPUT_KEY]: output ?? null };
    const own = work.filter((one) => isSameAddress(one.at.slice(0, -1), at));
    const nodes = own.map((one) => ({ name: nodeOf(one.src), start: one.start }));
    const next = state !== undefined ? [] : nodes.length > 0 ? nodes : [{ name: WAIT, start: null }];
    return [{ start, parent, ns, values, next, status }];
  });
}

/** The node of a promise actor. Names that a node cannot have are changed; actors that then have the same node each run as what they are. */
function nodeOf(src: string): string {
  const name = nameInNamespace(src)
    .replaceAll(/\p{Cc}/gu, "_")
    .slice(0, LONGEST_NAME);
  return /^(start|__.*__|xstate\.(transition|wait|actions)|)$/.test(name) ? `actor ${name}` : name;
}

/** Replaces the characters that separate the parts of a namespace. */
const nameInNamespace = (src: string) => src.replaceAll(/[|:]/g, "_");

function livingChild(rest: JsonObject | undefined, at: Address): ChildState | undefined {
  let snapshot: unknown = rest;
  for (const id of at) {
    const { children } = isObject(snapshot) ? snapshot : {};
    const child = isObject(children) ? children[id] : undefined;
    snapshot = isObject(child) ? child["snapshot"] : undefined;
  }
  if (!isObject(snapshot)) return undefined;
  const { value: stateValue, context, output = null } = snapshot;
  return { value: stateValue, context: context as JsonObject, output };
}

const textOf = (label: string | undefined, logged: unknown) =>
  `${label === undefined ? "" : `${label}: `}${typeof logged === "string" ? logged : jsonOrText(logged)}`;

/** A value that JSON does not have MUST NOT fail a run only because it is logged. */
function jsonOrText(logged: unknown): string {
  try {
    return JSON.stringify(logged) ?? String(logged);
  } catch {
    return typeof logged === "bigint" ? String(logged) : "[no JSON]";
  }
}

/** Epoch milliseconds: the last time that a date can have. */
const LAST_TIME = 8.64e15;

/** The time when a timer is due. As in `setTimeout`, an invalid or negative delay counts as 0. */
function dueAfter(delay: number, ctx: Ctx): number {
  const ms = Number.isFinite(delay) ? Math.max(0, Math.ceil(delay)) : 0;
  return Math.min((ctx["~now"]?.() ?? 0) + ms, LAST_TIME);
}

function nextNodes(versions: MachineVersions, state: JsonObject) {
  const { work, actions, timers, rest } = storedMachineOf(state);
  const version = versionOf(state);
  const sent = work.map((one) => send(nodeOf(one.src), { ...one, version } satisfies Sent));
  if (actions.length > 0) return [ACTIONS, ...sent];
  if (rest["status"] !== "active") return END;
  if (sent.length > 0) return sent;
  if (timers.length > 0) return WAIT;
  // A machine that handles no event would wait forever, so it ends. If the state's version is missing, the node WAIT reports that.
  return versions.find(version)?.waiting(snapshotOf(state)).events.length === 0 ? END : WAIT;
}

const questionOf = (state: JsonObject, { tags, meta, events, forbidden }: Waiting) => ({
  state: state[STATE_KEY],
  tags,
  meta,
  events,
  ...(forbidden.length > 0 && { forbidden }),
});

/** A schema that validates an event against the machine, guards included, and describes the possible events for forms. */
function eventSchema(waiting: Waiting): Schema<unknown, MachineEvent> {
  const { events, can } = waiting;
  const validate = (event: unknown) => {
    const why = whyNotEvent(event, waiting);
    if (why !== undefined) return { issues: [{ message: why }] };
    if (can(event as MachineEvent)) return { value: event as MachineEvent };
    const { type } = event as MachineEvent;
    return { issues: [{ message: `no transition for "${type}" is enabled now: its guard does not hold` }] };
  };
  const isOpen = events.some((type) => type.endsWith("*"));
  const type = isOpen ? { type: "string" } : { type: "string", enum: events };
  const described = () => ({ type: "object", required: ["type"], properties: { type } });
  const standard = { version: 1 as const, vendor: "heddle", validate, jsonSchema: { input: described } };
  return { "~standard": standard };
}

/** The reason why a machine that handles these events does not take this one. */
function whyNotEvent(
  event: unknown,
  { events, forbidden = [] }: { readonly events: readonly string[]; readonly forbidden?: readonly string[] },
  takes: "can take" | "takes" = "can take",
): string | undefined {
  const none = takes === "takes" ? "none" : "none: it waits for a timer";
  const possible = `the machine ${takes} ${events.length === 0 ? none : events.join(", ")}`;
  if (!isObject(event) || typeof event["type"] !== "string")
    return `must be an event, { type: "..." }; ${possible}`;
  const { type } = event;
  const refused = `is "${type.slice(0, 128)}"`;
  // `xstate.stop` ends a machine, others bring the results of its actors.
  if (type.startsWith("xstate.")) return `${refused}, a name that XState keeps for itself; ${possible}`;
  if (type.length > LONGEST_TYPE)
    return `has ${type.length} characters, more than ${LONGEST_TYPE}; ${possible}`;
  if (type === "*") return `${refused}, which stands for any event, and is none; ${possible}`;
  if (forbidden.includes(type)) return `${refused}, which the state forbids; ${possible}`;
  return isHandled(type, events) ? undefined : `${refused}; ${possible}`;
}

function takesAtWork(versions: MachineVersions, values: JsonObject): MachineAtWork | null {
  const driver = versions.find(versionOf(values));
  if (driver === undefined) return null;
  try {
    if (storedMachineOf(values).work.length === 0) return null;
    return { state: values[STATE_KEY], events: driver.waiting(snapshotOf(values)).events };
  } catch {
    // The machine has not begun yet, or no longer has the stored state.
    return null;
  }
}

function whyNeedsInput(driver: MachineDriver): string | undefined {
  try {
    driver.begin(undefined);
    return undefined;
  } catch (thrown) {
    return `is required: the machine cannot begin without one (${toPlainError(thrown).message})`;
  }
}

function firstContext(driver: MachineDriver): JsonObject | undefined {
  try {
    return driver.begin({}).snapshot.context;
  } catch {
    return undefined;
  }
}

const refusesAnswer: MachineParts["refusesAnswer"] = (answer, question) =>
  isObject(question) && Array.isArray(question["events"])
    ? whyNotEvent(answer, question as Pick<Waiting, "events" | "forbidden">)
    : undefined;
