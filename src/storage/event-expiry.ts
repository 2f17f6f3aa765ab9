import { ServiceError } from "../model/errors.ts";
import { isTerminal } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import {
  allEventsPrefix,
  eventsPrefix,
  splitThreadKey,
  threadPrefix,
  unescapeSegment,
  prefixRange,
} from "./keys.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import { readStoredRun } from "./stored-records.ts";
import type { MarkedDeletions } from "./marked-deletions.ts";

/** The upper bound of the keys of all tenants: `~` sorts after every character of a tenant's name. */
const END = "~";
/** The lower bound of the keys of all tenants. The server's own keys begin with `!`, and `"` is the next character. */
const TENANTS = '"';

interface Expiring {
  readonly before: number;
  readonly from: ThreadKey | null;
  readonly most: number;
  readonly isRead: (key: ThreadKey, run: string) => boolean;
}

/**
 * Deletes the events of runs that ended before the time `before`, in at most `most` threads after the thread `from` (null: from the first
 * thread on). Keeps events that are being read (`isRead`). Skips all other keys, so a thread without events costs only two lookups. Returns
 * the last thread that was checked; null when all threads were checked.
 */
export async function expireEvents(
  kv: KeyValueStore,
  deletions: MarkedDeletions,
  { before, from, most, isRead }: Expiring,
): Promise<ThreadKey | null> {
  let at = from === null ? TENANTS : prefixRange(threadPrefix(from)).lt;
  let last: ThreadKey | null = null;
  for (let seen = 0; seen < most; seen++) {
    const next = await nextThread(kv, at);
    if (next === null) return null;
    if (!(await deletions.isDeleted(next))) await expireThread(kv, deletions, next, { before, isRead });
    last = next;
    at = prefixRange(threadPrefix(next)).lt;
  }
  return last;
}

/** The first thread with a key at or after `at`; null if there is none. */
export async function nextThread(kv: KeyValueStore, at: string): Promise<ThreadKey | null> {
  for (let from = at; ;) {
    const found = await firstKey(kv, from, END);
    if (found === undefined) return null;
    const thread = splitThreadKey(found);
    if (thread !== undefined) return thread.key;
    // The key belongs to another part of the tenant's data, which is skipped.
    const [tenant = "", kind = ""] = found.split("/", 2);
    from = prefixRange(`${tenant}/${kind}/`).lt;
  }
}

async function expireThread(
  kv: KeyValueStore,
  deletions: MarkedDeletions,
  key: ThreadKey,
  { before, isRead }: Pick<Expiring, "before" | "isRead">,
): Promise<void> {
  const prefix = threadPrefix(key);
  const events = allEventsPrefix(prefix);
  const { gte, lt } = prefixRange(events);
  for (let from = gte; ;) {
    const found = await firstKey(kv, from, lt);
    if (found === undefined) return;
    const run = unescapeSegment(found.slice(events.length).split("/", 1)[0] ?? "");
    const ended = await endOf(kv, key, run);
    if (ended !== null && ended < before && !isRead(key, run)) await deletions.expire(key, run);
    from = prefixRange(eventsPrefix(prefix, run)).lt;
  }
}

/**
 * The time at which the run ended. Null if the run has not ended. Null also if its record is damaged, so that its events are kept for a
 * repair.
 */
async function endOf(kv: KeyValueStore, key: ThreadKey, run: string): Promise<number | null> {
  try {
    const stored = await readStoredRun((at) => kv.get(at), key, threadPrefix(key), run);
    return stored !== undefined && isTerminal(stored.status) ? stored.ended_at : null;
  } catch (cause) {
    if (cause instanceof ServiceError && cause.code === "journal.damaged") return null;
    throw cause;
  }
}

async function firstKey(kv: KeyValueStore, gte: string, lt: string): Promise<string | undefined> {
  // Only keys are read. A value may be large, and LevelDB's iterator copies it into memory that only garbage collection frees.
  for await (const [key] of kv.keys({ gte, lt, limit: 1 })) return key;
  return undefined;
}
