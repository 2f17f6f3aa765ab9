import type { RunRecord, RunStatus } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { RunsQuery } from "../ports/journal.ts";
import { lastSegment, orderPrefix, ordinal, within } from "./keys.ts";
import type { Kv } from "./kv.ts";
import { readRun, readStoredRun, type StoredRun } from "./records.ts";

/** The runs of one thread in the order of their admission, which is also the order in which they begin. */
export class RunLists {
  readonly #kv: Kv;
  readonly #key: ThreadKey;
  readonly #prefix: string;

  constructor(kv: Kv, key: ThreadKey, prefix: string) {
    this.#kv = kv;
    this.#key = key;
    this.#prefix = prefix;
  }

  async newest({ limit, offset, status }: RunsQuery): Promise<readonly RunRecord[]> {
    const found: RunRecord[] = [];
    if (limit < 1) return found;
    let skip = offset;
    for await (const id of this.#ids(0, true)) {
      if (!this.#is(id, status) || skip-- > 0) continue;
      const run = readRun(this.#get, this.#key, this.#prefix, id);
      // Forgotten since the list was begun.
      if (run === undefined) continue;
      found.push(run);
      if (found.length >= limit) break;
    }
    return found;
  }

  async count(status: RunStatus | undefined): Promise<number> {
    let count = 0;
    for await (const id of this.#ids(0)) if (this.#is(id, status)) count++;
    return count;
  }

  #is(id: string, status: RunStatus | undefined): boolean {
    return status === undefined || this.#stored(id)?.status === status;
  }

  /** The order of the last run that begins at or below `seq`; 0: there is none. `last`: the thread's newest order. */
  async floor(seq: number, last: number): Promise<number> {
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

  /** Those that have begun, from that order on. */
  async started(order: number, limit: number): Promise<readonly RunRecord[]> {
    const found: RunRecord[] = [];
    for await (const id of this.#ids(order)) {
      if (found.length >= limit) break;
      const run = readRun(this.#get, this.#key, this.#prefix, id);
      // Forgotten since the list was begun, or withdrawn before it began.
      if (run !== undefined && run.seq_base > 0) found.push(run);
    }
    return found;
  }

  async #first(order: number): Promise<StoredRun | undefined> {
    for await (const id of this.#ids(order)) {
      const run = this.#stored(id);
      if (run !== undefined && run.seq_base > 0) return run;
    }
    return undefined;
  }

  #stored(id: string): StoredRun | undefined {
    return readStoredRun(this.#get, this.#key, this.#prefix, id);
  }

  async *#ids(order: number, reverse = false): AsyncGenerator<string> {
    const prefix = orderPrefix(this.#prefix);
    const range = { gte: prefix + ordinal(order), lt: within(prefix).lt, reverse };
    for await (const [key] of this.#kv.entries(range)) yield lastSegment(key);
  }

  readonly #get = (key: string): Buffer | undefined => this.#kv.getSync(key);
}
