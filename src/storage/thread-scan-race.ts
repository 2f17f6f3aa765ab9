import { threadSortKey } from "../model/thread-search.ts";
import type { ThreadRecord } from "../model/thread.ts";
import type { BudgetShare } from "../ports/time-budget.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { IndexScan, ScanQuery } from "./thread-index-scans.ts";

/**
 * The cost of a search of threads.
 *
 * If one index has both the order and the filter of the search, the search reads the index keys up to the end of the page, and the records
 * of the page. The number of threads does not matter. There are indexes in the order of id, of creation and of last change. There are also
 * indexes in the order of creation for each status and for each metadata member.
 *
 * If there is no such index, all possible scans run side by side, and the first one that completes the page wins. A scan in the requested
 * order soon finds frequent matches; an index with few keys soon finds rare ones. With two indexed filters, the candidates of one index are
 * checked by the keys of the other, without reading records. That costs one or two keys for each candidate of the smaller set, 2 to 10 µs
 * each.
 *
 * Counting reads each key of the shortest scan, if keys are enough. The worst case is a filter without an index that no thread matches,
 * such as a nested metadata member: each thread is read, 5 to 20 µs each, in pieces that yield to other work.
 */

export interface PageRange {
  readonly offset: number;
  readonly limit: number;
  /**
   * How much the search may spend after the page, to count further matches. An index key costs 1, a record {@link
   * RECORD_COST}.
   */
  readonly ahead: number;
}

export interface ThreadMatches {
  readonly threads: readonly ThreadRecord[];
  /** Number of matches; a lower bound if not all were seen. */
  readonly total: number;
  readonly isAll: boolean;
}

/** The cost of a candidate whose record is read, which takes about 5 µs. A candidate whose key is enough takes about 1 µs and costs 1. */
const RECORD_COST = 5;
/**
 * The cost that each scan may spend in one turn of the event loop, about half a millisecond. The first turns are shorter, because one of
 * the scans may finish early.
 */
const TURN_COST = 500;
const FIRST_TURN_COST = 100;

/** Returns the record of a thread if it matches all conditions, else undefined. */
export type FindThread = (thread: string) => Eventually<ThreadRecord | undefined>;

/** Runs all scans side by side. The first to finish gives the result. */
export async function raceScans(
  scans: readonly IndexScan[],
  wanted: ScanQuery,
  page: PageRange,
  find: FindThread,
  share: BudgetShare,
): Promise<ThreadMatches> {
  const counts = page.limit === 0 && page.ahead === Number.POSITIVE_INFINITY;
  // To count all matches, only scans whose keys are enough are used, if there are any.
  const sure = counts ? scans.filter((scan) => scan.sure) : [];
  const searches = (sure.length > 0 ? sure : scans).map((scan) =>
    scan.ordered || counts ? seek(scan, page, find, share) : collect(scan, wanted, page, find, share),
  );
  try {
    for (;;) {
      for (const search of searches) {
        const step = await search.next();
        if (step.done) return step.value;
      }
      await share.next();
    }
  } finally {
    for (const search of searches) await search.return({ threads: [], total: 0, isAll: false });
  }
}

type Search = AsyncGenerator<void, ThreadMatches>;

/**
 * Reads a scan in its own order: first to the end of the page, then as far as `ahead` allows, to count more matches. For scans that have
 * the requested order, and for searches that only count.
 */
async function* seek(
  scan: IndexScan,
  { offset, limit, ahead }: PageRange,
  find: FindThread,
  share: BudgetShare,
): Search {
  const threads: ThreadRecord[] = [];
  let total = 0;
  let spent = 0;
  let turn = FIRST_TURN_COST;
  let left = ahead;
  for await (const { found, seen } of scan.candidates()) {
    // Each key that was skipped costs 1.
    spent += seen - found.length;
    for (const { thread, doubtful } of found) {
      const isShown = total >= offset && threads.length < limit;
      const isRead = isShown || !scan.sure || doubtful === true;
      const cost = isRead ? RECORD_COST : 1;
      if (threads.length >= limit && total >= offset && (left -= cost) < 0) {
        return { threads, total, isAll: false };
      }
      if (!isRead) total++;
      else {
        const one = find(thread);
        const record = one instanceof Promise ? await one : one;
        if (record !== undefined) {
          total++;
          if (isShown) threads.push(record);
        }
      }
      if ((spent += cost) < turn && !share.isSpent()) continue;
      spent = 0;
      turn = Math.min(TURN_COST, 2 * turn);
      yield;
    }
    if (spent >= turn) {
      spent = 0;
      turn = Math.min(TURN_COST, 2 * turn);
      yield;
    }
  }
  return { threads, total, isAll: true };
}

interface Place {
  readonly id: string;
  readonly by: string | number;
}

/**
 * Reads a scan that is not in the requested order, and sorts the matches. Reads to the end of the scan, or, if it is `bounded`, until no
 * later candidate can be on the page. Only ids and sort keys are kept in memory; the records of the page are read at the end.
 */
async function* collect(
  scan: IndexScan,
  { sort_by, reverse }: ScanQuery,
  { offset, limit }: PageRange,
  find: FindThread,
  share: BudgetShare,
): Search {
  const most = offset + limit;
  const sign = reverse ? -1 : 1;
  const order = (a: Place, b: Place): number => sign * (compare(a.by, b.by) || compare(a.id, b.id));
  let places: Place[] = [];
  let total = 0;
  let spent = 0;
  let turn = FIRST_TURN_COST;
  let isAll = true;
  search: for await (const { found, seen } of scan.candidates()) {
    // Each key that was skipped costs 1.
    spent += seen - found.length;
    for (const { thread, at } of found) {
      const one = find(thread);
      const record = one instanceof Promise ? await one : one;
      if (record !== undefined) {
        total++;
        places.push({ id: thread, by: threadSortKey(sort_by, record) });
      }
      if ((spent += RECORD_COST) < turn && !share.isSpent()) continue;
      spent = 0;
      turn = Math.min(TURN_COST, 2 * turn);
      if (places.length > most && (scan.bounded === true || places.length > 2 * most + TURN_COST)) {
        places = places.toSorted(order).slice(0, most);
        const last = places.at(-1);
        if (scan.bounded === true && last !== undefined && sign * compare(at, last.by as number) > 0) {
          isAll = false;
          break search;
        }
      }
      yield;
    }
    if (spent >= turn) {
      spent = 0;
      turn = Math.min(TURN_COST, 2 * turn);
      yield;
    }
  }
  const threads: ThreadRecord[] = [];
  for (const { id } of places.toSorted(order).slice(offset, most)) {
    if (share.isSpent()) yield;
    const found = await find(id);
    // The thread may have been deleted after the scan.
    if (found !== undefined) threads.push(found);
  }
  return { threads, total, isAll };
}

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);
