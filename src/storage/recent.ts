import type { ThreadRecord } from "../model/thread.ts";
import { ReleasingMap } from "../model/releasing-map.ts";

/** Threads remembered. One request reads its thread two or three times; more are under way at once. */
const MOST = 512;

/** Records of threads as they are stored, read or written a moment ago. */
export class Recent {
  readonly #threads = new ReleasingMap<string, ThreadRecord>();

  get(name: string): ThreadRecord | undefined {
    return this.#threads.get(name);
  }

  set(name: string, thread: ThreadRecord): void {
    this.#threads.delete(name);
    this.#threads.set(name, thread);
    if (this.#threads.size <= MOST) return;
    const oldest = this.#threads.keys().next();
    if (!oldest.done) this.#threads.delete(oldest.value);
  }

  delete(name: string): void {
    this.#threads.delete(name);
  }

  /** Nobody knows any more what is stored. */
  clear(): void {
    this.#threads.clear();
  }
}
