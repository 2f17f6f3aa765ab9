import type { CheckpointHead } from "../model/checkpoint.ts";
import type { EventChunk, Fact } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";

/**
 * The writing end of a run's event log. Facts do not pass the run's mailbox: a thousand tokens in it would delay an interrupt
 * by a thousand turns.
 *
 * Readers see a fact only when it is stored (or as `streams.sync` is configured), in order, exactly once.
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
   * Takes the facts that are not on their way to storage yet, for the caller to store them in its own append. The caller MUST
   * then call `stored` with that chunk, in the order of the takes, or `abandon` when the append failed.
   */
  take(): EventChunk | undefined;
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
  /** Ends the readers of a deleted thread. Its runs have ended before. */
  removed(key: ThreadKey): void;
}
