import { isObject, type JsonObject } from "../model/json.ts";
import { isTimer, type Timer } from "../model/machine-timer.ts";
import type {
  ActorResult,
  Address,
  AddressedEvent,
  MachineEvent,
  PromiseStart,
  StoredSnapshot,
} from "./machine-driver.ts";

/** An event for the machine, or a promise actor's result, that is not processed yet. */
export type Pending =
  | { readonly event: MachineEvent }
  | { readonly timer: Timer }
  | { readonly actor: Address; readonly start: number; readonly result: ActorResult };

/** A started promise actor whose result is not processed yet. `start` distinguishes it from others at the same address. */
export interface Work extends PromiseStart {
  readonly start: number;
}

/** A timer that was set, and neither cancelled nor taken yet. Its `id` tells it from others under the same name. */
export interface SetTimer extends Timer {
  /** The id that XState knows it by. */
  readonly name: string | null;
  /** The actor that has set it. */
  readonly from: Address;
  /** The actor that gets its event. */
  readonly to: Address;
  readonly event: MachineEvent;
}

/** A macrostep whose custom actions have to run. They are determined by processing the event again. */
export type Step =
  /** The beginning, with the machine's input. */
  | { readonly before: null; readonly input: unknown }
  | { readonly before: StoredSnapshot; readonly message: AddressedEvent };

/** The stored parts of a machine other than its context, its state's value and its output. */
export interface StoredMachine {
  readonly rest: JsonObject;
  readonly work: readonly Work[];
  /** The number of actors started and timers set. */
  readonly started: number;
  readonly timers: readonly SetTimer[];
  readonly actions: readonly Step[];
  /** Keys that an earlier context had. */
  readonly unset: readonly string[];
  /** Queued runs whose events the last step took. */
  readonly taken?: readonly string[];
}

/** The key of the state that holds the whole input until the machine has begun with it. */
export const INPUT_KEY = "__machine_input__";

/** Keys of the state that are not of the context. */
export const STATE_KEY = "__state__";
export const OUTPUT_KEY = "__output__";
export const SNAPSHOT_KEY = "__snapshot__";
export const EVENTS_KEY = "__events__";
/** The version of the machine that made the state. Absent where machines declare none. */
export const VERSION_KEY = "__version__";
export const OWN: ReadonlySet<string> = new Set([
  STATE_KEY,
  OUTPUT_KEY,
  SNAPSHOT_KEY,
  EVENTS_KEY,
  VERSION_KEY,
  INPUT_KEY,
]);

/** The error of a state that a machine cannot go on from as it is. */
export const stateMismatch = (message: string, cause?: unknown) =>
  Object.assign(new Error(message, { cause }), { name: "GraphChangedError" });

/** The stored machine of a state. @throws GraphChangedError if it has none in the form that is read here */
export function storedMachineOf(state: JsonObject): StoredMachine {
  const kept = state[SNAPSHOT_KEY];
  if (isStoredMachine(kept)) return kept;
  throw stateMismatch(
    `${SNAPSHOT_KEY} of this thread is no machine that this version of Heddle can go on with: ` +
      "begin the machine anew, by a run with an input",
  );
}

function isStoredMachine(kept: unknown): kept is StoredMachine {
  if (!isObject(kept) || !isObject(kept["rest"])) return false;
  const { work, timers, actions, unset } = kept;
  return (
    Array.isArray(unset) &&
    Array.isArray(work) &&
    work.every(isWork) &&
    Array.isArray(timers) &&
    timers.every((one: unknown) => isTimer(one) && Array.isArray((one as Partial<SetTimer>).to)) &&
    Array.isArray(actions) &&
    actions.every((step: unknown) => isObject(step) && (step["before"] === null || isObject(step["message"])))
  );
}

/** True for the input of an actor's node in the form that is read here. */
export const isWork = (value: unknown): value is Work =>
  isObject(value) && Array.isArray(value["at"]) && Array.isArray(value["owner"]);

/** The timers of a state. A client may have changed it. */
export function timersOf(state: JsonObject): readonly SetTimer[] {
  const kept = state[SNAPSHOT_KEY];
  const timers = isObject(kept) ? kept["timers"] : undefined;
  return Array.isArray(timers) ? (timers.filter(isTimer) as SetTimer[]) : [];
}

export function snapshotOf(state: JsonObject): StoredSnapshot {
  const { rest, unset } = storedMachineOf(state);
  const context = Object.entries(state).filter(
    ([key, held]) => !OWN.has(key) && !(held === null && unset.includes(key)),
  );
  return { value: state[STATE_KEY], context: Object.fromEntries(context), rest };
}
