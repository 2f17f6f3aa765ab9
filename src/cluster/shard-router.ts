import { shardOf } from "../model/shard-of.ts";
import type { ThreadKey } from "../model/thread.ts";

/** The names of the functions that take the key of a thread first. */
type ByThread<Part> = {
  [Name in keyof Part]: Part[Name] extends (key: ThreadKey, ...rest: never[]) => unknown ? Name : never;
}[keyof Part];

type Call = (key: ThreadKey, ...rest: readonly unknown[]) => unknown;

/** Finds the shard of a name (see {@link shardOf}) among all shards, which are in the order of their numbers. */
export class ShardRouter<Shard> {
  readonly all: readonly Shard[];
  #last = -1;

  constructor(shards: readonly Shard[]) {
    this.all = shards;
  }

  /** The shard of shared records, such as assistants. */
  get home(): Shard {
    return this.all[0] as Shard;
  }

  of(name: string): Shard {
    return this.all[shardOf(name, this.all.length)] as Shard;
  }

  /** The shard for something new that may be in any shard. */
  next(): Shard {
    this.#last = (this.#last + 1) % this.all.length;
    return this.all[this.#last] as Shard;
  }

  /** These functions of a part of the service, each called in the shard of its thread. */
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
