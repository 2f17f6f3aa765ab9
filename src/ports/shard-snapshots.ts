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
   * Stores a snapshot. Each of its parts has at most some megabytes. {@link newest} MUST NOT return the snapshot before all parts are
   * stored. If `put` rejects, or if the process ends earlier, the snapshot does not exist; {@link prune} deletes its parts when there is a
   * newer snapshot. An error of `parts` rejects `put`.
   */
  put(shard: number, seq: number, parts: AsyncIterable<Uint8Array>): Promise<ShardSnapshot>;
  /** The complete snapshot of a shard with the highest position; undefined if there is none. */
  newest(shard: number): Promise<ShardSnapshot | undefined>;
  /** The parts of a snapshot, as they were put. */
  read(snapshot: ShardSnapshot): AsyncIterable<Uint8Array>;
  /**
   * Deletes all snapshots of a shard that are older than the newest complete one. If one of them is still being stored, its `put` rejects.
   * The deletion is made in small steps.
   */
  prune(shard: number): Promise<void>;
}

/** The error for a snapshot that was deleted while it was read or put. */
export const deletedSnapshot = (shard: number, seq: number): ServiceError =>
  new ServiceError(
    "log.trimmed",
    `The snapshot of shard ${shard} at position ${seq} was deleted, because there is a newer one`,
  );
