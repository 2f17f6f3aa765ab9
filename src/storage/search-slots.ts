/**
 * Searches of one tenant at a time. An iterator of LevelDB holds the block that it stands on, and keys of an index may share one with a value of
 * 14 MB: 120 searches at once took 1.6 GB, and Node's four threads, which read each block again, were busy for seconds.
 */
const SLOTS = 2;

/** Bounds how many searches of one tenant run at the same time. Others wait, in order. */
export class SearchSlots {
  /** The searches that wait, by tenant, for tenants whose slots are all taken. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #running = new Map<string, number>();

  async run<T>(tenant: string, search: () => Promise<T>): Promise<T> {
    const running = this.#running.get(tenant) ?? 0;
    if (running < SLOTS) this.#running.set(tenant, running + 1);
    else await new Promise<void>((resolve) => this.#queue(tenant).push(resolve));
    try {
      return await search();
    } finally {
      this.#leave(tenant);
    }
  }

  #queue(tenant: string): (() => void)[] {
    const queue = this.#waiting.get(tenant) ?? [];
    this.#waiting.set(tenant, queue);
    return queue;
  }

  /** Leaves the slot to the next search, if one waits. */
  #leave(tenant: string): void {
    const queue = this.#waiting.get(tenant);
    const next = queue?.shift();
    if (queue?.length === 0) this.#waiting.delete(tenant);
    if (next !== undefined) return next();
    const rest = (this.#running.get(tenant) ?? 1) - 1;
    if (rest === 0) this.#running.delete(tenant);
    else this.#running.set(tenant, rest);
  }
}
