import { type Candidate, doubtedOne, type Pages } from "./index-candidates.ts";
import { lastSegment, placeKey, within } from "./keys.ts";
import type { Kv } from "./kv.ts";

/** Where whoever is meant has to stand: under `own`, or with those that have too many members to have places, under `wide`. */
export type Room = readonly [own: string, wide?: string];

/**
 * Threads of which the ids are held in memory, to tell who is not among them by its key alone. More are not held: then
 * many fit, and one that does is soon met.
 */
const HELD = 4_096;
/** Keys that are looked for before a room is held; and what one costs, against the next key of a range. */
const PATIENCE = 200;
const LOOK = 3;

/** Tells, for one search, who stands in the rooms that its filter names: by keys, no record is read. */
export class Rooms {
  readonly #kv: Kv;
  readonly #held = new Map<string, Promise<ReadonlySet<string> | null>>();
  readonly #inhabited = new Map<string, Promise<boolean>>();

  constructor(kv: Kv) {
    this.#kv = kv;
  }

  /**
   * Of these those that stand in all rooms. `isPlaced`: they say when they were created, so that their keys there can be
   * looked for, one by one until that would have cost as much as to hold the whole room.
   */
  async *among(pages: Pages, rooms: readonly Room[], isPlaced: boolean): Pages {
    let asked = 0;
    let first = true;
    for await (const { found, seen } of pages) {
      let left = found;
      let looked = 0;
      // Where many fit, the page is full by then.
      for (const room of first ? [] : rooms) {
        const held = isPlaced && asked < PATIENCE ? null : await this.#members(room);
        if (held !== null) left = left.filter(({ thread }) => held.has(thread));
        else if (isPlaced) {
          const [own, wide] = room;
          const isWide = wide !== undefined && (await this.#isInhabited(wide));
          looked += left.length;
          left = left.filter((one) => this.#stands(own, one) || (isWide && this.#stands(wide, one)));
        }
      }
      if (first) left = left.map(doubtedOne);
      first = false;
      asked += looked;
      yield { found: left, seen: seen + LOOK * looked };
    }
  }

  #stands(prefix: string, { at, thread }: Candidate): boolean {
    return this.#kv.getSync(placeKey(prefix, at, thread)) !== undefined;
  }

  /** Does anybody stand there? Among those with many members hardly ever. */
  #isInhabited(prefix: string): Promise<boolean> {
    const known = this.#inhabited.get(prefix) ?? this.#hasKey(prefix);
    this.#inhabited.set(prefix, known);
    return known;
  }

  async #hasKey(prefix: string): Promise<boolean> {
    for await (const keys of this.#kv.keys({ ...within(prefix), limit: 1 })) if (keys.length > 0) return true;
    return false;
  }

  /** All threads in a room; null: too many to be held. */
  #members(room: Room): Promise<ReadonlySet<string> | null> {
    const [own] = room;
    const known = this.#held.get(own) ?? this.#readMembers(room);
    this.#held.set(own, known);
    return known;
  }

  async #readMembers(room: Room): Promise<ReadonlySet<string> | null> {
    const held = new Set<string>();
    for (const prefix of room) {
      if (prefix === undefined) continue;
      for await (const keys of this.#kv.keys(within(prefix))) {
        for (const key of keys) held.add(lastSegment(key));
        if (held.size > HELD) return null;
      }
    }
    return held;
  }
}
