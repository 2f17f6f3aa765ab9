import { ServiceError } from "../model/errors.ts";

/** One batch in the log of a shard. */
export interface LogEntry {
  /** The position in the log of the shard: contiguous from 1. */
  readonly seq: number;
  /** The epoch of the owner that appended the entry. Never lower than the epoch of the previous entry. */
  readonly epoch: number;
  readonly batch: Uint8Array;
}

/** What the log of a shard holds from a position on. */
export interface LogExtent {
  /** The position of the first entry; `last` + 1 if there is none. */
  readonly first: number;
  /** The position of the last entry of the log. */
  readonly last: number;
  /** The bytes of the batches of all entries from `first` to `last`. */
  readonly bytes: number;
}

/**
 * The ordered log of every shard of a cluster. A batch is durable when it is in the log, because a shard's database can be built again from
 * the log.
 *
 * A shard has one owner at a time, with an epoch (a number that increases with each new owner). `Membership` gives a shard a new epoch;
 * from then on, appends with another epoch MUST be refused. The statement that appends MUST check the epoch itself: a former owner could be
 * paused between a separate check and its append, and would then still write.
 *
 * Every failure MUST be a ServiceError: `log.fenced`, `log.trimmed`, or `storage.unavailable`. After `storage.unavailable` it is unknown
 * whether an append was stored, and it may still be stored later. A caller finds out by appending something at the same position.
 */
export interface ShardLog {
  /**
   * Appends an entry. MUST resolve only when the entry would survive the loss of the machine, as far as the database of the log is
   * configured for that. The caller does not change `batch` afterwards.
   *
   * MUST reject with `log.fenced`, and change nothing, if there is or was an entry at `seq`, if `seq` is not the next position, or if
   * `epoch` is not the shard's current epoch.
   */
  append(shard: number, seq: number, epoch: number, batch: Uint8Array): Promise<void>;
  /**
   * The entries from `from` on, in order and without gaps; none at the end of the log. MUST see every append that resolved before the call.
   * MUST stop before the total size of the batches exceeds `limitBytes`, but MUST return at least one entry if there is one. Rejects with
   * `log.trimmed` if the entry at `from` was trimmed.
   */
  read(shard: number, from: number, limitBytes: number): Promise<readonly LogEntry[]>;
  /** The position of the last entry, even if it is trimmed; 0 for an empty log. */
  last(shard: number): Promise<number>;
  /** What the log holds from the position `from` on. Entries that were trimmed do not count. May take long for a long log. */
  extent(shard: number, from: number): Promise<LogExtent>;
  /**
   * Deletes the entries at positions lower than `below`, but never the last entry of the log. Works in small steps: if
   * `trim` rejects, some of the entries may already be deleted.
   */
  trim(shard: number, below: number): Promise<void>;
}

/** The error for an append that is refused. */
export const fencedAppendError = (shard: number, seq: number, epoch: number, cause?: unknown): ServiceError =>
  new ServiceError(
    "log.fenced",
    `Shard ${shard} has another owner: the append of epoch ${epoch} at position ${seq} is refused`,
    { cause },
  );

/** The error for a read of entries that were trimmed. */
export const trimmedLogError = (shard: number, from: number): ServiceError =>
  new ServiceError("log.trimmed", `The log of shard ${shard} does not reach back to position ${from}`);
