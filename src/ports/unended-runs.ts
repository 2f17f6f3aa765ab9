import type { PlainError } from "../model/errors.ts";
import type { RunRecord, TerminalStatus } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";

/**
 * A run that has not ended by its record, although its thread has gone past it. Stops of older versions have left such: they wrote
 * the record of a run that was in progress once more, over that of its end.
 */
export interface UnendedRun {
  readonly key: ThreadKey;
  readonly run: RunRecord;
  /** How it ended, by what else is stored; null: it was rolled back. */
  readonly end: RecordedEnd | null;
}

export interface RecordedEnd {
  readonly status: TerminalStatus;
  readonly error: PlainError | null;
  /** How many events it had. */
  readonly next_event: number;
  /** Its end was stored before, and with it what it owed to its webhook. */
  readonly wasStored: boolean;
}

/** Finds runs that are to end and are on no list of what there is to do. */
export interface UnendedRuns {
  /** Are there known to be none? Then nobody has to look. */
  readonly areNone: boolean;
  /** Looks through all threads, until `stop`. Those that are changed meanwhile may be among what it finds, wrongly. */
  find(stop?: AbortSignal): AsyncIterable<UnendedRun>;
  /** All of them have ended: no later start has to look. Where some threads could not be read, it is not believed. */
  noteNone(): Promise<void>;
}
