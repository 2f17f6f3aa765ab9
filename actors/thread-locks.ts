import type { ThreadStart } from "../src/model/thread.ts";
import { ReleasingMap } from "../src/model/releasing-map.ts";

/**
 * Threads that are being made, changed or deleted, by name: one request at a time does so, whichever way it does, and no run is
 * admitted meanwhile.
 */
export class Making {
  readonly #under = new ReleasingMap<string, Promise<unknown>>();

  isUnderWay(name: string): boolean {
    return this.#under.size > 0 && this.#under.has(name);
  }

  /** Does the work once nobody else is at that thread. What it made is stored, or refused, before the next one looks. */
  async alone<T>(name: string, work: () => Promise<T>): Promise<T> {
    for (let other = this.#under.get(name); other !== undefined; other = this.#under.get(name)) await other;
    const made = work();
    // Who waits only wants to know that it is over.
    const over = made.then(
      () => undefined,
      () => undefined,
    );
    this.#under.set(name, over);
    try {
      return await made;
    } finally {
      this.#under.delete(name);
    }
  }
}

/** May others make the same thread? Of a temporary one nobody else knows the id. */
export function isShared(start: ThreadStart | undefined): boolean {
  return start !== undefined && (start.temporary ?? null) === null;
}
