import type { JsonObject } from "../model/json.ts";
import type { ChildMachineStatus } from "../model/machine-child.ts";
import type { DeclaredSchemas } from "./declared-schemas.ts";

export interface MachineEvent extends JsonObject {
  readonly type: string;
}

/** A machine's snapshot in a form that can be stored. */
export interface StoredSnapshot {
  readonly value: unknown;
  readonly context: JsonObject;
  /** The other members of XState's snapshot: status, output, history and child actors. */
  readonly rest: JsonObject;
}

/**
 * The position of an actor in its tree: the ids of the actors on the way from the root to it, without the root's id. The root has an empty
 * address.
 */
export type Address = readonly string[];

/** Whether the actor at the address `at` is the actor at `top`, or one of its descendants. */
export const isWithin = (at: Address, top: Address): boolean => top.every((id, level) => at[level] === id);

/** What a promise actor needs to start. It is stored, so that the actor can start again after a restart of the server. */
export interface PromiseStart {
  readonly at: Address;
  /**
   * The `src` of each machine on the way from the root to the actor, outermost first, without the root's. The innermost machine (the root
   * if the list is empty) implements the actor's `src`.
   */
  readonly owner: readonly string[];
  readonly src: string;
  readonly input: unknown;
}

/** An `after` transition of a state: the id of its timer, which is also the type of the timer's event, and its delay in milliseconds. */
export interface DelayedTransition {
  readonly id: string;
  readonly delay: number;
}

/** What the driver's caller has to do after a transition. Effects are carried out in order. */
export type Effect =
  | ({ readonly kind: "start" } & PromiseStart)
  /** Stop the promise actors at or below an address, and drop the timers that were set by or for actors there. */
  | { readonly kind: "stop"; readonly at: Address }
  /**
   * Send an event to an actor after a delay in milliseconds. `from`: the actor that set the timer. A timer without an id cannot be
   * cancelled.
   */
  | {
      readonly kind: "timer";
      readonly from: Address;
      readonly to: Address;
      readonly id: string | undefined;
      readonly delay: number;
      readonly event: MachineEvent;
    }
  /** Cancel the timers that an actor has set with this id. */
  | { readonly kind: "cancel"; readonly from: Address; readonly id: string }
  /**
   * Note that a child machine has begun (`begins`), has processed events, or was stopped. `read` returns its state at the end of the step,
   * and throws if that cannot be stored. `hasEnded`: at the end of the step the child is done, stopped, or has failed.
   */
  | {
      readonly kind: "child";
      readonly at: Address;
      readonly src: string;
      readonly begins: boolean;
      read(): ChildState;
      hasEnded(): boolean;
    }
  /** Emit an event to the clients of the run. `from`: the actor that emits it. */
  | { readonly kind: "emit"; readonly from: Address; readonly event: unknown }
  | { readonly kind: "log"; readonly label: string | undefined; readonly value: unknown }
  /** Run a custom action of the machine. */
  | { readonly kind: "action"; run(): unknown };

export interface ChildState {
  readonly value: unknown;
  readonly context: JsonObject;
  /** The output of the machine; null unless the machine has reached a final state. */
  readonly output: unknown;
  /** Absent if an earlier version of Heddle has stored the state. */
  readonly status?: ChildMachineStatus;
}

/** An event for an actor, or the result of a promise actor. */
export type AddressedEvent = { readonly to: Address } & (
  | { readonly event: MachineEvent }
  | { readonly result: ActorResult }
);

/** The result of one macrostep of the machine, including macrosteps of child actors that it causes. */
export interface MacrostepResult {
  readonly snapshot: StoredSnapshot;
  readonly status: "active" | "done";
  readonly output: unknown;
  readonly effects: readonly Effect[];
}

/** The events that a machine accepts in its current state, and the tags and metadata of that state. */
export interface AcceptedByState {
  readonly tags: readonly string[];
  readonly meta: JsonObject;
  /** The descriptors of events that the machine's active states handle and do not forbid, such as `APPROVE` and `order.*`. */
  readonly events: readonly string[];
  /**
   * The descriptors that the active states forbid: they have transitions for them without a target and without actions. The machine does
   * not take an event of such a type, even if a wildcard matches the event.
   */
  readonly forbidden: readonly string[];
  /** Whether the event enables a transition, guards included. Throws the error of a guard that throws. */
  can(event: MachineEvent): boolean;
}

/** How a promise actor has ended: with an output or with an error. */
export type ActorResult = { readonly output: unknown } | { readonly error: unknown };

/** A promise actor that is running. */
export interface RunningActor {
  readonly result: Promise<ActorResult>;
  /** Aborts the actor's signal. The actor's result MUST be ignored from then on. */
  stop(): void;
}

/** A machine that may be started as a child of another machine. */
export interface PossibleChildMachine {
  /** The `src` names on the way from the root machine to this machine, including its own, without the root. */
  readonly path: readonly string[];
  /** Returns the context with which the machine begins for the input `{}`; undefined if it cannot begin with this input. */
  firstContext(): JsonObject | undefined;
}

/**
 * Runs a machine with the XState of its project. A driver keeps no state between calls: the caller passes the snapshot. An error that the
 * machine does not handle is thrown.
 */
export interface MachineDriver {
  /** A hash of the machine's structure, which identifies its drawing and schemas. */
  readonly hash: string;
  /** The version that the machine declares; null if it declares none. */
  readonly version: string | null;
  /** The schemas that the machine declares; null if it declares none. */
  readonly schemas: DeclaredSchemas | null;
  /** The descriptors of events that the machine handles in any of its states. */
  readonly events: readonly string[];
  /** The paths of the machine's states, such as `charging.card`. */
  readonly states: readonly string[];
  /** The reason why a value is no state value of the machine; undefined if it is one. */
  whyNotState(value: unknown): string | undefined;
  /**
   * Returns the state value in which the state `name`, a path or an id, is active. Regions of parallel states that are not on the way to
   * this state keep their value in `current`. Undefined if the machine has no such state. `isLeft`: whether the machine's actor with this
   * id was invoked by a state that is not active any more.
   */
  enteredState(
    name: string,
    current: unknown,
  ): { readonly value: unknown; readonly isLeft: (id: string) => boolean } | undefined;
  /** Starts the machine with an input. */
  begin(input: unknown): MacrostepResult;
  /** Delivers an event or a result to an actor of the machine. A message to an actor that does not exist changes nothing. */
  take(snapshot: StoredSnapshot, message: AddressedEvent): MacrostepResult;
  accepted(snapshot: StoredSnapshot): AcceptedByState;
  /**
   * Completes a snapshot that was migrated from another version: drops the children whose state is not active, and adds each promise actor
   * that an active state invokes and that is not among the children. `working`: the promise actors that run, at any depth. `delayed`: the
   * `after` transitions of the machine's active states. Throws if the machine cannot continue from the snapshot.
   */
  completed(snapshot: StoredSnapshot): {
    readonly snapshot: StoredSnapshot;
    readonly working: readonly PromiseStart[];
    readonly delayed: readonly DelayedTransition[];
  };
  /** Starts a promise actor. `emit` is called with each event that the actor emits, in a form that can be stored. */
  startActor(start: PromiseStart, emit: (event: unknown) => void): RunningActor;
  /**
   * All machines that this machine and its children may start. A machine that is started again below itself is listed there once more,
   * without its children.
   */
  childMachines(): readonly PossibleChildMachine[];
}

/** Whether an event type matches one of the descriptors, such as `APPROVE`, `order.*` or `*`. */
export function matchesEventDescriptor(type: string, descriptors: readonly string[]): boolean {
  return descriptors.some(
    (one) => one === type || one === "*" || (one.endsWith(".*") && `${type}.`.startsWith(one.slice(0, -1))),
  );
}
