import { threadStatusOf, type ThreadRecord, type ThreadStatus } from "../model/thread.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadFilter, ThreadOrder } from "../model/thread-search.ts";
import {
  unsettledThreadsPrefix,
  threadsByCreationPrefix,
  threadIdsPrefix,
  lastSegment,
  threadsByMetadataPrefix,
  parseSortKey,
  threadsByUpdatePrefix,
  threadsByStatusPrefix,
  prefixRange,
} from "./keys.ts";
import {
  newCandidatePage,
  type Candidate,
  type CandidatePage,
  asDoubtful,
  candidatesById,
  onePage,
  type CandidatePages,
  nextCandidates,
  withoutThreads,
} from "./thread-search-candidates.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import { HIDDEN_MARK } from "./stored-records.ts";
import { metadataIndexKey } from "./metadata-index-keys.ts";
import { type PostingList, PostingListIntersection } from "./posting-list-intersection.ts";
import { MANY_MEMBERS_KEY } from "./thread-index.ts";

/** A scan of an index that finds all threads that match a search, and perhaps others. */
export interface IndexScan {
  /**
   * True: the scan yields candidates in the requested order. False: the whole scan has to be read before the first result is known, unless
   * the scan is `bounded`.
   */
  readonly ordered: boolean;
  /** True: each candidate matches, except those marked as doubtful. False: the record of each candidate has to be read. */
  readonly sure: boolean;
  /** Set if the `at` of a candidate is a bound: in the requested order, no later candidate comes before this `at`. */
  readonly bounded?: true;
  candidates(): AsyncIterable<CandidatePage>;
}

export interface ScanQuery {
  readonly filter: ThreadFilter;
  readonly sort_by: ThreadOrder;
  readonly reverse: boolean;
  /** True if the search has conditions that are not in the filter, and that only the record can decide. */
  readonly isPartial: boolean;
}

/**
 * The largest number of metadata members of a filter for which the index is used. Further members are checked in the record of each
 * candidate.
 */
const MAX_SCANNED_MEMBERS = 3;

const STATUSES = ["busy", "error", "idle", "interrupted"] as const satisfies ThreadStatus[];

/** Plans the index scans for a search over one tenant's threads. */
export class ThreadIndexScans {
  readonly #kv: KeyValueStore;
  readonly #tenant: string;
  readonly #read: (thread: string) => Eventually<ThreadRecord | undefined>;
  readonly #reverse: boolean;
  readonly #postingLists: PostingListIntersection;
  #busy: Promise<ReadonlyMap<string, ThreadRecord>> | undefined;

  constructor(
    kv: KeyValueStore,
    tenant: string,
    read: (thread: string) => Eventually<ThreadRecord | undefined>,
    { reverse }: Pick<ScanQuery, "reverse">,
  ) {
    this.#kv = kv;
    this.#postingLists = new PostingListIntersection(kv);
    this.#tenant = tenant;
    this.#read = read;
    this.#reverse = reverse;
  }

  /**
   * All scans that can answer the search. Which of them is fastest depends on the data, so they run side by side. Scans that are probably
   * short come first.
   */
  plan({ filter, sort_by, isPartial }: ScanQuery): readonly IndexScan[] {
    const { ids, status, metadata = {} } = filter;
    if (ids !== undefined) return [{ ordered: false, sure: false, candidates: () => candidatesById(ids) }];
    const asked = Object.keys(metadata).length;
    const isAll = asked === 0 && !isPartial;
    const isByCreation = sort_by === "created_at" || (sort_by === "status" && status !== undefined);
    const scans: IndexScan[] = [];
    const members = membersAsked(metadata);
    // True if the index keys alone decide which threads match.
    const isSure = members.length === asked && !isPartial && status === undefined;
    // A thread that matches has a key in each of these lists. There is no list for the status `busy`: a busy thread is listed under the
    // status that it had before.
    const wide = threadsByMetadataPrefix(this.#tenant, MANY_MEMBERS_KEY);
    const lists: PostingList[] = members.map((member) => [
      threadsByMetadataPrefix(this.#tenant, member),
      wide,
    ]);
    if (status !== undefined && status !== "busy") lists.push([threadsByStatusPrefix(this.#tenant, status)]);
    const among = (pages: () => CandidatePages, isPlaced: boolean, own?: string) => () => {
      const others = lists.filter(([list]) => list !== own);
      return others.length === 0 ? pages() : this.#postingLists.intersect(pages(), others, isPlaced);
    };
    for (const member of members) {
      const candidates = among(
        () => this.#withMember(member),
        true,
        threadsByMetadataPrefix(this.#tenant, member),
      );
      scans.push({ ordered: isByCreation, sure: isSure, candidates });
    }
    if (status !== undefined) {
      const candidates = among(
        () => this.#inStatus(status),
        true,
        threadsByStatusPrefix(this.#tenant, status),
      );
      scans.push({ ordered: isByCreation, sure: isAll, candidates });
    }
    // Not needed for a status sorted by creation: the index by status has the same order and fewer keys.
    if (status === undefined || !isByCreation) {
      const { candidates, ...order } = this.#inOrder(sort_by);
      const isPlaced = sort_by === "created_at";
      scans.push({ candidates: among(candidates, isPlaced), sure: isAll && status === undefined, ...order });
    }
    return scans;
  }

  #inOrder(sort_by: ThreadOrder): Omit<IndexScan, "sure"> & { readonly candidates: () => CandidatePages } {
    switch (sort_by) {
      case "thread_id":
        return { ordered: true, candidates: () => this.#byId() };
      case "created_at":
        return { ordered: true, candidates: () => this.#range(threadsByCreationPrefix(this.#tenant)) };
      case "updated_at":
        return { ordered: true, candidates: () => this.#byUpdate() };
      case "status":
        return { ordered: true, candidates: () => this.#byStatus() };
      case "state_updated_at":
        // There is no index by `state_updated_at`. This time is between the creation of the thread and its last change. So the index by
        // creation, or in reverse the index by last change, is scanned until no later thread can come before those found.
        return {
          ordered: false,
          bounded: true,
          candidates: () =>
            this.#reverse ? this.#byUpdate() : this.#range(threadsByCreationPrefix(this.#tenant)),
        };
      default:
        return sort_by satisfies never;
    }
  }

  // --- ranges of keys ---

  async *#range(prefix: string): CandidatePages {
    for await (const keys of this.#kv.keys({ reverse: this.#reverse, ...prefixRange(prefix) })) {
      yield newCandidatePage(keys.map(parseSortKey));
    }
  }

  async *#byId(): CandidatePages {
    const range = { reverse: this.#reverse, ...prefixRange(threadIdsPrefix(this.#tenant)) };
    for await (const keys of this.#kv.keys(range)) {
      yield newCandidatePage(keys.map((key) => ({ thread: lastSegment(key), at: 0 })));
    }
  }

  async *#withMember(member: string): CandidatePages {
    const own = this.#range(threadsByMetadataPrefix(this.#tenant, member));
    yield* this.#merged(
      own,
      asDoubtful(this.#range(threadsByMetadataPrefix(this.#tenant, MANY_MEMBERS_KEY))),
    );
  }

  /**
   * The threads with a status. In the index, busy threads are listed under the status that they had before. They are few, so all of them
   * are read.
   */
  async *#inStatus(status: ThreadStatus): CandidatePages {
    const busy = await this.#busyThreads();
    if (status === "busy") yield this.#sorted(busy, "created_at");
    else yield* withoutThreads(this.#range(threadsByStatusPrefix(this.#tenant, status)), busy);
  }

  async *#byStatus(): CandidatePages {
    for (const status of this.#reverse ? STATUSES.toReversed() : STATUSES) yield* this.#inStatus(status);
  }

  async *#byUpdate(): CandidatePages {
    const busy = await this.#busyThreads();
    const resting = this.#range(threadsByUpdatePrefix(this.#tenant));
    yield* this.#merged(onePage(this.#sorted(busy, "updated_at")), withoutThreads(resting, busy));
  }

  // --- busy threads ---

  #busyThreads(): Promise<ReadonlyMap<string, ThreadRecord>> {
    return (this.#busy ??= this.#readBusyThreads());
  }

  async #readBusyThreads(): Promise<ReadonlyMap<string, ThreadRecord>> {
    const found = new Map<string, ThreadRecord>();
    for await (const [mark, value] of this.#kv.entries(prefixRange(unsettledThreadsPrefix(this.#tenant)))) {
      if (value.equals(HIDDEN_MARK)) continue;
      const id = lastSegment(mark);
      const thread = await this.#read(id);
      if (thread !== undefined && threadStatusOf(thread) === "busy") found.set(id, thread);
    }
    return found;
  }

  #sorted(threads: ReadonlyMap<string, ThreadRecord>, by: "created_at" | "updated_at"): CandidatePage {
    const places = [...threads.values()].map((thread) => ({ thread: thread.thread_id, at: thread[by] }));
    return newCandidatePage(places.toSorted((a, b) => this.#compare(a, b)));
  }

  #compare(a: Candidate, b: Candidate): number {
    const ascending = a.at - b.at || (a.thread < b.thread ? -1 : 1);
    return this.#reverse ? -ascending : ascending;
  }

  /** Merges two scans that have the same order. */
  async *#merged(one: CandidatePages, other: CandidatePages): CandidatePages {
    try {
      let [a, b] = [await nextCandidates(one), await nextCandidates(other)];
      while (a.length > 0 && b.length > 0) {
        const found: Candidate[] = [];
        let [i, j] = [0, 0];
        while (i < a.length && j < b.length) {
          const [x, y] = [a[i] as Candidate, b[j] as Candidate];
          const isX = this.#compare(x, y) <= 0;
          found.push(isX ? x : y);
          if (isX) i++;
          else j++;
        }
        yield newCandidatePage(found);
        a = i < a.length ? a.slice(i) : await nextCandidates(one);
        b = j < b.length ? b.slice(j) : await nextCandidates(other);
      }
      for (; a.length > 0; a = await nextCandidates(one)) yield newCandidatePage(a);
      for (; b.length > 0; b = await nextCandidates(other)) yield newCandidatePage(b);
    } finally {
      await one.return(undefined);
      await other.return(undefined);
    }
  }
}

function membersAsked(metadata: JsonObject): readonly string[] {
  const members = Object.keys(metadata).map((name) => metadataIndexKey(name, metadata[name]));
  return members.filter((member) => member !== undefined).slice(0, MAX_SCANNED_MEMBERS);
}
