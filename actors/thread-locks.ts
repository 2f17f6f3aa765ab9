import type { ThreadCreation } from "../src/model/thread.ts";
import { ReleasingMap } from "../src/model/releasing-map.ts";

/**
 * Locks by thread name: one request at a time creates, changes or deletes a thread, and no run is admitted to it
 * meanwhile.
 */
export class ThreadLocks {
  readonly #locks = new ReleasingMap<string, Promise<unknown>>();

  isLocked(name: string): boolean {
    return this.#locks.size > 0 && this.#locks.has(name);
  }

  /**
   * Runs the work while holding the thread's lock. Its result is stored, or it has failed, before the next request
   * gets the lock.
   */
  async withLock<T>(name: string, work: () => Promise<T>): Promise<T> {
    for (let other = this.#locks.get(name); other !== undefined; other = this.#locks.get(name)) await other;
    const made = work();
    // Waiting requests need only know that the work is over, not its result.
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

/** False for a temporary thread: nobody else knows its id, so no other request can create it. */
export function isIdShared(start: ThreadCreation | undefined): boolean {
  return start !== undefined && (start.temporary ?? null) === null;
}
