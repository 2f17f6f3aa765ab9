import {
  fencedAppendError,
  type LogEntry,
  type LogExtent,
  type ShardLog,
  trimmedLogError,
} from "../ports/shard-log.ts";

interface Shard {
  epoch: number;
  /** The position of the first entry in `entries`. Positions count from 1. */
  first: number;
  readonly entries: LogEntry[];
}

/** A log in the memory of this process, for tests and simulations. All nodes of a cluster share one instance. */
export class MemoryShardLog implements ShardLog {
  readonly #shards = new Map<number, Shard>();
  readonly #isEpochChecked: boolean;

  /**
   * `isEpochChecked`: false only in tests, which show that a former owner is refused even without the check of the epoch: the first append
   * of the new owner has taken the next position.
   */
  constructor(isEpochChecked = true) {
    this.#isEpochChecked = isEpochChecked;
  }

  /** The epoch of a shard; 0 if the shard never had an owner. */
  epochOf(shard: number): number {
    return this.#of(shard).epoch;
  }

  /** Raises the epoch of a shard by one, and returns it. */
  newEpoch(shard: number): number {
    return ++this.#of(shard).epoch;
  }

  async append(shard: number, seq: number, epoch: number, batch: Uint8Array): Promise<void> {
    const of = this.#of(shard);
    if ((this.#isEpochChecked && epoch !== of.epoch) || seq !== lastOf(of) + 1)
      throw fencedAppendError(shard, seq, epoch);
    of.entries.push({ seq, epoch, batch });
  }

  async read(shard: number, from: number, limitBytes: number): Promise<readonly LogEntry[]> {
    const { first, entries } = this.#of(shard);
    if (from < first) throw trimmedLogError(shard, from);
    const found: LogEntry[] = [];
    let bytes = 0;
    for (let i = from - first; i < entries.length; i++) {
      const entry = entries[i] as LogEntry;
      bytes += entry.batch.length;
      if (found.length > 0 && bytes > limitBytes) break;
      found.push(entry);
    }
    return found;
  }

  async last(shard: number): Promise<number> {
    return lastOf(this.#of(shard));
  }

  async extent(shard: number, from: number): Promise<LogExtent> {
    const of = this.#of(shard);
    const last = lastOf(of);
    const first = Math.min(Math.max(from, of.first), last + 1);
    const bytes = of.entries.slice(first - of.first).reduce((sum, { batch }) => sum + batch.length, 0);
    return { first, last, bytes };
  }

  async trim(shard: number, below: number): Promise<void> {
    const of = this.#of(shard);
    const count = Math.min(below, lastOf(of)) - of.first;
    if (count <= 0) return;
    of.entries.splice(0, count);
    of.first += count;
  }

  #of(shard: number): Shard {
    let of = this.#shards.get(shard);
    if (of === undefined) this.#shards.set(shard, (of = { epoch: 0, first: 1, entries: [] }));
    return of;
  }
}

const lastOf = ({ first, entries }: Shard): number => first + entries.length - 1;
