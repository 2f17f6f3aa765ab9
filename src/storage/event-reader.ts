import { chunkEnd, type EventChunk } from "../model/run-event.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { BudgetShare } from "../ports/time-budget.ts";
import { andThen, runSteps, awaitValue, type Eventually, type Steps } from "../ports/eventually.ts";
import { LARGE_VALUE_BYTES } from "./channel-values.ts";
import type { WeakCache } from "../model/weak-cache.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import { decodeFacts } from "./event-fact-codec.ts";
import { eventsPrefix, prefixRange } from "./keys.ts";
import { encodeOrdinal, parseOrdinal } from "./sortable-numbers.ts";
import { MIN_CHUNKS_PER_TURN } from "../ports/journal.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";

/** The result of one read. */
export interface EventRead {
  readonly chunks: readonly EventChunk[];
  /** True: the read has used up its share of this turn of the event loop, so the caller should wait for a later turn. */
  readonly isShareSpent: boolean;
}

/** Reads the stored event chunks of one run. */
export class EventReader {
  readonly #kv: KeyValueStore;
  readonly #key: ThreadKey;
  readonly #run: string;
  readonly #prefix: string;
  readonly #share: BudgetShare | undefined;
  readonly #shared: WeakCache<EventChunk> | undefined;
  readonly #slowKeys: Set<string> | undefined;
  /** Prefix of the thread's keys. */
  readonly #thread: string;

  /**
   * `prefix`: the prefix of the thread's keys. `share` limits how much of a turn of the event loop the read takes. `shared` caches chunks
   * that took long to decode. `slowKeys` collects the key prefixes of threads whose chunks are small but slow to read.
   */
  constructor(
    kv: KeyValueStore,
    key: ThreadKey,
    prefix: string,
    run: string,
    share?: BudgetShare,
    shared?: WeakCache<EventChunk>,
    slowKeys?: Set<string>,
  ) {
    this.#slowKeys = slowKeys;
    this.#thread = prefix;
    this.#share = share;
    this.#shared = shared;
    this.#kv = kv;
    this.#key = key;
    this.#run = run;
    this.#prefix = eventsPrefix(prefix, run);
  }

  /**
   * Reads the chunk that contains event `id`, and the chunks after it. Usually `id` is the first event of a chunk; then
   * no search is needed.
   */
  from(id: number, limit: number): Eventually<EventRead> {
    return andThen(this.#chain(id, limit), (read) =>
      read.chunks.length > 0 ? read : this.#search(id, limit),
    );
  }

  /** Reads consecutive chunks, up to the first gap; fewer if they take long to read. */
  #chain(first: number, limit: number): Eventually<EventRead> {
    return runSteps(this.#read(first, limit));
  }

  *#read(first: number, limit: number): Steps<EventRead> {
    const share = this.#share;
    share?.isSpent();
    const chunks: EventChunk[] = [];
    let id = first;
    let isShareSpent = false;
    do {
      const name = this.#prefix + encodeOrdinal(id);
      let chunk = this.#shared?.get(name);
      if (chunk === undefined) {
        const bytes = yield* awaitValue(this.#kv.get(name, this.#slowKeys?.has(this.#thread)));
        if (bytes === undefined) break;
        chunk = this.#decode(id, bytes);
        isShareSpent = share?.isSpent(bytes.length) === true;
        if (isShareSpent) this.#shared?.set(name, chunk);
        // Small events may share one of LevelDB's blocks with a large value, and then take as long to read as that value: 20 ms for 14 MB.
        // From now on, the events of this thread are read in another thread of the process.
        if (share?.isSlow === true && bytes.length <= LARGE_VALUE_BYTES) this.#slowKeys?.add(this.#thread);
      }
      chunks.push(chunk);
      id = chunkEnd(chunk);
    } while (chunks.length < limit && (!isShareSpent || chunks.length < MIN_CHUNKS_PER_TURN));
    return { chunks, isShareSpent };
  }

  async #search(id: number, limit: number): Promise<EventRead> {
    const before = await this.#last(this.#prefix + encodeOrdinal(id));
    if (before !== undefined && chunkEnd(before) > id) return this.#chain(before.first, limit);
    // No chunk contains the event. A later attempt of the run may have started at a higher event id, so this looks for the next chunk.
    const range = { gte: this.#prefix + encodeOrdinal(id), lt: prefixRange(this.#prefix).lt, limit: 1 };
    for await (const [key] of this.#kv.entries(range)) return this.#chain(this.#first(key), limit);
    return { chunks: [], isShareSpent: false };
  }

  /** The id after the last stored event; 0 if no event is stored. */
  async next(): Promise<number> {
    const last = await this.#last(prefixRange(this.#prefix).lt);
    return last === undefined ? 0 : chunkEnd(last);
  }

  async #last(lt: string): Promise<EventChunk | undefined> {
    for await (const [key, bytes] of this.#kv.entries({ gte: this.#prefix, lt, reverse: true, limit: 1 })) {
      return this.#decode(this.#first(key), bytes);
    }
    return undefined;
  }

  #first(key: string): number {
    return parseOrdinal(key.slice(this.#prefix.length));
  }

  #decode(first: number, bytes: Buffer): EventChunk {
    const stored = decodeWithChecksum(bytes, this.#key, `events from ${first} on of run ${this.#run}`);
    return { run_id: this.#run, first, facts: decodeFacts(stored) };
  }
}
