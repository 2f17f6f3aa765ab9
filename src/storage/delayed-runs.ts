import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { KeyedDelayedRun, KeyedTimer } from "../ports/journal.ts";
import { DELAYED_RANGE, delayedKey, parseDelayedKey, parseTimerKey, TIMERS_RANGE } from "./keys.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { PRESENT_MARK } from "./records.ts";

type Delayed = ThreadRecord["delayed"];

/** The delayed runs of all threads that are due first. */
export async function readDelayed(kv: KeyValueStore, limit: number): Promise<readonly KeyedDelayedRun[]> {
  const found: KeyedDelayedRun[] = [];
  if (limit < 1) return found;
  for await (const [mark] of kv.entries({ ...DELAYED_RANGE, limit })) found.push(parseDelayedKey(mark));
  return found;
}

/** The timers of all threads that are due first, one of each thread. */
export async function readTimers(kv: KeyValueStore, limit: number): Promise<readonly KeyedTimer[]> {
  const found: KeyedTimer[] = [];
  if (limit < 1) return found;
  for await (const [mark] of kv.entries({ ...TIMERS_RANGE, limit })) found.push(parseTimerKey(mark));
  return found;
}

/** The changes of the index of delayed runs for a thread. */
export function delayedIndexOps(key: ThreadKey, before: Delayed, after: Delayed): WriteOperation[] {
  const marked = new Set(before?.map(({ run, due }) => delayedKey(key, due, run)));
  const ops: WriteOperation[] = [];
  for (const { run, due } of after ?? []) {
    const mark = delayedKey(key, due, run);
    if (!marked.delete(mark)) ops.push({ key: mark, value: PRESENT_MARK });
  }
  for (const mark of marked) ops.push({ key: mark, value: null });
  return ops;
}
