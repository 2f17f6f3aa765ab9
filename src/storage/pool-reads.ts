import { TenantQueues } from "../ports/time-budget.ts";

/**
 * Reads in Node's pool of four threads at a time. The others are for writes: a run stores its start and its end there, and would wait each time
 * behind every read of blocks with 14 MB that others have begun.
 */
const SLOTS = 2;

/** Bounds the reads in the threads of Node's pool. Those that wait begin by turns of their tenants. */
export class PoolReads {
  #running = 0;
  readonly #waiting = new TenantQueues();

  async run<T>(tenant: string, read: () => Promise<T>): Promise<T> {
    if (this.#running < SLOTS) this.#running++;
    // A read that ends leaves its place to the next.
    else await new Promise<void>((resolve) => this.#waiting.push(tenant, resolve));
    try {
      return await read();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
