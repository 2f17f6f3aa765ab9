import { ServiceError } from "../model/errors.ts";

/** A copy of the database of a shard. */
export interface ShardSnapshot {
  readonly id: string;
  readonly shard: number;
  /** The position of the last log entry that the copy includes. */
  readonly seq: number;
  readonly parts: number;
  readonly bytes: number;
}

/**
 * Copies of the databases of shards. A node starts from such a copy if it has no database of the shard, or if its own
 * is so old that the log has been trimmed beyond it.
 *
 * Every failure MUST be a ServiceError: `storage.unavailable`, or `log.trimmed` for a snapshot that was deleted in the
 * meantime.
 */
export interface ShardSnapshots {
  /**
   * Stores a snapshot, whose parts have at most some megabytes each. {@link newest} MUST NOT return it before all parts
   * are stored. If `put` rejects, or the process ends, there is no such snapshot, and {@link prune} deletes its parts
   * once there is a newer one. Errors of `parts` are passed on.
   */
  put(shard: number, seq: number, parts: AsyncIterable<Uint8Array>): Promise<ShardSnapshot>;
  /** The complete snapshot of a shard with the highest position; undefined if there is none. */
  newest(shard: number): Promise<ShardSnapshot | undefined>;
  /** The parts of a snapshot, as they were put. */
  read(snapshot: ShardSnapshot): AsyncIterable<Uint8Array>;
  /**
   * Deletes the snapshots of a shard below the newest complete one. That includes unfinished ones, whose `put` then
   * rejects. Works in small steps.
   */
  prune(shard: number): Promise<void>;
}

/** The error for a snapshot that was deleted while it was read or put. */
export const deletedSnapshot = (shard: number, seq: number): ServiceError =>
  new ServiceError(
    "log.trimmed",
    `The snapshot of shard ${shard} at position ${seq} was deleted, because there is a newer one`,
  );
