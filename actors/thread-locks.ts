import type { NewThreadValues } from "../src/model/thread.ts";
import { ReleasingMap } from "../src/model/releasing-map.ts";

/**
 * Locks of threads, by thread key. Only one request at a time creates, changes or deletes a thread. While a thread is
 * locked, no run is admitted to it.
 */
export class ThreadLocks {
  readonly #locks = new ReleasingMap<string, Promise<unknown>>();

  isLocked(name: string): boolean {
    return this.#locks.size > 0 && this.#locks.has(name);
  }

  /**
   * Runs the work while holding the thread's lock. The next request gets the lock when the work has settled,
   * so that the result of the work is stored by then.
   */
  async withLock<T>(name: string, work: () => Promise<T>): Promise<T> {
    for (let other = this.#locks.get(name); other !== undefined; other = this.#locks.get(name)) await other;
    const made = work();
    // Waiting requests need to know only that the work is over, and not its result.
    const over = made.then(
      () => undefined,
      () => undefined,
    );
    this.#locks.set(name, over);
    try {
      return await made;
    } finally {
      this.#locks.delete(name);
    }
  }
}

/** True if other requests may create the thread too. False for a temporary thread, because nobody else knows its id. */
export function isThreadIdShared(start: NewThreadValues | undefined): boolean {
  return start !== undefined && (start.temporary ?? null) === null;
}
