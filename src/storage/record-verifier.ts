import type { ThreadKey } from "../model/thread.ts";
import type { Damage } from "../ports/journal.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { ServiceError, withCauses } from "../model/errors.ts";
import { decodingFlaw, decodeWithChecksum, envelopeFlaw } from "./checksum-envelope.ts";
import {
  ALL_KEYS,
  parseRunSortKey,
  splitThreadKey,
  threadPrefix,
  unescapeSegment,
  prefixRange,
  itemExpiryKey,
  itemRowKey,
  parseItemExpiryKey,
  parseItemKey,
} from "./keys.ts";
import { keyLabel } from "./key-labels.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import { StoredThreadCheck, type IsDeleted } from "./stored-thread-check.ts";
import { strayThreadOf } from "./index-repair.ts";
import { itemLabel, decodeItemHead } from "./key-value-items.ts";

/**
 * Checks a key of a store item, or of the index of items by expiry; yields nothing for other keys. Yields an error if the item's record,
 * value or index entry is missing, or if the index entry has another time than the record. The bytes under the key itself have already been
 * checked.
 */
async function* checkItem(kv: KeyValueStore, at: string, bytes: Buffer): AsyncGenerator<string> {
  if (at.startsWith("!expire/")) {
    const { tenant, due, ...place } = parseItemExpiryKey(at);
    const head = await kv.get(itemRowKey(tenant, "s", place));
    // The damaged record is reported under its own key.
    if (head !== undefined && envelopeFlaw(head) !== undefined) return;
    const expires = head && decodeItemHead(head, tenant, place).expires_at;
    if (typeof expires !== "number" || Math.ceil(expires) !== due)
      yield `${itemLabel(place)} is to expire, and is not there or lives on`;
    return;
  }
  const item = parseItemKey(at);
  if (item === undefined) return;
  const { tenant, kind, ...place } = item;
  if (kind !== "s") {
    if ((await kv.get(itemRowKey(tenant, "s", place))) === undefined)
      yield `${itemLabel(place)} has ${kind === "sv" ? "a value" : "vectors"} and no record`;
    return;
  }
  const { expires_at } = decodeItemHead(bytes, tenant, place);
  if ((await kv.get(itemRowKey(tenant, "sv", place))) === undefined) yield `${itemLabel(place)} has no value`;
  if (expires_at !== null && (await kv.get(itemExpiryKey(expires_at, tenant, place))) === undefined)
    yield `${itemLabel(place)} expires, and nothing will delete it`;
}

/** How many keys are read between two reports of the progress. */
const PROGRESS_KEYS = 1_000;

/**
 * Reads every value once, in the order of the keys, and checks each thread after its last key. `only`: reads only the values of this
 * thread. What the check of one thread has collected is in memory, but never all data of the thread.
 */
export async function* verifyRecords(
  kv: KeyValueStore,
  isDeleted: IsDeleted,
  only: ThreadKey | undefined,
  onProgress?: OnProgress,
): AsyncGenerator<Damage> {
  let done = 0;
  let prefix = "";
  let check: StoredThreadCheck | undefined;
  /** Threads whose index keys have already been reported as wrong. */
  const reported = new Set<string>();
  const range = only === undefined ? ALL_KEYS : prefixRange(threadPrefix(only));
  for await (const [at, bytes] of kv.entries(range)) {
    if (done++ % PROGRESS_KEYS === 0)
      onProgress?.({ work: "checking the records", done: done - 1, unit: "keys" });
    if (check !== undefined && !at.startsWith(prefix)) {
      yield* check.end();
      check = undefined;
    }
    if (check === undefined) {
      const split = splitThreadKey(at);
      if (split === undefined) {
        yield* checkOther(kv, at, bytes);
        yield* checkListed(kv, at, reported);
        continue;
      }
      prefix = threadPrefix(split.key);
      check = new StoredThreadCheck(kv, split.key, prefix, isDeleted);
    }
    check.add(at.slice(prefix.length), bytes);
  }
  if (check !== undefined) yield* check.end();
}

/** Checks a value that belongs to no thread, but to the catalog or to the server itself. */
async function* checkOther(kv: KeyValueStore, at: string, bytes: Buffer): AsyncGenerator<Damage> {
  const tenant = at.startsWith("!") ? "" : unescapeSegment(at.slice(0, at.indexOf("/")));
  const key = { tenant, thread: "" };
  try {
    decodeWithChecksum(bytes, key, at);
  } catch {
    yield { key, what: `${keyLabel(at)}: ${decodingFlaw(bytes)}` };
    return;
  }
  try {
    for await (const what of checkItem(kv, at, bytes)) yield { key, what };
  } catch (error) {
    yield { key, what: errorMessageOf(error) };
  }
}

/**
 * Checks an index key. Yields an error if its thread does not exist, or if the record of the thread (or of the run) does not agree with the
 * key; at most one error for each thread. A thread that has lost only its record counts as existing, because the check of the thread's
 * other keys reports the loss.
 */
async function* checkListed(kv: KeyValueStore, at: string, reported: Set<string>): AsyncGenerator<Damage> {
  const key = await strayThreadOf(kv, at);
  if (key === undefined || reported.has(threadPrefix(key))) return;
  reported.add(threadPrefix(key));
  const run = parseRunSortKey(at)?.run;
  const what = run === undefined ? "it is in the index of threads" : `run ${run} is in the index of runs`;
  yield { key, what: `${what}, and should not be` };
}

export function errorMessageOf(error: unknown): string {
  return error instanceof ServiceError ? withCauses(error) : String(error);
}
