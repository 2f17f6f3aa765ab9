import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import { delayedIndexOps } from "./delayed-run-index.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import { isUnsettled } from "./thread-heads.ts";
import {
  unsettledThreadKey,
  ALL_KEYS,
  THREAD_EXPIRIES_RANGE,
  threadRecordKey,
  kwargsKey,
  parseThreadExpiryKey,
  parseTimerKey,
  threadOfIndexKey,
  parseRunSortKey,
  runKey,
  splitThreadKey,
  TIMERS_RANGE,
  threadPrefix,
  prefixRange,
} from "./keys.ts";
import { allEventually } from "../ports/eventually.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { HIDDEN_MARK, PRESENT_MARK, threadRowConverter } from "./stored-records.ts";
import { tryDecodeRun, runIndexKeys } from "./run-index.ts";
import { runIndexOps } from "./run-index-upgrade.ts";
import { threadIndexKeys } from "./thread-index.ts";

/** The collected operations are written as a batch when there are at least this many of them. */
const MIN_BATCH_OPS = 1_000;

/**
 * Rebuilds the indexes of threads and of runs, and the list of threads with unfinished runs (`!active/`), from the stored records. Nothing
 * else may write during the repair. Threads with an unreadable record are skipped; a check reports them.
 */
export async function repairIndex(kv: KeyValueStore, onProgress?: OnProgress): Promise<void> {
  let ops: WriteOperation[] = [];
  let done = 0;
  for await (const keys of kv.keys(ALL_KEYS)) {
    onProgress?.({ work: "rebuilding the indexes", done, unit: "keys" });
    done += keys.length;
    for (const at of keys) {
      const key = splitThreadKey(at)?.key;
      if (key === undefined) {
        if ((await strayThreadOf(kv, at)) !== undefined) ops.push({ key: at, value: null });
      } else if (at === threadRecordKey(threadPrefix(key))) {
        const thread = await recordAt(kv, key);
        if (thread !== undefined && thread !== "damaged") {
          ops.push(...(await missingIndexOps(kv, key, thread)));
          for await (const places of runIndexOps(kv, key, threadPrefix(key))) ops.push(...places);
        }
      }
    }
    if (ops.length < MIN_BATCH_OPS) continue;
    await kv.batch(ops, { sync: false });
    ops = [];
  }
  await kv.batch(ops, { sync: true });
}

/**
 * The operations that add the missing index keys of a thread, and that add the thread to, or remove it from, the list of threads with
 * unfinished runs.
 */
async function missingIndexOps(
  kv: KeyValueStore,
  key: ThreadKey,
  thread: ThreadRecord,
): Promise<readonly WriteOperation[]> {
  const places = threadIndexKeys(key, thread).map((at) => ({ key: at, value: PRESENT_MARK }));
  const ops: WriteOperation[] = [...places, ...delayedIndexOps(key, null, thread.delayed)];
  const mark = unsettledThreadKey(key);
  if (isUnsettled(thread))
    ops.push({ key: mark, value: thread.temporary === null ? PRESENT_MARK : HIDDEN_MARK });
  const stored = await allEventually(ops.map((op) => kv.get(op.key)));
  const missing = ops.filter((_, i) => stored[i] === undefined);
  const isStale = !isUnsettled(thread) && (await kv.get(mark)) !== undefined;
  return isStale ? [...missing, { key: mark, value: null }] : missing;
}

/**
 * Returns the thread that a wrong index key names. A key is wrong if the thread does not exist, or if its record (for an index of runs, the
 * run's record) does not agree with the key. Returns undefined for all other keys. A thread that has lost only its record counts as
 * existing, because the loss is reported as damage of the thread.
 */
export async function strayThreadOf(kv: KeyValueStore, at: string): Promise<ThreadKey | undefined> {
  const key = listedBy(at);
  if (key === undefined || (await isListed(kv, key, at))) return undefined;
  const prefix = threadPrefix(key);
  if ((await kv.get(threadRecordKey(prefix))) === undefined) {
    for await (const _ of kv.keys({ ...prefixRange(prefix), limit: 1 })) return undefined;
  }
  return (await isListed(kv, key, at)) ? undefined : key;
}

/** The thread that an index key names; undefined for any other key. */
function listedBy(at: string): ThreadKey | undefined {
  if (!at.startsWith("!")) return threadOfIndexKey(at);
  if (at.startsWith(TIMERS_RANGE.gte)) return parseTimerKey(at).key;
  return at.startsWith(THREAD_EXPIRIES_RANGE.gte) ? parseThreadExpiryKey(at).key : undefined;
}

/**
 * True if the index key agrees with the record that it belongs to, or does not exist any more. The key and the record may be read at
 * different moments, so callers repeat the check before they report an error.
 */
async function isListed(kv: KeyValueStore, key: ThreadKey, at: string): Promise<boolean> {
  if ((await kv.get(at)) === undefined) return true;
  const thread = await recordAt(kv, key);
  const run = parseRunSortKey(at)?.run;
  if (run !== undefined && thread !== undefined && thread !== "damaged") {
    const place = runKey(threadPrefix(key), run);
    const bytes = await kv.get(place);
    const stored = bytes && tryDecodeRun(bytes, key, place);
    // A run's record that is damaged, or is missing while the run's arguments exist, is reported as damage of the thread. So the index key
    // counts as correct here.
    if (stored === undefined)
      return bytes !== undefined || (await kv.get(kwargsKey(threadPrefix(key), run))) !== undefined;
    return thread.temporary === null && runIndexKeys(key, stored).includes(at);
  }
  // A damaged thread record is reported as damage of the thread. So the index key counts as correct here.
  return thread === "damaged" || (thread !== undefined && threadIndexKeys(key, thread).includes(at));
}

async function recordAt(kv: KeyValueStore, key: ThreadKey): Promise<ThreadRecord | "damaged" | undefined> {
  const bytes = await kv.get(threadRecordKey(threadPrefix(key)));
  if (bytes === undefined) return undefined;
  try {
    return threadRowConverter.record(decodeWithChecksum(bytes, key, "its record"));
  } catch {
    return "damaged";
  }
}
