import type { ShardSnapshot } from "./shard-snapshots.ts";

/** What the owner of a shard knows about the shard's log and snapshots in the database of the cluster. */
export interface ReplicationMetrics {
  /** The position of the last log entry that the owner has applied. */
  readonly position: number;
  /** The number of entries in the log, and their total bytes; undefined while this is not known. */
  readonly log: { readonly entries: number; readonly bytes: number } | undefined;
  /** The newest complete snapshot; undefined if there is none, or while this is not known. */
  readonly snapshot: ShardSnapshot | undefined;
  /** The numbers of snapshots that this process has made, and of those that it could not make. */
  readonly snapshotsMade: number;
  readonly snapshotsFailed: number;
}
