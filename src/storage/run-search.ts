import { matchesRun } from "../model/run-search.ts";
import { isTerminal } from "../model/run.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { RunSearch, RunRecordPage } from "../ports/catalog.ts";
import type { KeyValueStore, ScanRange } from "../ports/key-value-store.ts";
import type { BudgetShare } from "../ports/time-budget.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import {
  unsettledThreadsPrefix,
  cronRunsPrefix,
  runsByCreationPrefix,
  DELAYED_RANGE,
  threadRecordKey,
  lastSegment,
  runOrderPrefix,
  parseDueRunKey,
  parseRunSortKey,
  prefixRange,
  runKey,
  threadPrefix,
} from "./keys.ts";
import { HIDDEN_MARK, runRowConverter, type StoredRun, threadRowConverter } from "./stored-records.ts";
import { createdRunKey, cronIdFromMetadata, endedRunsPrefix } from "./run-index.ts";
import { encodeOrdinal } from "./sortable-numbers.ts";

/**
 * The cost of a search of runs. The search reads the index keys from the cursor to the end of the page, the record of each of these runs
 * and, if the run matches, the record of its thread. Earlier pages cost nothing.
 *
 * Some runs are found without reading other runs: failed and interrupted runs, unfinished runs, the runs of one thread, and the runs of one
 * cron. Any other filter reads each run until the page is full. That takes 5 to 20 µs a run, in pieces that yield to other work.
 */

/** A page also ends when the stored records of its runs have this many bytes in total. */
const PAGE_BYTES = 4 * 1024 * 1024;

/** The index keys that a search of runs reads, in the order of the search. The part of a key after `prefix` can be used as a cursor. */
interface RunKeys {
  readonly prefix: string;
  readonly pages: AsyncIterable<readonly string[]>;
}

export async function searchRuns(
  kv: KeyValueStore,
  tenant: string,
  search: RunSearch,
  share: BudgetShare,
): Promise<RunRecordPage> {
  const { limit, keep } = search;
  const runs: StoredRun[] = [];
  const { prefix, pages } = runKeys(kv, tenant, search);
  let size = 0;
  const cursors: string[] = [];
  for await (const keys of pages) {
    for (const at of keys) {
      if (runs.length >= limit || size >= PAGE_BYTES) return { runs, cursors, next: cursors.at(-1) };
      const { thread = search.thread_id ?? "", run = lastSegment(at) } = parseRunSortKey(at) ?? {};
      const key = { tenant, thread };
      const bytes = await kv.get(runKey(threadPrefix(key), run));
      if (share.isSpent(bytes?.length)) await share.next();
      if (bytes === undefined) continue;
      const stored = runRowConverter.record(decodeWithChecksum(bytes, key, `run ${run}`));
      if (!matchesRun(stored, search)) continue;
      // The thread may have been deleted: its record is deleted before the index keys of its runs.
      const record = await readThread(kv, key);
      if (record === undefined || record.temporary !== null || !keep(stored, record)) continue;
      runs.push(stored);
      size += bytes.length;
      cursors.push(at.slice(prefix.length));
    }
  }
  return { runs, cursors, next: undefined };
}

function runKeys(kv: KeyValueStore, tenant: string, search: RunSearch): RunKeys {
  const { status, thread_id, error, metadata } = search;
  const reverse = search.sort_order === "desc";
  if (thread_id !== undefined) {
    const prefix = runOrderPrefix(threadPrefix({ tenant, thread: thread_id }));
    return { prefix, pages: kv.keys({ reverse, ...rangeOf(prefix, search, false) }) };
  }
  const isUnended = status !== undefined && !isTerminal(status);
  const cron = isUnended ? undefined : cronIdFromMetadata(metadata);
  // Only runs that failed or timed out have an error. The index for the status `error` has both.
  const ending = status === undefined && error !== undefined ? "error" : status;
  const prefix =
    cron === undefined
      ? (endedRunsPrefix(tenant, ending) ?? runsByCreationPrefix(tenant))
      : cronRunsPrefix(tenant, cron);
  const range = rangeOf(prefix, search, true);
  return {
    prefix,
    pages: isUnended ? unendedKeys(kv, tenant, range, reverse) : kv.keys({ reverse, ...range }),
  };
}

/**
 * The range of index keys that a search reads: from the cursor on, in the order of the search. If `isByTime` (the keys begin with the
 * creation time), also from `created_after` to before `created_before`.
 */
function rangeOf(
  prefix: string,
  { cursor, sort_order, created_after, created_before }: RunSearch,
  isByTime: boolean,
): Pick<ScanRange, "gte" | "lt"> {
  let { gte, lt } = prefixRange(prefix);
  if (isByTime && created_after !== undefined) gte = prefix + encodeOrdinal(created_after);
  if (isByTime && created_before !== undefined) lt = prefix + encodeOrdinal(created_before);
  if (cursor === undefined) return { gte, lt };
  const at = prefix + cursor;
  if (sort_order === "desc") return { gte, lt: at < lt ? at : lt };
  // The range begins after the key of the cursor.
  const after = `${at}!`;
  return { gte: after > gte ? after : gte, lt };
}

/**
 * The index keys of unfinished runs. They have no index of their own: active and queued runs are found through the list of threads with
 * unfinished runs (`!active/`), delayed runs through the index of delayed runs. All of them are read, because they are few.
 */
async function* unendedKeys(
  kv: KeyValueStore,
  tenant: string,
  { gte, lt }: Pick<ScanRange, "gte" | "lt">,
  reverse: boolean,
): AsyncGenerator<readonly string[]> {
  const found: string[] = [];
  const add = async (key: ThreadKey, run: string): Promise<void> => {
    const bytes = await kv.get(runKey(threadPrefix(key), run));
    if (bytes === undefined) return;
    const at = createdRunKey(key, runRowConverter.record(decodeWithChecksum(bytes, key, `run ${run}`)));
    if (at >= gte && at < lt) found.push(at);
  };
  for await (const [mark, value] of kv.entries(prefixRange(unsettledThreadsPrefix(tenant)))) {
    if (value.equals(HIDDEN_MARK)) continue;
    const key = { tenant, thread: lastSegment(mark) };
    const { active = null, queue = [] } = (await readThread(kv, key)) ?? {};
    for (const run of active === null ? queue : [active, ...queue]) await add(key, run);
  }
  for await (const [mark] of kv.entries(DELAYED_RANGE)) {
    const { key, run } = parseDueRunKey(mark);
    if (key.tenant === tenant) await add(key, run);
  }
  const sorted = [...new Set(found)].toSorted();
  yield reverse ? sorted.toReversed() : sorted;
}

async function readThread(kv: KeyValueStore, key: ThreadKey): Promise<ThreadRecord | undefined> {
  const bytes = await kv.get(threadRecordKey(threadPrefix(key)));
  return bytes && threadRowConverter.record(decodeWithChecksum(bytes, key, "its record"));
}
