import { shardOf } from "../model/shard-of.ts";
import type { ThreadKey } from "../model/thread.ts";

/**
 * The names of the functions that can be called with a thread's key as their first argument. This includes functions without parameters.
 */
type ByThread<Part> = {
  [Name in keyof Part]: Part[Name] extends (key: ThreadKey, ...rest: never[]) => unknown ? Name : never;
}[keyof Part];

type Call = (key: ThreadKey, ...rest: readonly unknown[]) => unknown;

/** Finds the shard of a name (see {@link shardOf}). `all` contains the shards in the order of their numbers. */
export class ShardRouter<Shard> {
  readonly all: readonly Shard[];
  readonly #own: number | undefined;
  #last = -1;

  /** @param own the number of the shard that gets new records which may be in any shard. Absent: the shards get them in turn */
  constructor(shards: readonly Shard[], own?: number) {
    this.all = shards;
    this.#own = own;
  }

  /** Shard 0, which stores the records that all shards share, such as assistants. */
  get home(): Shard {
    return this.all[0] as Shard;
  }

  of(name: string): Shard {
    return this.all[shardOf(name, this.all.length)] as Shard;
  }

  /** Groups entries by the shard of their names. */
  group<T>(entries: readonly T[], nameOf: (entry: T) => string): ReadonlyMap<Shard, readonly T[]> {
    const groups = new Map<Shard, T[]>();
    for (const entry of entries) {
      const shard = this.of(nameOf(entry));
      const group = groups.get(shard);
      if (group === undefined) groups.set(shard, [entry]);
      else group.push(entry);
    }
    return groups;
  }

  /**
   * Asks one shard after another for a record whose shard is not known. Resolves with the first result. If no shard has the record, rejects
   * with the error of the last shard.
   * @param isMissing whether an error only means that the asked shard does not have the record
   */
  async find<T>(ask: (shard: Shard) => Promise<T>, isMissing: (cause: unknown) => boolean): Promise<T> {
    let missing: unknown;
    for (const shard of this.all) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- the next shard is asked only when this one does not have the record
        return await ask(shard);
      } catch (cause) {
        if (!isMissing(cause)) throw cause;
        missing = cause;
      }
    }
    throw missing;
  }

  /** Returns the shard for a new record that may be in any shard. */
  next(): Shard {
    this.#last = this.#own ?? (this.#last + 1) % this.all.length;
    return this.all[this.#last] as Shard;
  }

  /**
   * Returns the functions with these names. Each calls the same function of the service in the shard of the thread whose key is the first
   * argument.
   */
  byThread<Part, Name extends ByThread<Part>>(
    partOf: (shard: Shard) => Part,
    names: readonly Name[],
  ): Pick<Part, Name> {
    const call =
      (name: Name): Call =>
      (key, ...rest) => {
        const part = partOf(this.of(key.thread)) as Record<Name, Call>;
        return part[name](key, ...rest);
      };
    return Object.fromEntries(names.map((name) => [name, call(name)])) as Pick<Part, Name>;
  }
}
