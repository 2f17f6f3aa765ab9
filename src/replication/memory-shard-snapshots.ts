import type { Clock } from "../ports/clock.ts";
import { deletedSnapshotError, type ShardSnapshot, type ShardSnapshots } from "../ports/shard-snapshots.ts";

interface Stored {
  readonly shard: number;
  readonly seq: number;
  readonly parts: Uint8Array[];
  /** Epoch milliseconds. Undefined until the snapshot is complete. */
  madeAt: number | undefined;
}

/** Snapshots in the memory of this process, for tests and simulations. All nodes of a cluster share one instance. */
export class MemoryShardSnapshots implements ShardSnapshots {
  readonly #clock: Clock;
  /** The snapshots by id, in the order in which they were begun. */
  readonly #stored = new Map<string, Stored>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async put(shard: number, seq: number, parts: AsyncIterable<Uint8Array>): Promise<ShardSnapshot> {
    this.#deleteIncomplete(shard, seq);
    const id = String(++this.#count);
    const stored: Stored = { shard, seq, parts: [], madeAt: undefined };
    this.#stored.set(id, stored);
    try {
      for await (const part of parts) {
        if (!this.#stored.has(id)) break;
        stored.parts.push(part);
      }
    } catch (error) {
      this.#stored.delete(id);
      throw error;
    }
    if (!this.#stored.has(id)) throw deletedSnapshotError(shard, seq, stored.parts.length);
    stored.madeAt = this.#clock.now();
    return describe(id, stored, stored.madeAt);
  }

  async list(shard: number): Promise<readonly ShardSnapshot[]> {
    return [...this.#stored]
      .flatMap(([id, stored]) =>
        stored.shard === shard && stored.madeAt !== undefined ? [describe(id, stored, stored.madeAt)] : [],
      )
      .toSorted((a, b) => b.seq - a.seq);
  }

  async *read(snapshot: ShardSnapshot): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < snapshot.parts; i++) {
      const part = this.#stored.get(snapshot.id)?.parts[i];
      if (part === undefined) throw deletedSnapshotError(snapshot.shard, snapshot.seq, i);
      yield part;
    }
  }

  async prune(shard: number, keep: number): Promise<void> {
    const complete = await this.list(shard);
    for (const { id } of complete.slice(keep)) this.#stored.delete(id);
    this.#deleteIncomplete(shard, complete[0]?.seq ?? 0);
  }

  #deleteIncomplete(shard: number, below: number): void {
    for (const [id, stored] of this.#stored) {
      if (stored.shard === shard && stored.madeAt === undefined && stored.seq < below)
        this.#stored.delete(id);
    }
  }
}

const describe = (id: string, { shard, seq, parts }: Stored, madeAt: number): ShardSnapshot => ({
  id,
  shard,
  seq,
  parts: parts.length,
  bytes: parts.reduce((sum, part) => sum + part.length, 0),
  madeAt,
});
