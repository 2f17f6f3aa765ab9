import type { JsonObject } from "./json.ts";
import type { Timer } from "./machine-timer.ts";

/** An event of a machine whose own run has not started. `run`: that run. */
export type WaitingEvent = { readonly run: string } & (
  | { readonly event: unknown }
  | { readonly timer: Timer }
);

/** A machine whose actors work. */
export interface MachineAtWork {
  readonly state: unknown;
  /** Descriptors of the events that it takes now, such as `APPROVE` and `order.*`. */
  readonly events: readonly string[];
}

/** The events that wait behind a run in progress, for the machine that it drives. */
export interface MachineMailbox {
  /** The state of the run's graph. */
  readonly values: JsonObject;
  /** In the order in which they were admitted, up to the first run that brings no event for this machine. */
  waiting(): readonly WaitingEvent[];
  /** Calls `arrived` whenever there may be others than before, until the returned function is called. */
  watch(arrived: () => void): () => void;
}
