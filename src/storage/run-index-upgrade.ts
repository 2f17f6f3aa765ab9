import type { ThreadKey } from "../model/thread.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import { nextThread } from "./event-expiry.ts";
import { threadRecordKey, prefixRange, RUN_INDEX_COMPLETE_KEY, runPrefix, threadPrefix } from "./keys.ts";
import { PRESENT_MARK, RUN_INDEX_MARK, threadRowConverter } from "./stored-records.ts";
import { tryDecodeRun, runIndexKeys } from "./run-index.ts";

/** The collected operations are written as a batch when there are at least this many of them. */
const MIN_BATCH_OPS = 1_000;

/** Completes the index of runs for data that an older version of Heddle has written. Nothing else may write at the same time. */
export async function completeRunIndex(kv: KeyValueStore, onProgress?: OnProgress): Promise<void> {
  if ((await (kv.unguarded ?? kv).get(RUN_INDEX_COMPLETE_KEY))?.equals(RUN_INDEX_MARK)) return;
  let ops: WriteOperation[] = [];
  let done = 0;
  // Begins with the first key of the first tenant. The server's own keys begin with `!`, and `"` is the next character.
  for (let at = '"'; ;) {
    const key = await nextThread(kv, at);
    if (key === null) break;
    const prefix = threadPrefix(key);
    for await (const places of runIndexOps(kv, key, prefix)) ops.push(...places);
    onProgress?.({ work: "building the index of runs", done: ++done, unit: "threads" });
    if (ops.length >= MIN_BATCH_OPS) {
      await kv.batch(ops, { sync: false });
      ops = [];
    }
    at = prefixRange(prefix).lt;
  }
  await kv.batch([...ops, { key: RUN_INDEX_COMPLETE_KEY, value: RUN_INDEX_MARK }], { sync: true });
}

/**
 * The operations that write the index keys of each run of a thread, even if the keys exist already. There are none for a temporary thread.
 * Unreadable records are skipped; a check reports them.
 */
export async function* runIndexOps(
  kv: KeyValueStore,
  key: ThreadKey,
  prefix: string,
): AsyncGenerator<readonly WriteOperation[]> {
  const head = await kv.get(threadRecordKey(prefix));
  if (head === undefined) return;
  try {
    if (threadRowConverter.record(decodeWithChecksum(head, key, "its record")).temporary !== null) return;
  } catch {
    return;
  }
  for await (const [at, bytes] of kv.entries(prefixRange(runPrefix(prefix)))) {
    const run = tryDecodeRun(bytes, key, at);
    if (run !== undefined) yield runIndexKeys(key, run).map((place) => ({ key: place, value: PRESENT_MARK }));
  }
}
