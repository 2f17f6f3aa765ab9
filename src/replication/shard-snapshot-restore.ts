import { ServiceError } from "../model/errors.ts";
import type {
  KeyValueEntry,
  KeyValueStore,
  ReplaceableKeyValueStore,
  WriteOperation,
} from "../ports/key-value-store.ts";
import type { Logger } from "../ports/logger.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import type { ShardSnapshot, ShardSnapshots } from "../ports/shard-snapshots.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { APPLIED_KEY, decodePosition, type LogApplier } from "./log-applier.ts";
import { readSnapshotParts } from "./shard-snapshot-parts.ts";

/** The number of bytes that are written to the new database at once. */
const BATCH_BYTES = 1024 * 1024;

interface RestoreDeps {
  readonly shard: number;
  readonly log: ShardLog;
  readonly store: ShardSnapshots;
  readonly logger: Logger;
  readonly onProgress?: OnProgress;
}

/**
 * Fills a database from a snapshot if it is empty, or if the log no longer has all entries after the database's position.
 * @throws ServiceError `journal.damaged` if a snapshot is needed and none can be used, or if the log has lost entries that the database has;
 * errors of the log, the snapshots and the database
 */
export async function restoreIfNeeded(
  kv: ReplaceableKeyValueStore,
  applier: LogApplier,
  deps: RestoreDeps,
): Promise<void> {
  const { shard, log } = deps;
  const { applied } = applier;
  // Throws if the log has lost entries. The database may still have them, so it must not be replaced then.
  await applier.checkPosition();
  const isReached = await logReachesBackTo(log, shard, applied + 1);
  if (isReached && applied > 0) return;
  const reasons = await restoreNewestSnapshot(kv, deps);
  if (reasons === undefined) return applier.readPosition();
  if (isReached) return;
  const why = reasons.length === 0 ? "there is no snapshot" : reasons.join("; ");
  throw new ServiceError(
    "journal.damaged",
    `The log of shard ${shard} has been trimmed, so this node needs a snapshot, and none can be used: ${why}. ` +
      "Start a node that still has data of the shard, or restore the database of the cluster from a backup",
  );
}

/**
 * Replaces the content of a database with the newest snapshot that can be read and that the log continues. Resolves with undefined if the
 * content was replaced. If no snapshot could be used, the content is unchanged, and the result lists the reasons.
 * @throws ServiceError `storage.unavailable`
 */
export async function restoreNewestSnapshot(
  kv: ReplaceableKeyValueStore,
  { shard, log, store, logger, onProgress }: RestoreDeps,
): Promise<readonly string[] | undefined> {
  const reasons: string[] = [];
  const tried = new Set<string>();
  for (;;) {
    // The list is read again each time, because a newer snapshot may have replaced the one that could not be read.
    const next = (await store.list(shard)).find(({ id }) => !tried.has(id));
    if (next === undefined) return reasons;
    tried.add(next.id);
    const reason = await restore(next);
    if (reason === undefined) return undefined;
    logger.warn("a snapshot cannot be used", { seq: next.seq, reason });
    reasons.push(reason);
  }

  async function restore(snapshot: ShardSnapshot): Promise<string | undefined> {
    const { seq, bytes } = snapshot;
    if (!(await logReachesBackTo(log, shard, seq + 1)))
      return `The log does not reach back to the snapshot at position ${seq}`;
    logger.info("the database is filled from a snapshot", { seq, bytes });
    try {
      await kv.replace((empty) => fill(empty, store.read(snapshot), seq, onProgress));
      return undefined;
    } catch (error) {
      const isOfSnapshot =
        error instanceof ServiceError && (error.code === "log.trimmed" || error.code === "journal.damaged");
      if (isOfSnapshot) return error.message;
      throw error;
    }
  }
}

/** Whether a log has all entries from position `from` on. */
export async function logReachesBackTo(log: ShardLog, shard: number, from: number): Promise<boolean> {
  try {
    await log.read(shard, from, 1);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "log.trimmed") return false;
    throw error;
  }
}

/**
 * Writes the content of a snapshot to an empty database.
 * @throws ServiceError `journal.damaged` if the snapshot is damaged; errors of the snapshot store and the database
 */
async function fill(
  empty: KeyValueStore,
  parts: AsyncIterable<Uint8Array>,
  seq: number,
  onProgress: OnProgress | undefined,
): Promise<void> {
  let ops: WriteOperation[] = [];
  let bytes = 0;
  let done = 0;
  let last: KeyValueEntry | undefined;
  const write = async (): Promise<void> => {
    await empty.batch(ops, { sync: false });
    done += bytes;
    onProgress?.({ work: "filling the database from a snapshot", done, unit: "bytes" });
    ops = [];
    bytes = 0;
  };
  for await (const [key, value] of readSnapshotParts(parts)) {
    last = [key, value];
    ops.push({ key, value });
    bytes += key.length + value.length;
    if (bytes >= BATCH_BYTES) await write();
  }
  if (last?.[0] !== APPLIED_KEY || decodePosition(last[1])[0] !== seq)
    throw new ServiceError(
      "journal.damaged",
      `The snapshot at position ${seq} is damaged: its end is missing`,
    );
  await write();
}
