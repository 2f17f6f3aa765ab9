import { deletedSnapshot, type ShardSnapshot, type ShardSnapshots } from "../ports/shard-snapshots.ts";

interface Stored {
  readonly shard: number;
  readonly seq: number;
  readonly parts: Uint8Array[];
  isComplete: boolean;
}

/** Snapshots in the memory of this process, for tests and the simulation. All nodes of a cluster share one instance. */
export class MemoryShardSnapshots implements ShardSnapshots {
  /** The snapshots by id, in the order in which they were begun. */
  readonly #stored = new Map<string, Stored>();
  #count = 0;

  async put(shard: number, seq: number, parts: AsyncIterable<Uint8Array>): Promise<ShardSnapshot> {
    const id = String(++this.#count);
    const stored: Stored = { shard, seq, parts: [], isComplete: false };
    this.#stored.set(id, stored);
    for await (const part of parts) stored.parts.push(part);
    if (!this.#stored.has(id)) throw deletedSnapshot(shard, seq);
    stored.isComplete = true;
    return describe(id, stored);
  }

  async newest(shard: number): Promise<ShardSnapshot | undefined> {
    let newest: ShardSnapshot | undefined;
    for (const [id, stored] of this.#stored) {
      if (stored.shard === shard && stored.isComplete && stored.seq >= (newest?.seq ?? 0)) {
        newest = describe(id, stored);
      }
    }
    return newest;
  }

  async *read(snapshot: ShardSnapshot): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < snapshot.parts; i++) {
      const part = this.#stored.get(snapshot.id)?.parts[i];
      if (part === undefined) throw deletedSnapshot(snapshot.shard, snapshot.seq);
      yield part;
    }
  }

  async prune(shard: number): Promise<void> {
    const newest = await this.newest(shard);
    if (newest === undefined) return;
    for (const [id, stored] of this.#stored) {
      if (stored.shard !== shard || id === newest.id) continue;
      if (stored.isComplete || stored.seq < newest.seq) this.#stored.delete(id);
    }
  }
}

const describe = (id: string, { shard, seq, parts }: Stored): ShardSnapshot => ({
  id,
  shard,
  seq,
  parts: parts.length,
  bytes: parts.reduce((sum, part) => sum + part.length, 0),
});
