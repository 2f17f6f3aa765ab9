import type { CheckpointHead } from "../model/checkpoint.ts";
import type { EventChunk, Fact } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Emission } from "./engine-host.ts";

/**
 * The writing end of a run's event log. The log consists of facts: what happened in the run, such as a token or the end of a task. Facts do
 * not pass through the mailbox of the run's actor. A thousand tokens in the mailbox would delay an interrupt by a thousand turns of the
 * event loop.
 *
 * Readers see facts in order and exactly once. They see a fact only when it is stored, unless `streams.sync` is configured otherwise.
 */
export interface Sink {
  /**
   * Adds a fact and returns the id of its first event. `values`: the state that a `checkpoint` or `interrupt` fact refers to;
   * `head`: the new checkpoint. With these two, live readers need not read the storage; they MUST NOT be changed afterwards.
   * Facts are stored soon (not durably), many in one chunk, unless `take` takes them first. After `close`, or for an older
   * attempt, it does nothing and returns -1.
   */
  emit(fact: Fact, values?: JsonObject, head?: CheckpointHead): number;
  /**
   * Adds the facts of `emissions`, and returns them as one chunk together with all earlier facts whose write has not begun. The caller
   * stores the chunk, and the states to which the facts of `emissions` refer, in its own append. The caller MUST then call `stored` with
   * the chunk, in the order of the `take` calls, or `abandon` if the append failed.
   *
   * If the facts are too large for one chunk, the first ones are stored before the append. Readers do not see them before `stored` is
   * called, because a crash in between would lose the states to which they refer.
   */
  take(emissions?: readonly Emission[]): EventChunk | undefined;
  stored(chunk: EventChunk): void;
  /** The id of the next event. */
  readonly next: number;
  /** Closes the log, because the run has ended and all its facts are stored. Readers end after the last fact. */
  close(): void;
  /** True when the log has a reader; after `close`, when a reader has not reached the end yet. */
  readonly isRead: boolean;
  /**
   * Abandons the log without an end, because storage failed or the server stops. Readers are disconnected, and may reconnect
   * with their last event id.
   */
  abandon(): void;
}

/** Makes sinks: one for each attempt of a run. */
export interface Sinks {
  /**
   * Opens the sink of a new attempt of `run`; `first` is the id of its next event. An older sink of the run stops
   * working. `run` MUST have its `seq_base`, because readers of the whole thread are notified of the run and number its
   * events from there.
   */
  open(key: ThreadKey, run: RunRecord, epoch: number, first: number): Sink;
  /** Ends the readers of a run that ended while it was queued, before it started. */
  dismiss(key: ThreadKey, run: string): void;
  /** True when somebody reads the events of this run, or of all runs of its thread: they must not be deleted then. */
  isRead(key: ThreadKey, run: string): boolean;
  /**
   * Announces that the thread is about to be deleted and that these runs are cancelled for that reason. Readers of the runs see the end only
   * when the returned function is called. It MUST be called once.
   */
  removing(key: ThreadKey, runs: readonly string[]): (isDeleted: boolean) => void;
  /** Notifies all readers of the thread that it was deleted. Called after all its runs have ended. */
  removed(key: ThreadKey): void;
}
