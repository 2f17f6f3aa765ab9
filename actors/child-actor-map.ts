import type { AnyActorRef } from "./xstate.ts";

/** A child actor in a {@link Table}. A version is one instance of {@link ChildActorMap}. */
interface Entry {
  readonly actor: AnyActorRef;
  /** The number of the version that added the child. */
  readonly came: number;
  /** The number of the version that removed the child; Infinity if none has. */
  left: number;
}

type NamedActor = readonly [name: string, actor: AnyActorRef];

/** The children of all versions of a {@link ChildActorMap} that share this table. */
interface Table {
  readonly entries: Map<string, Entry>;
  /** The number of the latest version. A change to the latest version extends the table; a change to an older one copies it. */
  newest: number;
}

/**
 * When the removed children in a table outnumber the present ones by more than this, the next removal copies the table
 * without them.
 */
const MAX_EXTRA_REMOVED = 16;

/**
 * The child actors of a snapshot, by name, in the order in which they were added. An instance is immutable: a change
 * returns a new version. Versions share a table, so adding or removing one of thousands of tasks costs as much as with
 * a few.
 */
export class ChildActorMap {
  readonly size: number;
  /**
   * The only child. Undefined if there is no child, or if the children are in a table. Most actors have at most one
   * child.
   */
  readonly #only: NamedActor | undefined;
  readonly #table: Table | undefined;
  readonly #version: number;

  constructor(size: number, only?: NamedActor, table?: Table, version = 0) {
    this.size = size;
    this.#only = only;
    this.#table = table;
    this.#version = version;
  }

  get(name: string): AnyActorRef | undefined {
    if (this.#table === undefined) return this.#only?.[0] === name ? this.#only[1] : undefined;
    const entry = this.#table.entries.get(name);
    return entry !== undefined && this.#has(entry) ? entry.actor : undefined;
  }

  *[Symbol.iterator](): Generator<NamedActor> {
    if (this.#only !== undefined) yield this.#only;
    for (const [name, entry] of this.#table?.entries ?? []) if (this.#has(entry)) yield [name, entry.actor];
  }

  names(most: number): readonly string[] {
    return this.#first(most, (name) => name);
  }

  first(most: number): readonly AnyActorRef[] {
    return this.#first(most, (_, actor) => actor);
  }

  #first<T>(most: number, what: (name: string, actor: AnyActorRef) => T): readonly T[] {
    const some: T[] = [];
    for (const [name, actor] of this) {
      if (some.length >= most) break;
      some.push(what(name, actor));
    }
    return some;
  }

  /** Returns a version with the children in `added`. The caller MUST NOT add a name that a present child has. */
  with(added: readonly NamedActor[]): ChildActorMap {
    const [first] = added;
    if (first === undefined) return this;
    if (this.size === 0 && added.length === 1) return new ChildActorMap(1, first);
    const newest = this.#newestTable;
    const isFree = newest !== undefined && added.every(([name]) => !newest.entries.has(name));
    const table = isFree ? newest : this.#copy();
    const came = ++table.newest;
    for (const [name, actor] of added) table.entries.set(name, { actor, came, left: Infinity });
    return new ChildActorMap(this.size + added.length, undefined, table, came);
  }

  /** A version without this child; the same instance if there is no such child. */
  without(name: string): ChildActorMap {
    if (this.get(name) === undefined) return this;
    if (this.size === 1) return NO_CHILD_ACTORS;
    const newest = this.#newestTable;
    const isCrowded = newest !== undefined && newest.entries.size > 2 * this.size + MAX_EXTRA_REMOVED;
    const table = newest === undefined || isCrowded ? this.#copy() : newest;
    const version = ++table.newest;
    const entry = table.entries.get(name);
    if (entry !== undefined) entry.left = version;
    return new ChildActorMap(this.size - 1, undefined, table, version);
  }

  #has({ came, left }: Entry): boolean {
    return came <= this.#version && this.#version < left;
  }

  /**
   * The table if this is its latest version; otherwise undefined. Only the latest version may change the table without
   * a copy.
   */
  get #newestTable(): Table | undefined {
    return this.#table?.newest === this.#version ? this.#table : undefined;
  }

  #copy(): Table {
    const entries = new Map<string, Entry>();
    for (const [name, actor] of this) entries.set(name, { actor, came: 0, left: Infinity });
    return { entries, newest: 0 };
  }
}

export const NO_CHILD_ACTORS = new ChildActorMap(0);
