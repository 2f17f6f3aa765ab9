import type { ThreadRecord } from "../model/thread.ts";

/** Bytes of the records remembered, as they are stored, twice over: 8,000 small ones. In memory each takes some six times that. */
const MOST = 1024 * 1024;

interface Held {
  thread: ThreadRecord;
  size: number;
}

/**
 * Records of threads as they are stored, read or written a while ago: most runs come to a thread that has just been made, or has
 * just had another one. Two generations: when the younger is full, it takes the place of the older. To let go of the oldest one each
 * time would mean to look for it through the gaps that others left.
 */
export class Recent {
  #younger = new Map<string, Held>();
  #older = new Map<string, Held>();
  /** Bytes of the younger ones. */
  #size = 0;

  get(name: string): ThreadRecord | undefined {
    return (this.#younger.get(name) ?? this.#older.get(name))?.thread;
  }

  /** `size`: bytes of the record as it is stored. */
  set(name: string, thread: ThreadRecord, size: number): void {
    const held = this.#younger.get(name);
    if (held === undefined) {
      this.#younger.set(name, { thread, size });
      this.#size += size;
    } else {
      this.#size += size - held.size;
      held.thread = thread;
      held.size = size;
    }
    if (this.#size <= MOST) return;
    this.#older = this.#younger;
    this.#younger = new Map();
    this.#size = 0;
  }

  delete(name: string): void {
    this.#size -= this.#younger.get(name)?.size ?? 0;
    this.#younger.delete(name);
    this.#older.delete(name);
  }

  /** Nobody knows any more what is stored. */
  clear(): void {
    this.#younger = new Map();
    this.#older = new Map();
    this.#size = 0;
  }
}
