import type { ThreadRecord } from "../model/thread.ts";

/** Threads remembered, twice over. One request reads its thread two or three times; more are under way at once. */
const MOST = 512;

/**
 * Records of threads as they are stored, read or written a moment ago. Two generations: when the younger is full, it takes the
 * place of the older. To let go of the oldest one each time would mean to look for it through the gaps that others left.
 */
export class Recent {
  #younger = new Map<string, ThreadRecord>();
  #older = new Map<string, ThreadRecord>();

  get(name: string): ThreadRecord | undefined {
    return this.#younger.get(name) ?? this.#older.get(name);
  }

  set(name: string, thread: ThreadRecord): void {
    if (this.#younger.size >= MOST) {
      this.#older = this.#younger;
      this.#younger = new Map();
    }
    this.#younger.set(name, thread);
  }

  delete(name: string): void {
    this.#younger.delete(name);
    this.#older.delete(name);
  }

  /** Nobody knows any more what is stored. */
  clear(): void {
    this.#younger = new Map();
    this.#older = new Map();
  }
}
