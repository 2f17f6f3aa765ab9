import type { CheckpointHead } from "../model/checkpoint.ts";
import type { EventChunk, Fact } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";

/**
 * Where a run's facts go: the writing end of its log. Facts never pass a mailbox: a thousand tokens in it would delay an
 * interrupt by a thousand turns.
 *
 * A fact is seen by readers only once it is stored (or as the configured `streams.sync` says), in order, exactly once.
 */
export interface Sink {
  /**
   * Adds a fact and returns the id of its first event. `values` is the state that a `checkpoint` or `interrupt` fact
   * refers to, `head` the checkpoint that is new, so that live readers need no read; MUST NOT be changed afterwards.
   * Facts are stored soon (class streamed), many in one chunk, unless `take` fetches them first. After `close`, or for
   * an older attempt, it does nothing and returns -1.
   */
  emit(fact: Fact, values?: JsonObject, head?: CheckpointHead): number;
  /**
   * Hands over the facts that are not yet on their way to storage, to ride in the caller's own append. The caller MUST
   * then call `stored` or `lost` with that chunk, in the order of the takes.
   */
  take(): EventChunk | undefined;
  stored(chunk: EventChunk): void;
  /** The append failed. The log is broken off: its readers are told to come again. */
  lost(chunk: EventChunk): void;
  /** The id that the next event takes. */
  readonly next: number;
  /** The run has ended and all its facts are stored: readers end after the last one. */
  close(): void;
  /** Is somebody reading? After `close`: is somebody who has not come to the end yet? */
  readonly isRead: boolean;
  /**
   * The process gives the run up without an end (its storage failed, or the server stops): readers are cut off, to come
   * again with their last id.
   */
  abandon(): void;
}

/** Makes sinks: one for each attempt of a run. */
export interface Sinks {
  /**
   * An attempt of `run` begins; `first` is the id of its next event. An older sink of the same run is dead from here on.
   * Who reads the thread is told: the record MUST have its `seq_base`.
   */
  open(key: ThreadKey, run: RunRecord, epoch: number, first: number): Sink;
  /** A run waits, or is about to start: its readers are kept until `open`. */
  expect(key: ThreadKey, run: string): void;
  /** A waiting run ended without ever starting: its readers end. */
  dismiss(key: ThreadKey, run: string): void;
  /** The thread is deleted, its runs have ended: who reads all of them comes to the end. */
  removed(key: ThreadKey): void;
}
