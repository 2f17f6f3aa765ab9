import { contains } from "../model/json.ts";
import type { WeakCache } from "../model/weak-cache.ts";
import type { RunKwargs, RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { RunsFilter, RunsQuery } from "../ports/journal.ts";
import { lastSegment, startedDelayedRunPrefix, runOrderPrefix, prefixRange } from "./keys.ts";
import { encodeOrdinal } from "./sortable-numbers.ts";
import { allEventually, andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import { type GetValue, readRun, readStoredRun, type StoredRun } from "./stored-records.ts";

/** Reads the runs of one thread in the order in which they were admitted. Runs also start in this order, except delayed runs. */
export class ThreadRunsReader {
  readonly #kv: KeyValueStore;
  readonly #key: ThreadKey;
  readonly #prefix: string;
  readonly #get: GetValue;
  readonly #shared: WeakCache<RunKwargs>;

  /**
   * `get`: reads a value, in another thread of the process if it is large. `shared`: a cache of large kwargs that other readers have
   * decoded.
   */
  constructor(
    kv: KeyValueStore,
    key: ThreadKey,
    prefix: string,
    get: GetValue,
    shared: WeakCache<RunKwargs>,
  ) {
    this.#kv = kv;
    this.#get = get;
    this.#shared = shared;
    this.#key = key;
    this.#prefix = prefix;
  }

  async newest({
    limit,
    offset,
    before,
    bytes = Number.POSITIVE_INFINITY,
    ...filter
  }: RunsQuery): Promise<readonly RunRecord[]> {
    const found: RunRecord[] = [];
    if (limit < 1) return found;
    let skip = offset;
    let size = 0;
    const sized = (key: string): Eventually<Buffer | undefined> =>
      andThen(this.#get(key), (value) => {
        size += value?.length ?? 0;
        return value;
      });
    for await (const id of this.#ids(0, true, before)) {
      if (!(await this.#fits(id, filter)) || skip-- > 0) continue;
      const run = await readRun(sized, this.#key, this.#prefix, id, this.#shared);
      // The run was deleted after the list was started.
      if (run === undefined) continue;
      found.push(run);
      if (found.length >= limit || size >= bytes) break;
    }
    return found;
  }

  async count(filter: RunsFilter): Promise<number> {
    const isAll = filter.status === undefined && filter.metadata === undefined;
    let count = 0;
    for await (const keys of this.#kv.keys(prefixRange(runOrderPrefix(this.#prefix)))) {
      if (isAll) count += keys.length;
      else {
        const fits = await allEventually(keys.map((key) => this.#fits(lastSegment(key), filter)));
        count += fits.filter(Boolean).length;
      }
    }
    return count;
  }

  #fits(id: string, { status, metadata }: RunsFilter): Eventually<boolean> {
    if (status === undefined && metadata === undefined) return true;
    return andThen(this.#stored(id), (run) => {
      if (run === undefined || (status !== undefined && run.status !== status)) return false;
      return metadata === undefined || contains(run.metadata, metadata);
    });
  }

  /**
   * The runs that have started, in the order of their start. The first one is the last run whose first event number (`seq_base`) is at or
   * below `seq`, or else the first run. `last`: the highest order number in the thread. Delayed runs start later than their order number
   * suggests, so they are read from a separate list.
   */
  async begun(seq: number, last: number, limit: number): Promise<readonly RunRecord[]> {
    const inOrder = await this.#inOrder(await this.#floor(seq, last), limit);
    const late = await this.#late(seq, limit);
    if (late.length === 0) return inOrder.slice(0, limit);
    const both = [...inOrder, ...late].sort((one, other) => one.seq_base - other.seq_base);
    // Both lists begin with their last run at or below `seq`. Only the later of these two runs is needed.
    const from = both.findLastIndex(({ seq_base }) => seq_base <= seq);
    return both.slice(Math.max(0, from)).slice(0, limit);
  }

  /**
   * Finds the order number of the last run whose `seq_base` is at or below `seq`; 0 if there is none. `last`: the thread's newest order
   * number.
   */
  async #floor(seq: number, last: number): Promise<number> {
    let low = 0;
    let high = last;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const run = await this.#first(middle);
      if (run === undefined || run.seq_base > seq) high = middle - 1;
      else low = run.order;
    }
    return low;
  }

  async #inOrder(order: number, limit: number): Promise<readonly RunRecord[]> {
    const found: RunRecord[] = [];
    for await (const id of this.#ids(order)) {
      // Reads one run more than requested, because a delayed run may replace the first one.
      if (found.length > limit) break;
      const run = await readRun(this.#get, this.#key, this.#prefix, id, this.#shared);
      // Skips delayed runs, and runs that were deleted meanwhile or withdrawn before they started.
      if (run !== undefined && hasBegunInOrder(run)) found.push(run);
    }
    return found;
  }

  async #late(seq: number, limit: number): Promise<readonly RunRecord[]> {
    const prefix = startedDelayedRunPrefix(this.#prefix);
    const { gte, lt } = prefixRange(prefix);
    const after = prefix + encodeOrdinal(seq + 1);
    let from = after;
    for await (const [key] of this.#kv.entries({ gte, lt: after, reverse: true, limit: 1 })) from = key;
    const found: RunRecord[] = [];
    for await (const [key] of this.#kv.entries({ gte: from, lt, limit: limit + 1 })) {
      const run = await readRun(this.#get, this.#key, this.#prefix, lastSegment(key), this.#shared);
      if (run !== undefined) found.push(run);
    }
    return found;
  }

  async #first(order: number): Promise<StoredRun | undefined> {
    for await (const id of this.#ids(order)) {
      const run = await this.#stored(id);
      if (run !== undefined && hasBegunInOrder(run)) return run;
    }
    return undefined;
  }

  #stored(id: string): Eventually<StoredRun | undefined> {
    return readStoredRun(this.#get, this.#key, this.#prefix, id);
  }

  async *#ids(order: number, reverse = false, before?: number): AsyncGenerator<string> {
    const prefix = runOrderPrefix(this.#prefix);
    const lt = before === undefined ? prefixRange(prefix).lt : prefix + encodeOrdinal(before);
    const range = { gte: prefix + encodeOrdinal(order), lt, reverse };
    for await (const [key] of this.#kv.entries(range)) yield lastSegment(key);
  }
}

/** True if the run has started and is not a delayed run. Delayed runs start later than runs that were admitted after them. */
function hasBegunInOrder({ seq_base, due }: StoredRun | RunRecord): boolean {
  return seq_base > 0 && due === null;
}
