import { isObject, type JsonObject } from "../model/json.ts";
import { isTimer, type Timer } from "../model/timer.ts";
import type { ActorResult, MachineEvent, StoredSnapshot } from "./machine-driver.ts";

/** An event that is not processed yet. The event of an actor's result is created when it is processed. */
export type Pending =
  | { readonly event: MachineEvent }
  | { readonly timer: Timer }
  | { readonly actor: string; readonly start: number; readonly result: ActorResult };

/** A started actor whose result is not processed yet. `start` distinguishes it from others with the same id. */
export interface Work {
  readonly id: string;
  readonly start: number;
  readonly src: string;
  readonly input: unknown;
}

/** A timer that was set, and neither cancelled nor taken yet. Its `id` tells it from others under the same name. */
export interface SetTimer extends Timer {
  /** The id that XState knows it by. */
  readonly name: string | null;
  readonly event: MachineEvent;
}

/** A macrostep whose custom actions have to run. They are determined by processing the event again. */
export interface Step {
  /** The snapshot before it; null for the beginning, with the machine's input as `event`. */
  readonly before: StoredSnapshot | null;
  readonly event: unknown;
}

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
}

/** The key of the state that holds the whole input until the machine has begun with it. */
export const INPUT_KEY = "__machine_input__";

/** Keys of the state that are not of the context. */
export const STATE = "__state__";
export const OUTPUT = "__output__";
export const SNAPSHOT = "__snapshot__";
export const EVENTS = "__events__";
/** The version of the machine that made the state. Absent where machines declare none. */
export const VERSION = "__version__";
export const OWN: ReadonlySet<string> = new Set([STATE, OUTPUT, SNAPSHOT, EVENTS, VERSION, INPUT_KEY]);

export const storedMachineOf = (state: JsonObject) => state[SNAPSHOT] as unknown as StoredMachine;

/** The timers of a state. A client may have changed it. */
export function timersOf(state: JsonObject): readonly SetTimer[] {
  const kept = state[SNAPSHOT];
  const timers = isObject(kept) ? kept["timers"] : undefined;
  return Array.isArray(timers) ? (timers.filter(isTimer) as SetTimer[]) : [];
}

export function snapshotOf(state: JsonObject): StoredSnapshot {
  const { rest, unset } = storedMachineOf(state);
  const context = Object.entries(state).filter(
    ([key, held]) => !OWN.has(key) && !(held === null && unset.includes(key)),
  );
  return { value: state[STATE], context: Object.fromEntries(context), rest };
}
