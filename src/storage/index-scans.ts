import { threadStatus, type ThreadRecord, type ThreadStatus } from "../model/thread.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadFilter, ThreadOrder } from "../model/thread-search.ts";
import {
  activePrefix,
  createdPrefix,
  indexPrefix,
  lastSegment,
  memberPrefix,
  parsePlace,
  restedPrefix,
  statusPrefix,
  within,
} from "./keys.ts";
import {
  all,
  type Candidate,
  type Candidates,
  doubted,
  given,
  only,
  type Pages,
  some,
  without,
} from "./index-candidates.ts";
import type { Kv } from "./kv.ts";
import { HIDDEN } from "./records.ts";
import { memberOf } from "./metadata-keys.ts";
import { type Room, Rooms } from "./posting-lists.ts";
import { WIDE } from "./thread-index.ts";

/** An index scan that finds all threads of a search. */
export interface Walk {
  /** Whether it yields in the requested order. Otherwise all of it is read before the first result. */
  readonly ordered: boolean;
  /** Whether each candidate matches. Otherwise each record has to be read. */
  readonly sure: boolean;
  /** Set when no later thread sorts before the current `at`, in the requested order. */
  readonly bounded?: true;
  candidates(): AsyncIterable<Candidates>;
}

export interface Wanted {
  readonly filter: ThreadFilter;
  readonly sort_by: ThreadOrder;
  readonly reverse: boolean;
  /** Whether there are conditions beside the filter. */
  readonly isPartial: boolean;
}

/** Metadata members of a filter whose index is scanned; the others are checked in the record. */
const MOST = 3;

const STATUSES = ["busy", "error", "idle", "interrupted"] as const satisfies ThreadStatus[];

/** Plans the index scans for a search over one tenant's threads. */
export class Walks {
  readonly #kv: Kv;
  readonly #tenant: string;
  readonly #read: (thread: string) => ThreadRecord | undefined;
  readonly #reverse: boolean;
  readonly #rooms: Rooms;
  #busy: Promise<ReadonlyMap<string, ThreadRecord>> | undefined;

  constructor(
    kv: Kv,
    tenant: string,
    read: (thread: string) => ThreadRecord | undefined,
    { reverse }: Pick<Wanted, "reverse">,
  ) {
    this.#kv = kv;
    this.#rooms = new Rooms(kv);
    this.#tenant = tenant;
    this.#read = read;
    this.#reverse = reverse;
  }

  /** All scans that can answer the search, each the best one for some data. Scans that are likely to be short come first. */
  to({ filter, sort_by, isPartial }: Wanted): readonly Walk[] {
    const { ids, status, metadata = {} } = filter;
    if (ids !== undefined) return [{ ordered: false, sure: false, candidates: () => given(ids) }];
    const asked = Object.keys(metadata).length;
    const isAll = asked === 0 && !isPartial;
    const isByCreation = sort_by === "created_at" || (sort_by === "status" && status !== undefined);
    const walks: Walk[] = [];
    const members = membersAsked(metadata);
    // Whether the index keys alone decide.
    const isSure = members.length === asked && !isPartial && status === undefined;
    // Each match has a key under each of these prefixes; a busy thread is under the status it had last.
    const wide = memberPrefix(this.#tenant, WIDE);
    const rooms: Room[] = members.map((member) => [memberPrefix(this.#tenant, member), wide]);
    if (status !== undefined && status !== "busy") rooms.push([statusPrefix(this.#tenant, status)]);
    const among = (pages: () => Pages, isPlaced: boolean, own?: string) => () => {
      const others = rooms.filter(([room]) => room !== own);
      return others.length === 0 ? pages() : this.#rooms.among(pages(), others, isPlaced);
    };
    for (const member of members) {
      const candidates = among(() => this.#withMember(member), true, memberPrefix(this.#tenant, member));
      walks.push({ ordered: isByCreation, sure: isSure, candidates });
    }
    if (status !== undefined) {
      const candidates = among(() => this.#inStatus(status), true, statusPrefix(this.#tenant, status));
      walks.push({ ordered: isByCreation, sure: isAll, candidates });
    }
    // With a status, the scan of that status serves this order.
    if (status === undefined || !isByCreation) {
      const { candidates, ...order } = this.#inOrder(sort_by);
      const isPlaced = sort_by === "created_at";
      walks.push({ ...order, candidates: among(candidates, isPlaced), sure: isAll && status === undefined });
    }
    return walks;
  }

  #inOrder(sort_by: ThreadOrder): Omit<Walk, "sure"> & { readonly candidates: () => Pages } {
    switch (sort_by) {
      case "thread_id":
        return { ordered: true, candidates: () => this.#byId() };
      case "created_at":
        return { ordered: true, candidates: () => this.#range(createdPrefix(this.#tenant)) };
      case "updated_at":
        return { ordered: true, candidates: () => this.#byUpdate() };
      case "status":
        return { ordered: true, candidates: () => this.#byStatus() };
      case "state_updated_at":
        // A state is not changed before its thread is created, nor after its thread's last change.
        return {
          ordered: false,
          bounded: true,
          candidates: () => (this.#reverse ? this.#byUpdate() : this.#range(createdPrefix(this.#tenant))),
        };
      default:
        return sort_by satisfies never;
    }
  }

  // --- ranges of keys ---

  async *#range(prefix: string): Pages {
    for await (const keys of this.#kv.keys({ ...within(prefix), reverse: this.#reverse })) {
      yield all(keys.map(parsePlace));
    }
  }

  async *#byId(): Pages {
    const range = { ...within(indexPrefix(this.#tenant)), reverse: this.#reverse };
    for await (const keys of this.#kv.keys(range)) {
      yield all(keys.map((key) => ({ thread: lastSegment(key), at: 0 })));
    }
  }

  async *#withMember(member: string): Pages {
    const own = this.#range(memberPrefix(this.#tenant, member));
    yield* this.#merged(own, doubted(this.#range(memberPrefix(this.#tenant, WIDE))));
  }

  /** Settled threads are found in the index. Busy threads are few and are all read. */
  async *#inStatus(status: ThreadStatus): Pages {
    const busy = await this.#atWork();
    if (status === "busy") yield this.#sorted(busy, "created_at");
    // A busy thread is in the index under the status it had last.
    else yield* without(this.#range(statusPrefix(this.#tenant, status)), busy);
  }

  async *#byStatus(): Pages {
    for (const status of this.#reverse ? STATUSES.toReversed() : STATUSES) yield* this.#inStatus(status);
  }

  async *#byUpdate(): Pages {
    const busy = await this.#atWork();
    const resting = this.#range(restedPrefix(this.#tenant));
    yield* this.#merged(only(this.#sorted(busy, "updated_at")), without(resting, busy));
  }

  // --- those at work ---

  #atWork(): Promise<ReadonlyMap<string, ThreadRecord>> {
    return (this.#busy ??= this.#readAtWork());
  }

  async #readAtWork(): Promise<ReadonlyMap<string, ThreadRecord>> {
    const found = new Map<string, ThreadRecord>();
    for await (const [mark, value] of this.#kv.entries(within(activePrefix(this.#tenant)))) {
      if (value.equals(HIDDEN)) continue;
      const id = lastSegment(mark);
      const thread = this.#read(id);
      if (thread !== undefined && threadStatus(thread) === "busy") found.set(id, thread);
    }
    return found;
  }

  #sorted(threads: ReadonlyMap<string, ThreadRecord>, by: "created_at" | "updated_at"): Candidates {
    const places = [...threads.values()].map((thread) => ({ thread: thread.thread_id, at: thread[by] }));
    return all(places.toSorted((a, b) => this.#compare(a, b)));
  }

  #compare(a: Candidate, b: Candidate): number {
    const ascending = a.at - b.at || (a.thread < b.thread ? -1 : 1);
    return this.#reverse ? -ascending : ascending;
  }

  /** Merges two scans of the same order. */
  async *#merged(one: Pages, other: Pages): Pages {
    try {
      let [a, b] = [await some(one), await some(other)];
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
        yield all(found);
        a = i < a.length ? a.slice(i) : await some(one);
        b = j < b.length ? b.slice(j) : await some(other);
      }
      for (; a.length > 0; a = await some(one)) yield all(a);
      for (; b.length > 0; b = await some(other)) yield all(b);
    } finally {
      await one.return(undefined);
      await other.return(undefined);
    }
  }
}

function membersAsked(metadata: JsonObject): readonly string[] {
  const members = Object.keys(metadata).map((name) => memberOf(name, metadata[name]));
  return members.filter((member) => member !== undefined).slice(0, MOST);
}
