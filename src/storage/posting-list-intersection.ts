import { type Candidate, doubtfulCandidate, type CandidatePages } from "./thread-search-candidates.ts";
import { lastSegment, sortKey, prefixRange } from "./keys.ts";
import { allEventually, andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";

/**
 * The key prefixes of one condition of a search. A thread that meets the condition has a key under `own` or under `wide`. `wide` lists all
 * threads with too many metadata members to be indexed, including threads that do not meet the condition.
 */
export type PostingList = readonly [own: string, wide?: string];

/**
 * The maximum number of thread ids of one condition that are kept in memory to exclude other threads. If more threads meet the condition,
 * the ids are not used: matches are then frequent, and a scan soon finds enough of them.
 */
const MAX_IDS = 4_096;
/** After this many lookups of single keys, all ids of a condition are read into memory instead. */
const MAX_LOOKUPS = 200;
/** The cost of one lookup, measured in keys of a range scan. */
const LOOKUP_COST = 3;

/** Filters the candidates of one search by the index keys of its other conditions, without reading records. */
export class PostingListIntersection {
  readonly #kv: KeyValueStore;
  readonly #ids = new Map<string, Promise<ReadonlySet<string> | null>>();
  readonly #inhabited = new Map<string, Promise<boolean>>();

  constructor(kv: KeyValueStore) {
    this.#kv = kv;
  }

  /**
   * Filters candidates by the conditions. Candidates that do not meet all conditions may remain: in the first page, where all candidates
   * are marked as doubtful, and if too many threads meet a condition. `isPlaced`: the `at` of a candidate is its creation time, which is a
   * part of the index keys, so single keys can be looked up.
   */
  async *intersect(pages: CandidatePages, lists: readonly PostingList[], isPlaced: boolean): CandidatePages {
    let asked = 0;
    let first = true;
    for await (const { found, seen } of pages) {
      let left = found;
      let looked = 0;
      // The first page is not filtered: if many threads match, its candidates are enough for the result.
      for (const list of first ? [] : lists) {
        const ids = isPlaced && asked < MAX_LOOKUPS ? null : await this.#members(list);
        if (ids !== null) left = left.filter(({ thread }) => ids.has(thread));
        else if (isPlaced) {
          const [own, wide] = list;
          const isWide = wide !== undefined && (await this.#isInhabited(wide));
          looked += left.length;
          const stands = (one: Candidate): Eventually<boolean> =>
            andThen(this.#stands(own, one), (does) => does || (isWide && this.#stands(wide, one)));
          const found = allEventually(left.map(stands));
          const standing = found instanceof Promise ? await found : found;
          left = left.filter((_, i) => standing[i]);
        }
      }
      if (first) left = left.map(doubtfulCandidate);
      first = false;
      asked += looked;
      yield { found: left, seen: seen + LOOKUP_COST * looked };
    }
  }

  #stands(prefix: string, { at, thread }: Candidate): Eventually<boolean> {
    return andThen(this.#kv.get(sortKey(prefix, at, thread)), (found) => found !== undefined);
  }

  /**
   * True if there are threads with too many metadata members to be indexed; `prefix` is that of the list of such threads. The list is
   * nearly always empty, which saves a lookup of each candidate in it.
   */
  #isInhabited(prefix: string): Promise<boolean> {
    const known = this.#inhabited.get(prefix) ?? this.#hasKey(prefix);
    this.#inhabited.set(prefix, known);
    return known;
  }

  async #hasKey(prefix: string): Promise<boolean> {
    for await (const keys of this.#kv.keys({ ...prefixRange(prefix), limit: 1 }))
      if (keys.length > 0) return true;
    return false;
  }

  /** All threads that meet a condition; null if there are too many. */
  #members(list: PostingList): Promise<ReadonlySet<string> | null> {
    const [own] = list;
    const known = this.#ids.get(own) ?? this.#readMembers(list);
    this.#ids.set(own, known);
    return known;
  }

  async #readMembers(list: PostingList): Promise<ReadonlySet<string> | null> {
    const ids = new Set<string>();
    for (const prefix of list) {
      if (prefix === undefined) continue;
      for await (const keys of this.#kv.keys(prefixRange(prefix))) {
        for (const key of keys) ids.add(lastSegment(key));
        if (ids.size > MAX_IDS) return null;
      }
    }
    return ids;
  }
}
