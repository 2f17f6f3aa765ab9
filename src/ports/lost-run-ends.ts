import type { PlainError } from "../model/errors.ts";
import type { RunRecord, TerminalStatus } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";

/**
 * A run whose record says that it has not ended, although its thread has moved past it. Stops of older versions left such
 * runs: they overwrote the record of the run's end with an earlier one.
 */
export interface RunWithLostEnd {
  readonly key: ThreadKey;
  readonly run: RunRecord;
  /** The end of the run, found from other stored data; null when the run was rolled back. */
  readonly end: RecordedEnd | null;
}

export interface RecordedEnd {
  readonly status: TerminalStatus;
  readonly error: PlainError | null;
  readonly next_event: number;
  /** True if its end was already stored, together with its webhook delivery, and then overwritten. */
  readonly wasStored: boolean;
}

/** Finds runs that must be ended and that no list of pending work contains. */
export interface LostRunEnds {
  /** True when it is known that there are none, so no search is needed. */
  readonly areNone: boolean;
  /** Searches all threads, until `stop`. It may wrongly yield runs of threads that change meanwhile. */
  find(stop?: AbortSignal): AsyncIterable<RunWithLostEnd>;
  /** Records that all of them have ended, so that later starts need not search. Ignored if some threads could not be read. */
  noteNone(): Promise<void>;
}
