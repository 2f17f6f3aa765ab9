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
 * Readers see facts in order and exactly once. They see a fact only when it is stored, unless `streams.sync` is `memory`.
 */
export interface EventSink {
  /**
   * Adds a fact and returns the id of the fact's first event. After `close`, or if a newer attempt has started, does nothing and returns
   * -1. Facts are stored soon after, many in one chunk and not durably, unless `take` takes them first.
   * `values` and `head` save readers of the newest events a read of the storage. They MUST NOT be changed afterwards.
   * @param values the state to which a `checkpoint` or `interrupt` fact refers
   * @param head the new checkpoint that the fact reports
   */
  emit(fact: Fact, values?: JsonObject, head?: CheckpointHead): number;
  /**
   * Adds the facts of `emissions`, and returns them in one chunk with all earlier facts whose write has not begun; undefined if there are
   * no such facts. The caller stores the chunk in its own append, with the states to which the facts of `emissions` refer. The caller MUST
   * then call `stored` with the chunk, in the order of the `take` calls, or `abandon` if the append failed.
   *
   * Facts that do not fit into the chunk are stored by the sink itself, before the append. If they refer to states, readers do not see them
   * before `stored` is called, because a crash before the append would lose these states.
   */
  take(emissions?: readonly Emission[]): EventChunk | undefined;
  stored(chunk: EventChunk): void;
  /** The id that the next event of the run gets. */
  readonly next: number;
  /** Closes the log. Called when the run has ended and all its facts are stored. Readers end after the last fact. */
  close(): void;
  /** True if the log has a reader. After `close`, true only if a reader has not reached the end yet. */
  readonly isRead: boolean;
  /**
   * Ends the log early, because the storage failed or the server stops. Readers are disconnected, and may connect again with their last
   * event id.
   */
  abandon(): void;
}

/** Makes sinks: one for each attempt of a run. */
export interface RunEventSinks {
  /**
   * Opens the sink of a new attempt of `run`. `first`: the id of its next event. An older sink of the run stops working. `run` MUST have
   * its `seq_base` (the thread's event number at the start of the run), because readers of the whole thread number the run's events from
   * there.
   */
  open(key: ThreadKey, run: RunRecord, epoch: number, first: number): EventSink;
  /**
   * Ends the streams of clients that read a run that has no sink: a run that was ended before it started, or a run whose missing end was
   * restored.
   */
  dismiss(key: ThreadKey, run: string): void;
  /** True if the events of this run are being read, by a reader of the run or of its thread. Then they must not be deleted. */
  isRead(key: ThreadKey, run: string): boolean;
  /**
   * Announces that the thread is about to be deleted, and that these runs are cancelled for that reason. Readers of the runs do not see the
   * end of a run until the returned function is called with the result of the deletion. The function MUST be called once.
   */
  removing(key: ThreadKey, runs: readonly string[]): (isDeleted: boolean) => void;
  /** Notifies all readers of the thread that it was deleted. Called after all its runs have ended. */
  removed(key: ThreadKey): void;
}
