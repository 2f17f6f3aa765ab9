import { ServiceError } from "../model/errors.ts";

/** A copy of the database of a shard, with all of its parts stored. */
export interface ShardSnapshot {
  readonly id: string;
  readonly shard: number;
  /** The position of the last log entry that the copy includes. */
  readonly seq: number;
  readonly parts: number;
  readonly bytes: number;
  /** The time at which the last part was stored, in epoch milliseconds, by the clock of the database behind this port. */
  readonly madeAt: number;
}

/**
 * Copies of the databases of shards. A node of the cluster starts from such a copy if it has no database of
 * the shard, or if its own database is so old that the log entries that follow it have been trimmed.
 *
 * Every failure MUST be a ServiceError: `storage.unavailable`, or `log.trimmed` for a snapshot that was
 * deleted in the meantime, or has lost a part.
 */
export interface ShardSnapshots {
  /**
   * Stores a snapshot. Each part has at most a few megabytes. An error of `parts` rejects `put`.
   *
   * {@link list} MUST NOT return the snapshot before all parts are stored. If `put` rejects, or the process ends before `put` resolves, the
   * snapshot is either complete or not in the list.
   *
   * A `put` that rejects deletes the parts that it has stored. Each `put` also deletes all incomplete snapshots of the shard at lower
   * positions; a `put` that is still storing one of them then rejects.
   */
  put(shard: number, seq: number, parts: AsyncIterable<Uint8Array>): Promise<ShardSnapshot>;
  /** The complete snapshots of a shard, from the highest position to the lowest. */
  list(shard: number): Promise<readonly ShardSnapshot[]>;
  /** The parts of a snapshot, as they were put. */
  read(snapshot: ShardSnapshot): AsyncIterable<Uint8Array>;
  /**
   * Deletes the complete snapshots of a shard except the first `keep` of {@link list}. Also deletes the incomplete snapshots whose position
   * is lower than that of the newest complete snapshot; a `put` that is still storing such a snapshot then rejects. The deletion is made in
   * small steps.
   */
  prune(shard: number, keep: number): Promise<void>;
}

/** The error for a snapshot that was deleted, or has lost a part, while it is read or stored. */
export const deletedSnapshotError = (shard: number, seq: number, part: number): ServiceError =>
  new ServiceError(
    "log.trimmed",
    `The snapshot of shard ${shard} at position ${seq} has no part ${part}: it was deleted, or is damaged`,
  );
