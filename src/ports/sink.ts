import type { CheckpointHead } from "../model/checkpoint.ts";
import type { EventChunk, Fact } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Emission } from "./engine-host.ts";

/**
 * The writing end of a run's event log. Facts do not pass through the run's mailbox: a thousand tokens there would delay an interrupt by a
 * thousand turns.
 *
 * Readers see a fact only once it is stored (or as `streams.sync` is configured), in order, exactly once.
 */
export interface Sink {
  /**
   * Adds a fact and returns the id of its first event. `values` is the state to which a `checkpoint` or `interrupt` fact
   * refers, `head` the new checkpoint: with them, live readers need no read. They MUST NOT be changed afterwards. Facts are
   * stored soon (not durable), many in one chunk, unless `take` takes them first. After `close`, or for an older attempt, it
   * does nothing and returns -1.
   */
  emit(fact: Fact, values?: JsonObject, head?: CheckpointHead): number;
  /**
   * Adds facts, and takes all facts whose write has not begun, for the caller to store them in its own append. The caller MUST then call
   * `stored` with that chunk, in the order of the takes, or `abandon` if the append failed. `emissions`: facts as for {@link emit}, but the
   * states to which they refer are stored only by that append. If the facts are too large for one chunk, the first ones are stored before
   * the append, but readers do not see them before `stored`, because a crash in between would lose their states.
   */
  take(emissions?: readonly Emission[]): EventChunk | undefined;
  stored(chunk: EventChunk): void;
  /** The id of the next event. */
  readonly next: number;
  /** Closes the log: the run has ended and all its facts are stored. Readers end after the last one. */
  close(): void;
  /** True when the log has a reader; after `close`, when it has one that has not reached the end. */
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
   * Opens the sink of a new attempt of `run`; `first` is the id of its next event. An older sink of the run stops working.
   * Readers of the thread are notified, so the record MUST have its `seq_base`.
   */
  open(key: ThreadKey, run: RunRecord, epoch: number, first: number): Sink;
  /** Ends the readers of a queued run that ended without a start. */
  dismiss(key: ThreadKey, run: string): void;
  /** True when somebody reads the events of this run, or of all runs of its thread: they must not be deleted then. */
  isRead(key: ThreadKey, run: string): boolean;
  /**
   * Announces that the thread is about to be deleted, and that these runs are cancelled for that. Their readers learn of the end only when
   * the returned function is called, which MUST be done once.
   */
  removing(key: ThreadKey, runs: readonly string[]): (isDeleted: boolean) => void;
  /** Notifies all readers of the thread that it was deleted. Its runs have ended before. */
  removed(key: ThreadKey): void;
}
