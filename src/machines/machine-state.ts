import { isObject, type JsonObject } from "../model/json.ts";
import { isTimer, type Timer } from "../model/machine-timer.ts";
import type {
  ActorResult,
  Address,
  AddressedEvent,
  DelayedTransition,
  ChildState,
  MachineEvent,
  PromiseStart,
  StoredSnapshot,
} from "./machine-driver.ts";

/** What the machine has not processed yet: an event, a timer that has fired, or the result of a promise actor. */
export type PendingEvent =
  | { readonly event: MachineEvent }
  | { readonly timer: Timer }
  | { readonly actor: Address; readonly start: number; readonly result: ActorResult };

/**
 * A promise actor that was started and whose result was not processed yet. `start` is a number that no other actor of the thread has, not
 * even one that is started later at the same address.
 */
export interface StartedPromiseActor extends PromiseStart {
  readonly start: number;
  /** The namespace of the child machine that has started the actor. Absent if the root machine has started it. */
  readonly ns?: string;
}

/** A timer that was set, and has neither fired nor been cancelled. `id` is unique, but several timers may have the same `name`. */
export interface SetTimer extends Timer {
  /** The id with which the machine can cancel the timer; null if the timer has none. */
  readonly name: string | null;
  /** The actor that has set the timer. */
  readonly from: Address;
  /** The actor that receives the event. */
  readonly to: Address;
  readonly event: MachineEvent;
}

/** A child machine that has not ended. */
export interface StoredChild {
  /** The unique number of the child machine. A child that is started later at the same address has another number. */
  readonly start: number;
  /** The number of the parent, if the parent is a child machine too; null for children of the root. */
  readonly parent: number | null;
  readonly at: Address;
  readonly src: string;
  /** The namespace of the child machine's checkpoints. Absent if an earlier version of Heddle has stored the child. */
  readonly ns?: string;
}

/** A macrostep whose custom actions have yet to run. Actions cannot be stored, so the macrostep is computed again to get them. */
export type ReplayableMacrostep =
  /** The start of the machine with its input. */
  | { readonly before: null; readonly input: unknown }
  | { readonly before: StoredSnapshot; readonly message: AddressedEvent };

/** What is stored of a machine under {@link SNAPSHOT_KEY}. The context, the state value and the output have other state keys. */
export interface StoredMachine {
  /** The members of the snapshot that have no state key of their own: see {@link StoredSnapshot.rest}. */
  readonly rest: JsonObject;
  /** The promise actors that are at work. Each has a task in the next step. */
  readonly work: readonly StartedPromiseActor[];
  /**
   * A counter that actors and timers share, continued over all machines of the thread. Each promise actor or child machine that is started,
   * and each timer that is set, takes the next number: an actor as its `start`, a timer in its `id`.
   */
  readonly started: number;
  readonly timers: readonly SetTimer[];
  /** The macrosteps of the last step that have custom actions. The next step runs these actions. */
  readonly actions: readonly ReplayableMacrostep[];
  /**
   * The `after` transitions of the states in which a migration has put the machine. The next step sets their timers. Never stored: that step
   * stores {@link timers}.
   */
  readonly delayed?: readonly DelayedTransition[];
  /**
   * Keys of an earlier context that the current context does not have. The state keeps them with the value null, and the restored context
   * leaves them out.
   */
  readonly unset: readonly string[];
  /** The ids of queued runs whose events were processed in the last step. */
  readonly taken?: readonly string[];
  /** The child machines that have not ended. Absent if there are none. */
  readonly children?: readonly StoredChild[];
  /**
   * The child machines that began, processed an event or ended in the last step. `state` is set only for a child that has ended, because
   * `rest` contains no state of ended children.
   */
  readonly changed?: readonly (StoredChild & { readonly state?: ChildState })[];
}

/** The state key of the machine's whole input, until the machine has started with it. */
export const INPUT_KEY = "__machine_input__";

/** State keys that are not part of the machine's context. */
export const STATE_KEY = "__state__";
export const OUTPUT_KEY = "__output__";
export const SNAPSHOT_KEY = "__snapshot__";
export const EVENTS_KEY = "__events__";
/** The state key of the version of the machine that made the state. Not set if no version is declared. */
export const VERSION_KEY = "__version__";
export const MACHINE_KEYS: ReadonlySet<string> = new Set([
  STATE_KEY,
  OUTPUT_KEY,
  SNAPSHOT_KEY,
  EVENTS_KEY,
  VERSION_KEY,
  INPUT_KEY,
]);

/** Creates the error for a stored state from which the machine cannot continue. */
export const graphChangedError = (message: string, cause?: unknown) =>
  Object.assign(new Error(message, { cause }), { name: "GraphChangedError" });

/** Whether a value has the form of {@link PendingEvent}, with an event that a client may send. */
export function isPendingEvent(value: unknown): value is PendingEvent {
  if (!isObject(value)) return false;
  const { event, timer, actor, start, result } = value;
  if (event !== undefined)
    return isObject(event) && typeof event["type"] === "string" && !event["type"].startsWith("xstate.");
  if (timer !== undefined) return isTimer(timer);
  return (
    isListOfTexts(actor) &&
    typeof start === "number" &&
    isObject(result) &&
    ("output" in result || "error" in result)
  );
}

/** The stored machine in a state. @throws GraphChangedError if the state contains none, or one that this version of Heddle cannot read */
export function storedMachineOf(state: JsonObject): StoredMachine {
  const kept = state[SNAPSHOT_KEY];
  if (isStoredMachine(kept)) return kept;
  throw graphChangedError(
    `${SNAPSHOT_KEY} of this thread is no machine that this version of Heddle can go on with: ` +
      "begin the machine anew, by a run with an input",
  );
}

function isStoredMachine(kept: unknown): kept is StoredMachine {
  if (!isObject(kept) || !isObject(kept["rest"])) return false;
  const { work, timers, actions, unset, children = [] } = kept;
  return (
    Array.isArray(children) &&
    children.every(isStoredChild) &&
    Array.isArray(unset) &&
    Array.isArray(work) &&
    work.every(isStartedPromiseActor) &&
    Array.isArray(timers) &&
    timers.every(isSetTimer) &&
    Array.isArray(actions) &&
    actions.every(isReplayableMacrostep)
  );
}

const isListOfTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

const isSetTimer = (value: unknown): boolean =>
  isTimer(value) &&
  isListOfTexts((value as Partial<SetTimer>).from) &&
  isListOfTexts((value as Partial<SetTimer>).to) &&
  typeof (value as Partial<SetTimer>).event?.type === "string";

function isReplayableMacrostep(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { before, message } = value;
  return before === null || (isObject(before) && isObject(message) && isListOfTexts(message["to"]));
}

/** Whether a value is the input of an actor's node, in a form that this version of Heddle can read. */
export const isStartedPromiseActor = (value: unknown): value is StartedPromiseActor =>
  isObject(value) &&
  isListOfTexts(value["at"]) &&
  isListOfTexts(value["owner"]) &&
  typeof value["src"] === "string";

const isStoredChild = (value: unknown): value is StoredChild =>
  isObject(value) &&
  typeof value["start"] === "number" &&
  Array.isArray(value["at"]) &&
  ["string", "undefined"].includes(typeof value["ns"]);

/** The child machines in a state. Malformed ones are left out, because a client may have edited the state. */
export function storedChildrenOf(state: JsonObject): readonly StoredChild[] {
  const kept = state[SNAPSHOT_KEY];
  const children = isObject(kept) ? kept["children"] : undefined;
  return Array.isArray(children) ? children.filter(isStoredChild) : [];
}

/** The timers in a state. Malformed ones are left out, because a client may have edited the state. */
export function timersOf(state: JsonObject): readonly SetTimer[] {
  const kept = state[SNAPSHOT_KEY];
  const timers = isObject(kept) ? kept["timers"] : undefined;
  return Array.isArray(timers) ? (timers.filter(isTimer) as SetTimer[]) : [];
}

export function snapshotOf(state: JsonObject): StoredSnapshot {
  const { rest, unset } = storedMachineOf(state);
  const context = Object.entries(state).filter(
    ([key, held]) => !MACHINE_KEYS.has(key) && !(held === null && unset.includes(key)),
  );
  return { value: state[STATE_KEY], context: Object.fromEntries(context), rest };
}
