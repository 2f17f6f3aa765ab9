import { ServiceError } from "../model/errors.ts";

/** One batch in the log of a shard. */
export interface LogEntry {
  /** The position in the log of the shard: contiguous from 1. */
  readonly seq: number;
  /** The epoch of the owner that has appended it. Never lower than that of the entry before. */
  readonly epoch: number;
  readonly batch: Uint8Array;
}

/**
 * The ordered log of every shard of a cluster. It is what makes a batch durable: a shard's database can be built again from it.
 *
 * A shard has one owner at a time, with an epoch. `Membership` gives a shard a new epoch; from then on, appends with another epoch MUST be
 * refused, by the same statement that appends: a check before it would let a former owner write that was paused in between.
 *
 * Every failure MUST be a ServiceError: `log.fenced`, `log.trimmed`, or `storage.unavailable`. After `storage.unavailable` it is unknown whether
 * an append was stored, and it may still be stored later: a caller finds out by appending something at the same position.
 */
export interface ShardLog {
  /**
   * Appends an entry. MUST NOT resolve before it would survive the loss of the machine, as far as the database behind the log is set up for that. MUST reject with
   * `log.fenced`, and change nothing, if there is or was an entry at `seq`, if `seq` is not the next position, or if `epoch` is not the
   * shard's. The caller does not change `batch` afterwards.
   */
  append(shard: number, seq: number, epoch: number, batch: Uint8Array): Promise<void>;
  /**
   * The entries from `from` on, in order and without gaps; none at the end of the log. MUST return at least one entry if there is one, and stop
   * before the one with which the batches would exceed `limitBytes` in total. MUST see every append that resolved before the call. Rejects with `log.trimmed` if `from` is
   * below what was trimmed.
   */
  read(shard: number, from: number, limitBytes: number): Promise<readonly LogEntry[]>;
  /** The position of the last entry, even if it is trimmed; 0 for an empty log. */
  last(shard: number): Promise<number>;
  /** Deletes the entries below a position, but never the last entry. In small steps: if it rejects, some of them may be deleted. */
  trim(shard: number, below: number): Promise<void>;
}

/** The error for an append that is refused. */
export const fencedAppend = (shard: number, seq: number, epoch: number, cause?: unknown): ServiceError =>
  new ServiceError(
    "log.fenced",
    `Shard ${shard} has another owner: the append of epoch ${epoch} at position ${seq} is refused`,
    { cause },
  );

/** The error for a read of entries that were trimmed. */
export const trimmedLog = (shard: number, from: number): ServiceError =>
  new ServiceError("log.trimmed", `The log of shard ${shard} does not reach back to position ${from}`);
