import type { JsonObject } from "../model/json.ts";

/** An event of a machine. */
export interface MachineEvent extends JsonObject {
  readonly type: string;
}

/** A machine's snapshot in storable form. */
export interface StoredSnapshot {
  readonly value: unknown;
  readonly context: JsonObject;
  /** The rest of XState's snapshot: status, output, history and child actors. */
  readonly rest: JsonObject;
}

/** Where an actor is: the ids from below the root to its own. The root's is empty. */
export type Address = readonly string[];

/** True if an address is `top`, or below it. */
export const isWithin = (at: Address, top: Address): boolean => top.every((id, level) => at[level] === id);

/** A promise actor to start. */
export interface PromiseStart {
  readonly at: Address;
  /** The sources of the machines above it, from below the root. The last one's implementations have its `src`. */
  readonly owner: readonly string[];
  readonly src: string;
  readonly input: unknown;
}

/** What a transition asks the driver's caller to do, in order. */
export type Effect =
  | ({ readonly kind: "start" } & PromiseStart)
  /** Ends the promise actors at and below an address, and drops the timers that they set or wait for. */
  | { readonly kind: "stop"; readonly at: Address }
  /** An event that an actor sends to itself or another after a delay (milliseconds). Timers without an id cannot be cancelled. */
  | {
      readonly kind: "timer";
      readonly from: Address;
      readonly to: Address;
      readonly id: string | undefined;
      readonly delay: number;
      readonly event: MachineEvent;
    }
  /** Cancels the timers that an actor has set with this id. */
  | { readonly kind: "cancel"; readonly from: Address; readonly id: string }
  | { readonly kind: "emit"; readonly event: unknown }
  | { readonly kind: "log"; readonly label: string | undefined; readonly value: unknown }
  /** A custom action. */
  | { readonly kind: "action"; run(): unknown };

/** An event for an actor, or the result of a promise actor. */
export type AddressedEvent = { readonly to: Address } & (
  | { readonly event: MachineEvent }
  | { readonly result: ActorResult }
);

/** The result of one macrostep, and of those of child actors that it causes. */
export interface Taken {
  readonly snapshot: StoredSnapshot;
  readonly status: "active" | "done";
  readonly output: unknown;
  readonly effects: readonly Effect[];
}

/** What a machine waits for. */
export interface Waiting {
  readonly tags: readonly string[];
  readonly meta: JsonObject;
  /** The descriptors of the events that the machine's active states handle and do not forbid, such as `APPROVE` and `order.*`. */
  readonly events: readonly string[];
  /** Descriptors that the active states name and forbid. An event of such a type is not taken, also if a wildcard matches it. */
  readonly forbidden: readonly string[];
  /** True when a transition is enabled, guards included. */
  can(event: MachineEvent): boolean;
}

/** The outcome of an actor. */
export type ActorResult = { readonly output: unknown } | { readonly error: unknown };

/** A promise actor that is running. */
export interface RunningActor {
  readonly result: Promise<ActorResult>;
  /** Aborts its signal. Its result is not awaited any more. */
  stop(): void;
}

/**
 * A machine as pure functions, whatever version of XState it was written for. It keeps nothing between calls. An error that the machine
 * does not catch is thrown.
 */
export interface MachineDriver {
  /** Identifies the structure of the machine. */
  readonly hash: string;
  /** The version that the machine declares; null if it declares none. */
  readonly version: string | null;
  /** The descriptors of the events that it handles in any of its states. */
  readonly events: readonly string[];
  begin(input: unknown): Taken;
  take(snapshot: StoredSnapshot, message: AddressedEvent): Taken;
  waiting(snapshot: StoredSnapshot): Waiting;
  startActor(start: PromiseStart, emit: (event: unknown) => void): RunningActor;
}

/** True when an event of this type matches one of the descriptors, such as `APPROVE`, `order.*` or `*`. */
export function isHandled(type: string, descriptors: readonly string[]): boolean {
  return descriptors.some(
    (one) => one === type || one === "*" || (one.endsWith(".*") && `${type}.`.startsWith(one.slice(0, -1))),
  );
}
