import type { KeyValueStore, WriteOperation } from "../../src/ports/key-value-store.ts";
import type { ShardLog } from "../../src/ports/shard-log.ts";
import type { ShardSnapshot, ShardSnapshots } from "../../src/ports/shard-snapshots.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";

/**
 * Ends a node at one of its steps. A step is a call to the database of the cluster, a part of a snapshot, or a write to a new local database.
 * It is ended before or after it has had its effect: from then on, no call of the node has an effect or an answer.
 */
export class Crash {
  #left: number;

  /** `steps`: the steps that are made in full, as halves: an odd number ends the node between an effect and its answer. */
  constructor(steps: number) {
    this.#left = steps;
  }

  get hasHappened(): boolean {
    return this.#left < 0;
  }

  async pass<R>(work: () => R | Promise<R>): Promise<R> {
    await this.#half();
    const result = await work();
    await this.#half();
    return result;
  }

  #half(): Promise<void> | undefined {
    if (this.#left < 0 || --this.#left < 0) return new Promise(() => undefined);
    return undefined;
  }
}

export const crashingLog = (log: ShardLog, crash: Crash): ShardLog => ({
  append: (...args) => crash.pass(() => log.append(...args)),
  read: (...args) => crash.pass(() => log.read(...args)),
  last: (...args) => crash.pass(() => log.last(...args)),
  extent: (...args) => crash.pass(() => log.extent(...args)),
  trim: (...args) => crash.pass(() => log.trim(...args)),
});

export function crashingSnapshots(snapshots: ShardSnapshots, crash: Crash): ShardSnapshots {
  async function* eachPart(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const part of parts) yield await crash.pass(() => part);
  }
  return {
    put: (shard, seq, parts) => crash.pass(() => snapshots.put(shard, seq, eachPart(parts))),
    list: (...args) => crash.pass(() => snapshots.list(...args)),
    prune: (...args) => crash.pass(() => snapshots.prune(...args)),
    read: (snapshot) => eachPart(snapshots.read(snapshot)),
  };
}

/** The local database of a node. It stays when the node ends. */
export class CrashingStore extends MemoryKeyValueStore {
  crash = new Crash(Infinity);

  override replace(fill: (empty: KeyValueStore) => Promise<void>): Promise<void> {
    const { crash } = this;
    return crash.pass(() =>
      super.replace(async (empty) => {
        const batch = empty.batch.bind(empty);
        empty.batch = (ops: readonly WriteOperation[], options) => crash.pass(() => batch(ops, options));
        await fill(empty);
      }),
    );
  }
}

/** Snapshots some of whose parts cannot be read as they were put. */
export class DamagedSnapshots implements ShardSnapshots {
  /** Snapshots whose last part is missing. */
  readonly torn = new Set<string>();
  /** Snapshots whose first part is another one. */
  readonly changed = new Set<string>();
  /** The snapshots that were read, by their ids. */
  readonly reads: string[] = [];
  /** Called before each part that is put. */
  beforePart: () => Promise<void> = async () => undefined;
  readonly #snapshots: ShardSnapshots;

  constructor(snapshots: ShardSnapshots) {
    this.#snapshots = snapshots;
  }

  put(shard: number, seq: number, parts: AsyncIterable<Uint8Array>): Promise<ShardSnapshot> {
    const before = () => this.beforePart();
    async function* eachPart(): AsyncGenerator<Uint8Array> {
      for await (const part of parts) {
        await before();
        yield part;
      }
    }
    return this.#snapshots.put(shard, seq, eachPart());
  }

  list(shard: number): Promise<readonly ShardSnapshot[]> {
    return this.#snapshots.list(shard);
  }

  async *read(snapshot: ShardSnapshot): AsyncGenerator<Uint8Array> {
    this.reads.push(snapshot.id);
    const { id, parts } = snapshot;
    // The port's own error for a part that is not there.
    const asked = this.torn.has(id) ? { ...snapshot, parts: parts + 1 } : snapshot;
    for await (const part of this.#snapshots.read(asked))
      yield this.changed.has(id) ? part.toReversed() : part;
  }

  prune(shard: number, keep: number): Promise<void> {
    return this.#snapshots.prune(shard, keep);
  }
}
