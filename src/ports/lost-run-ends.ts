import type { PlainError } from "../model/errors.ts";
import type { RunRecord, TerminalStatus } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";

/**
 * A run whose record says that it has not ended, although its thread no longer lists it as in progress, queued or delayed. Older versions
 * of Heddle left such runs when the server stopped: they overwrote the record of the ended run with an earlier version of the record.
 */
export interface RunWithLostEnd {
  readonly key: ThreadKey;
  readonly run: RunRecord;
  /** The end of the run, found from other stored data; null when the run was rolled back and must be deleted. */
  readonly end: RecordedEnd | null;
}

export interface RecordedEnd {
  readonly status: TerminalStatus;
  readonly error: PlainError | null;
  readonly next_event: number;
  /** True if the end of the run was already stored, together with its webhook delivery, and an older record of the run was stored after it. */
  readonly wasStored: boolean;
}

/** Finds runs with a lost end. No list of pending work contains them, so they must be searched for. */
export interface LostRunEnds {
  /** True when it is known that no run has lost its end, so that no search is needed. */
  readonly areNone: boolean;
  /** Searches all threads, until `stop` aborts. It may wrongly yield runs of threads that change during the search. */
  find(stop?: AbortSignal): AsyncIterable<RunWithLostEnd>;
  /**
   * Records that no such runs are left, so that the server does not search again when it starts the next time. Ignored if some threads
   * could not be read.
   */
  noteNone(): Promise<void>;
}
