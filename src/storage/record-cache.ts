import type { ThreadRecord } from "../model/thread.ts";

/**
 * The maximum size, in bytes, of the stored records in each of the two generations of the cache: about 16,000 small records. In memory, a
 * record takes about six times its stored size.
 */
const MAX_GENERATION_BYTES = 2 * 1024 * 1024;

interface CacheEntry {
  thread: ThreadRecord;
  size: number;
}

/**
 * A cache of thread records as they are stored. Most runs use a thread that was just created or had another run just before. The cache has
 * two generations: when the younger one is full, it replaces the older one. Evicting single entries would be slow, because a `Map` has to
 * skip its deleted entries to find the oldest one.
 */
export class RecordCache {
  #younger = new Map<string, CacheEntry>();
  #older = new Map<string, CacheEntry>();
  /** Bytes of the younger generation. */
  #size = 0;

  get(name: string): ThreadRecord | undefined {
    return (this.#younger.get(name) ?? this.#older.get(name))?.thread;
  }

  /** `size`: the bytes of the stored record. */
  set(name: string, thread: ThreadRecord, size: number): void {
    const found = this.#younger.get(name);
    if (found === undefined) {
      this.#younger.set(name, { thread, size });
      this.#size += size;
    } else {
      this.#size += size - found.size;
      found.thread = thread;
      found.size = size;
    }
    if (this.#size <= MAX_GENERATION_BYTES) return;
    this.#older = this.#younger;
    this.#younger = new Map();
    this.#size = 0;
  }

  delete(name: string): void {
    this.#size -= this.#younger.get(name)?.size ?? 0;
    this.#younger.delete(name);
    this.#older.delete(name);
  }

  /** Empties the cache. Called after a failed write, when it is unknown what is stored. */
  clear(): void {
    this.#younger = new Map();
    this.#older = new Map();
    this.#size = 0;
  }
}
