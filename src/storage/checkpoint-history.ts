import type { Checkpoint, PendingTaskWrites } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { HistoryQuery } from "../ports/journal.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import {
  checkpointKey,
  checkpointPrefix,
  lastSegment,
  threadPrefix,
  prefixRange,
  unescapeSegment,
} from "./keys.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import {
  readCompleteCheckpoint,
  decodeCheckpoint,
  isCheckpointPartial,
  type StoredTaskWrites,
} from "./stored-records.ts";
import { parseOrdinal } from "./sortable-numbers.ts";

/**
 * If a query limits the bytes of a page, a stored checkpoint with more bytes than this begins a new page. It is then not in memory while
 * the checkpoints before it are sent.
 */
const LARGE_CHECKPOINT_BYTES = 256 * 1024;

/**
 * Reads at most `limit` checkpoints of a namespace, fewer if they reach `bytes`, and returns them newest first. `after` and `before` are
 * exclusive bounds. With `after`, the oldest checkpoints within the bounds are read; without it, the newest.
 */
export async function readHistory(
  kv: KeyValueStore,
  key: ThreadKey,
  { ns, limit, before, after, bytes: most = Number.POSITIVE_INFINITY }: HistoryQuery,
): Promise<readonly Checkpoint[]> {
  const found: Checkpoint[] = [];
  if (limit < 1) return found;
  const prefix = threadPrefix(key);
  const range = prefixRange(checkpointPrefix(prefix, ns));
  const lt = before === undefined ? range.lt : checkpointKey(prefix, ns, before);
  // The range begins after the key of the checkpoint `after`.
  const gte = after === undefined ? range.gte : `${checkpointKey(prefix, ns, after)} `;
  const reverse = after === undefined;
  let size = 0;
  for await (const [at, bytes] of kv.entries({ gte, lt, reverse, limit })) {
    const stored = decodeCheckpoint(bytes, key, lastSegment(at));
    const isLarge = bytes.length > LARGE_CHECKPOINT_BYTES || isCheckpointPartial(stored);
    if (isLarge && found.length > 0 && most < Number.POSITIVE_INFINITY) break;
    const get = (from: string): Eventually<Buffer | undefined> =>
      andThen(kv.get(from), (value) => {
        size += value?.length ?? 0;
        return value;
      });
    const checkpoint = await readCompleteCheckpoint(stored, key, get);
    if (checkpoint !== undefined) found.push(checkpoint);
    if ((size += bytes.length) >= most) break;
  }
  return reverse ? found : found.reverse();
}

/** The stored writes of a task: the whole writes, and the step results that were added to them later. */
interface FoundWrites {
  readonly seq: number;
  readonly writes: PendingTaskWrites;
  readonly added: JsonObject[];
}

/** Reads the pending writes of tasks at a checkpoint. `prefix`: the prefix of their keys. */
export async function readPendingWrites(
  kv: KeyValueStore,
  key: ThreadKey,
  prefix: string,
): Promise<readonly PendingTaskWrites[]> {
  const byTask = new Map<string, FoundWrites>();
  for await (const [at, bytes] of kv.entries(prefixRange(prefix))) {
    const [task = "", addedBy] = at.slice(prefix.length).split("/", 2);
    const stored = decodeWithChecksum(bytes, key, `what task ${unescapeSegment(task)} left`);
    if (addedBy === undefined) {
      const { seq = 0, ...writes } = stored as StoredTaskWrites;
      byTask.set(task, { seq, writes, added: [] });
      continue;
    }
    // Skips results that were added before the whole writes were stored. The whole writes contain them, or have removed them on purpose: a
    // rollback restores older writes.
    const found = byTask.get(task);
    if (found !== undefined && parseOrdinal(addedBy) > found.seq) found.added.push(stored as JsonObject);
  }
  return [...byTask.values()].map(({ writes, added }) =>
    added.length === 0 ? writes : { ...writes, steps: Object.assign({}, writes.steps, ...added) },
  );
}
