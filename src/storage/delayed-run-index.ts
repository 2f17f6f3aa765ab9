import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { DelayedRunOfThread, TimerOfThread } from "../ports/journal.ts";
import { DELAYED_RANGE, dueRunKey, parseDueRunKey, parseTimerKey, TIMERS_RANGE } from "./keys.ts";
import type { KeyValueStore, ScanRange, WriteOperation } from "../ports/key-value-store.ts";
import { PRESENT_MARK } from "./stored-records.ts";

type Delayed = ThreadRecord["delayed"];

/** Reads the delayed runs that are due first, of all threads: at most `limit`, sorted by due time. */
export const readDelayedRuns = (kv: KeyValueStore, limit: number): Promise<readonly DelayedRunOfThread[]> =>
  readFirst(kv, DELAYED_RANGE, limit, parseDueRunKey);

/**
 * Reads the timers that are due first, of all threads: at most `limit`, sorted by due time. The index has only the next timer of each
 * thread.
 */
export const readTimers = (kv: KeyValueStore, limit: number): Promise<readonly TimerOfThread[]> =>
  readFirst(kv, TIMERS_RANGE, limit, parseTimerKey);

async function readFirst<T>(
  kv: KeyValueStore,
  range: ScanRange,
  limit: number,
  parse: (key: string) => T,
): Promise<readonly T[]> {
  const found: T[] = [];
  if (limit < 1) return found;
  for await (const [key] of kv.entries({ ...range, limit })) found.push(parse(key));
  return found;
}

/** The operations that update the index of delayed runs after a thread has changed. */
export function delayedIndexOps(key: ThreadKey, before: Delayed, after: Delayed): WriteOperation[] {
  const marked = new Map(before?.map(({ run, due }) => [run, due]));
  const ops: WriteOperation[] = [];
  for (const { run, due } of after ?? []) {
    if (marked.get(run) === due) marked.delete(run);
    else ops.push({ key: dueRunKey(key, due, run), value: PRESENT_MARK });
  }
  for (const [run, due] of marked) ops.push({ key: dueRunKey(key, due, run), value: null });
  return ops;
}
