import { placeIn } from "../model/thread-search.ts";
import type { ThreadRecord } from "../model/thread.ts";
import type { Share } from "../ports/time-budget.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { Walk, Wanted } from "./index-scans.ts";

/**
 * What a search costs. Where an order or a filter has keys of its own, it reads the keys up to the page and the records on it,
 * however many threads there are: by id, creation, last change; in a status by creation; with a member of the metadata by
 * creation. Where it has not, every way there is goes side by side, and the one that has the page first wins: what fits often
 * is soon met in the order asked for, what fits seldom has few keys. Where two filters have keys, who stands among one's is told
 * by the other's, and no record is read for it: that takes a key or two for each of the smaller lot, some 2 to 10 us each. To
 * count takes each key of the shortest way where keys are enough. Worst is what has no keys, e.g. a member deep in the metadata
 * that no thread has: then each thread is read, 5 to 20 us each, in pieces that let others pass.
 */

export interface Page {
  readonly offset: number;
  readonly limit: number;
  /** How much may be spent, behind the page, on counting the others. */
  readonly ahead: number;
}

export interface Found {
  readonly threads: readonly ThreadRecord[];
  /** How many fit; no fewer than that, where not all was seen. */
  readonly total: number;
  readonly isAll: boolean;
}

/** What a candidate costs that is read, against one whose key is enough: about 5 us to 1. */
const RECORD = 5;
/** What is spent in one turn: half a millisecond, in the first ones less, since one of the ways may be at its end by then. */
const TURN = 500;
const FIRST_TURN = 100;

/** The record of a thread if it fits all that is asked. */
export type Find = (thread: string) => Eventually<ThreadRecord | undefined>;

/** Goes all ways side by side; the first at its end says what was found. */
export async function race(
  walks: readonly Walk[],
  wanted: Wanted,
  page: Page,
  find: Find,
  share: Share,
): Promise<Found> {
  const counts = page.limit === 0 && page.ahead === Number.POSITIVE_INFINITY;
  // Where all have to be seen, a way whose keys are enough has no better beside it.
  const sure = counts ? walks.filter((walk) => walk.sure) : [];
  const searches = (sure.length > 0 ? sure : walks).map((walk) =>
    walk.ordered || counts ? seek(walk, page, find, share) : collect(walk, wanted, page, find, share),
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

type Search = AsyncGenerator<void, Found>;

/** Along a way in the order asked for, up to the end of the page and a little further. */
async function* seek(walk: Walk, { offset, limit, ahead }: Page, find: Find, share: Share): Search {
  const threads: ThreadRecord[] = [];
  let total = 0;
  let spent = 0;
  let turn = FIRST_TURN;
  let left = ahead;
  for await (const { found, seen } of walk.candidates()) {
    // Keys that were passed over.
    spent += seen - found.length;
    for (const { thread, doubtful } of found) {
      const isShown = total >= offset && threads.length < limit;
      const isRead = isShown || !walk.sure || doubtful === true;
      const cost = isRead ? RECORD : 1;
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
      turn = Math.min(TURN, 2 * turn);
      yield;
    }
    if (spent >= turn) {
      spent = 0;
      turn = Math.min(TURN, 2 * turn);
      yield;
    }
  }
  return { threads, total, isAll: true };
}

interface Place {
  readonly id: string;
  readonly by: string | number;
}

/** Along a way in any order: of all but the page no more is held than their place. */
async function* collect(
  walk: Walk,
  { sort_by, reverse }: Wanted,
  { offset, limit }: Page,
  find: Find,
  share: Share,
): Search {
  const most = offset + limit;
  const sign = reverse ? -1 : 1;
  const order = (a: Place, b: Place): number => sign * (compare(a.by, b.by) || compare(a.id, b.id));
  let places: Place[] = [];
  let total = 0;
  let spent = 0;
  let turn = FIRST_TURN;
  let isAll = true;
  search: for await (const { found, seen } of walk.candidates()) {
    // Keys that were passed over.
    spent += seen - found.length;
    for (const { thread, at } of found) {
      const one = find(thread);
      const record = one instanceof Promise ? await one : one;
      if (record !== undefined) {
        total++;
        places.push({ id: thread, by: placeIn(sort_by, record) });
      }
      if ((spent += RECORD) < turn && !share.isSpent()) continue;
      spent = 0;
      turn = Math.min(TURN, 2 * turn);
      if (places.length > most && (walk.bounded === true || places.length > 2 * most + TURN)) {
        places = places.toSorted(order).slice(0, most);
        const last = places.at(-1);
        if (walk.bounded === true && last !== undefined && sign * compare(at, last.by as number) > 0) {
          isAll = false;
          break search;
        }
      }
      yield;
    }
    if (spent >= turn) {
      spent = 0;
      turn = Math.min(TURN, 2 * turn);
      yield;
    }
  }
  const threads: ThreadRecord[] = [];
  for (const { id } of places.toSorted(order).slice(offset, most)) {
    if (share.isSpent()) yield;
    const found = await find(id);
    // It may have been deleted since.
    if (found !== undefined) threads.push(found);
  }
  return { threads, total, isAll };
}

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);
