import type { JsonObject } from "./json.ts";
import type { Timer } from "./machine-timer.ts";

/**
 * An event in the queue of a machine's thread. `run`: the id of the run that was admitted for the event and
 * has not started.
 */
export type WaitingEvent = { readonly run: string } & (
  | { readonly event: unknown }
  | { readonly timer: Timer }
);

/** What a machine accepts while actors that it has invoked are running. */
export interface AcceptedEvents {
  /** The machine's state value, in XState's form. */
  readonly state: unknown;
  /** Descriptors of the events that the machine accepts now, such as `APPROVE` and `order.*`. */
  readonly events: readonly string[];
  /** The JSON Schema of these events; null if the machine declares no schemas. */
  readonly schema: JsonObject | null;
}

/** The question that a machine asks once its stored state is migrated to the current version. */
export interface QuestionAfterMigration {
  readonly value: JsonObject;
  /** The JSON Schema of the answer; null when none is known. */
  readonly schema: JsonObject | null;
}

/** The events of queued runs, for the machine that the run in progress executes. */
export interface MachineMailbox {
  /** The state of the run's graph. */
  readonly values: JsonObject;
  /**
   * The waiting events in the order of their admission, up to the first queued run that brings no event for this
   * machine.
   */
  waiting(): readonly WaitingEvent[];
  /** Calls `arrived` whenever the waiting events may have changed, until the returned function is called. */
  watch(arrived: () => void): () => void;
}
