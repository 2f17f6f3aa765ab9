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
import type { Kv } from "./kv.ts";
import { HIDDEN } from "./records.ts";
import { memberOf, WIDE } from "./thread-index.ts";

/** A thread that may be meant. */
export interface Candidate {
  readonly thread: string;
  /** What it is sorted by where it was found, if that is a number. */
  readonly at: number;
  /** It may not fit, although its walk is sure. */
  readonly doubtful?: true;
}

/** One way to all threads that a search means. */
export interface Walk {
  /** In the order asked for? Else all of it has to be seen before anything can be shown. */
  readonly ordered: boolean;
  /** Does each candidate fit? Else each has to be read. */
  readonly sure: boolean;
  /** No thread further on comes before what `at` says, in the order asked for. */
  readonly bounded?: true;
  candidates(): AsyncIterable<Candidate>;
}

export interface Wanted {
  readonly filter: ThreadFilter;
  readonly sort_by: ThreadOrder;
  readonly reverse: boolean;
  /** Is there more to fit than the filter says? */
  readonly isPartial: boolean;
}

/** Members of a filter whose index is walked; what others ask is looked up in the record. */
const MOST = 3;

const STATUSES = ["busy", "error", "idle", "interrupted"] as const satisfies ThreadStatus[];

/** The ways through the index of one tenant's threads, for one search. */
export class Walks {
  readonly #kv: Kv;
  readonly #tenant: string;
  readonly #read: (thread: string) => ThreadRecord | undefined;
  readonly #reverse: boolean;
  #busy: Promise<ReadonlyMap<string, ThreadRecord>> | undefined;

  constructor(
    kv: Kv,
    tenant: string,
    read: (thread: string) => ThreadRecord | undefined,
    { reverse }: Pick<Wanted, "reverse">,
  ) {
    this.#kv = kv;
    this.#tenant = tenant;
    this.#read = read;
    this.#reverse = reverse;
  }

  /** Every way that leads to all of them, each the best one for some data; those that are likely to be short come first. */
  to({ filter, sort_by, isPartial }: Wanted): readonly Walk[] {
    const { ids, status, metadata = {} } = filter;
    if (ids !== undefined) return [{ ordered: false, sure: false, candidates: () => given(ids) }];
    const asked = Object.keys(metadata).length;
    const isAll = asked === 0 && !isPartial;
    const isByCreation = sort_by === "created_at" || (sort_by === "status" && status !== undefined);
    const walks: Walk[] = [];
    const isSure = asked === 1 && !isPartial && status === undefined;
    for (const member of membersAsked(metadata)) {
      walks.push({ ordered: isByCreation, sure: isSure, candidates: () => this.#withMember(member) });
    }
    if (status !== undefined) {
      const candidates = () => this.#inStatus(status);
      walks.push({ ordered: isByCreation, sure: isAll, candidates });
    }
    // With a status it is found among those in that status.
    if (status === undefined || !isByCreation) {
      walks.push({ ...this.#inOrder(sort_by), sure: isAll && status === undefined });
    }
    return walks;
  }

  #inOrder(sort_by: ThreadOrder): Omit<Walk, "sure"> {
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
        // A state is not changed before its thread was made, and not after the thread was changed.
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

  async *#range(prefix: string): AsyncGenerator<Candidate> {
    for await (const [key] of this.#kv.entries({ ...within(prefix), reverse: this.#reverse })) {
      yield parsePlace(key);
    }
  }

  async *#byId(): AsyncGenerator<Candidate> {
    const range = { ...within(indexPrefix(this.#tenant)), reverse: this.#reverse };
    for await (const [key] of this.#kv.entries(range)) yield { thread: lastSegment(key), at: 0 };
  }

  async *#withMember(member: string): AsyncGenerator<Candidate> {
    const own = this.#range(memberPrefix(this.#tenant, member));
    yield* this.#merged(own, doubted(this.#range(memberPrefix(this.#tenant, WIDE))));
  }

  /** Those at rest stand in the index, those at work are all read: a few, beside those at rest. */
  async *#inStatus(status: ThreadStatus): AsyncGenerator<Candidate> {
    const busy = await this.#atWork();
    if (status === "busy") {
      yield* this.#sorted(busy, "created_at");
      return;
    }
    // One at work stands where it rested last.
    for await (const found of this.#range(statusPrefix(this.#tenant, status))) {
      if (!busy.has(found.thread)) yield found;
    }
  }

  async *#byStatus(): AsyncGenerator<Candidate> {
    for (const status of this.#reverse ? STATUSES.toReversed() : STATUSES) yield* this.#inStatus(status);
  }

  async *#byUpdate(): AsyncGenerator<Candidate> {
    const busy = await this.#atWork();
    const resting = this.#range(restedPrefix(this.#tenant));
    yield* this.#merged(this.#sorted(busy, "updated_at"), without(resting, busy));
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

  async *#sorted(
    threads: ReadonlyMap<string, ThreadRecord>,
    by: "created_at" | "updated_at",
  ): AsyncGenerator<Candidate> {
    const all = [...threads.values()].map((thread) => ({ thread: thread.thread_id, at: thread[by] }));
    yield* all.toSorted((a, b) => this.#compare(a, b));
  }

  #compare(a: Candidate, b: Candidate): number {
    const ascending = a.at - b.at || (a.thread < b.thread ? -1 : 1);
    return this.#reverse ? -ascending : ascending;
  }

  /** Two ways that come in the same order, as one. */
  async *#merged(
    one: AsyncGenerator<Candidate>,
    other: AsyncGenerator<Candidate>,
  ): AsyncGenerator<Candidate> {
    try {
      let [a, b] = [await one.next(), await other.next()];
      while (!a.done || !b.done) {
        if (b.done || (!a.done && this.#compare(a.value, b.value) <= 0)) {
          yield a.value as Candidate;
          a = await one.next();
        } else {
          yield b.value;
          b = await other.next();
        }
      }
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

async function* given(ids: readonly string[]): AsyncGenerator<Candidate> {
  for (const thread of new Set(ids)) yield { thread, at: 0 };
}

async function* without(
  all: AsyncIterable<Candidate>,
  threads: ReadonlyMap<string, unknown>,
): AsyncGenerator<Candidate> {
  for await (const found of all) if (!threads.has(found.thread)) yield found;
}

async function* doubted(all: AsyncIterable<Candidate>): AsyncGenerator<Candidate> {
  for await (const found of all) yield { ...found, doubtful: true };
}
