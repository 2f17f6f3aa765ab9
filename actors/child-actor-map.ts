import type { AnyActorRef } from "./xstate.ts";

/**
 * A child actor in a {@link Table}, with the numbers of the versions that added it and removed it (Infinity:
 * it was not removed). A version is one instance of {@link ChildActorMap}.
 */
interface Entry {
  readonly actor: AnyActorRef;
  readonly came: number;
  left: number;
}

type NamedActor = readonly [name: string, actor: AnyActorRef];

/** The children of several versions of a {@link ChildActorMap}. The versions share this table. */
interface Table {
  readonly entries: Map<string, Entry>;
  /** The number of the latest version. A change to the latest version extends the table; a change to an older one copies it. */
  newest: number;
}

/**
 * The table is copied without the removed children when these outnumber the present children by more than this number.
 */
const MAX_EXTRA_REMOVED = 16;

/**
 * The child actors of a snapshot, by name, in the order in which they were added. An instance is immutable: a
 * change returns a new version. Versions share a table, and a change to the latest version only adds or marks
 * an entry of the table, so adding or removing one of thousands of tasks costs as much as with a few. Most
 * actors have at most one child, and need no table.
 */
export class ChildActorMap {
  readonly size: number;
  /** The only child. Undefined if there is no child, or if the children are in a table. */
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

  /** A version with these children added. Their names MUST differ from those of the present children. */
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

  /** A version without this child; the same version if it has no such child. */
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

  /** The table if this is its latest version, to which entries can be added without a copy; otherwise undefined. */
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
