import { SmallMap } from "../src/model/small-map.ts";
import type { AnyActorRef } from "./xstate.ts";

/**
 * A child actor in a {@link Table}: the version that added it, and the version that removed it (Infinity: none yet).
 */
interface Entry {
  readonly actor: AnyActorRef;
  readonly came: number;
  left: number;
}

/** The children that several versions of one collection share. */
interface Table {
  readonly entries: SmallMap<string, Entry>;
  /** The number of the latest version. A change to the latest version extends the table; a change to an older one copies it. */
  newest: number;
}

/** The shared empty table, which is never written to. */
const NOBODY: Table = { entries: new SmallMap(), newest: 0 };

/** When the removed children outnumber the present ones by more than this, the table is copied without them. */
const SLACK = 16;

/**
 * The child actors of a snapshot, by name, in the order in which they were added. It is immutable: a change returns a new
 * version. Versions share a table, and a change to the latest version only adds an entry to it. So adding or removing one
 * of thousands of tasks costs as much as with a few.
 */
export class ChildActors {
  readonly size: number;
  readonly #table: Table;
  readonly #version: number;

  constructor(table: Table, version: number, size: number) {
    this.#table = table;
    this.#version = version;
    this.size = size;
  }

  get(name: string): AnyActorRef | undefined {
    const entry = this.#table.entries.get(name);
    return entry !== undefined && this.#has(entry) ? entry.actor : undefined;
  }

  *[Symbol.iterator](): Generator<readonly [name: string, actor: AnyActorRef]> {
    for (const [name, entry] of this.#table.entries) if (this.#has(entry)) yield [name, entry.actor];
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
  with(added: readonly (readonly [name: string, actor: AnyActorRef])[]): ChildActors {
    if (added.length === 0) return this;
    const free = added.every(([name]) => !this.#table.entries.has(name));
    const table = free && this.#isNewest ? this.#table : this.#copy();
    const came = ++table.newest;
    for (const [name, actor] of added) table.entries.set(name, { actor, came, left: Infinity });
    return new ChildActors(table, came, this.size + added.length);
  }

  /** A version without this child; the same version if it has no such child. */
  without(name: string): ChildActors {
    const there = this.#table.entries.get(name);
    if (there === undefined || !this.#has(there)) return this;
    if (this.size === 1) return NO_CHILD_ACTORS;
    const crowded = this.#table.entries.size > 2 * this.size + SLACK;
    const table = this.#isNewest && !crowded ? this.#table : this.#copy();
    const version = ++table.newest;
    const entry = table.entries.get(name);
    if (entry !== undefined) entry.left = version;
    return new ChildActors(table, version, this.size - 1);
  }

  #has({ came, left }: Entry): boolean {
    return came <= this.#version && this.#version < left;
  }

  get #isNewest(): boolean {
    return this.#table.newest === this.#version && this.#table !== NOBODY;
  }

  #copy(): Table {
    const entries = new SmallMap<string, Entry>();
    for (const [name, actor] of this) entries.set(name, { actor, came: 0, left: Infinity });
    return { entries, newest: 0 };
  }
}

export const NO_CHILD_ACTORS = new ChildActors(NOBODY, 0, 0);
