import type { ThreadOperations } from "../../actors/thread-system-interface.ts";
import { ServiceError } from "../model/errors.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";

export interface ThreadExpiryDeps {
  readonly journal: Pick<Journal, "whenWritable">;
  readonly catalog: Pick<Catalog, "dueThreads">;
  readonly threads: Pick<ThreadOperations, "expire">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Milliseconds between two searches for expired threads. */
  readonly interval: number;
}

/**
 * Milliseconds: the default time between two searches for expired threads. A thread is usually deleted or pruned at most this long after
 * its expiry.
 */
export const DEFAULT_THREAD_EXPIRY_INTERVAL = 300_000;

/** Milliseconds before the first search. The time is short, so that even a server that restarts often deletes expired threads. */
const FIRST_SWEEP_MS = 60_000;

/** The number of threads that are deleted or pruned in one batch. */
const THREADS_PER_BATCH = 20;
/** Milliseconds between two batches, so that a large number of expired threads does not burden the server. */
const PAUSE_MS = 20;

/**
 * Deletes or prunes expired threads in the background, at intervals. The expiry is stored and indexed: each search reads only the threads
 * that are due, and continues the work of an earlier process.
 */
export class ThreadExpiry {
  readonly #deps: ThreadExpiryDeps;
  #cancel: Cancel = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: ThreadExpiryDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#after(Math.min(this.#deps.interval, FIRST_SWEEP_MS));
  }

  /** Stops the expiry. Resolves when the batch in progress is done. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    return this.#working;
  }

  #after(ms: number, failed: ReadonlySet<string> = new Set()): void {
    if (this.#stopped) return;
    this.#cancel = this.#deps.scheduler.after(ms, () => {
      this.#working = this.#expireBatch(failed);
    });
  }

  /**
   * Deletes or prunes the expired threads that are due first. `failed`: the threads that this search has already failed to delete or prune.
   * They still come first in the index, so each batch reads that many more threads.
   */
  async #expireBatch(failed: ReadonlySet<string>): Promise<void> {
    const { journal, catalog, clock, interval, logger } = this.#deps;
    // The storage refuses every write. This search ends, and the next one begins after the usual interval.
    if (journal.whenWritable() !== undefined) return this.#after(interval);
    try {
      const now = clock.now();
      const due = await catalog.dueThreads(now, THREADS_PER_BATCH + failed.size);
      const passed = new Set(failed);
      for (const key of due) {
        if (this.#stopped) return;
        const name = `${key.tenant}/${key.thread}`;
        if (!passed.has(name) && !(await this.#expire(key))) passed.add(name);
      }
      if (due.length < THREADS_PER_BATCH + failed.size) this.#after(interval);
      else this.#after(PAUSE_MS, passed);
    } catch (cause) {
      logger.warn("expired threads could not be read; retrying later", {
        error: String(cause),
      });
      this.#after(interval);
    }
  }

  async #expire(key: ThreadKey): Promise<boolean> {
    const { journal, threads, logger } = this.#deps;
    try {
      await threads.expire(key);
      return true;
    } catch (cause) {
      // A client has deleted the thread since the search found it.
      if (cause instanceof ServiceError && cause.code === "thread.not_found") return true;
      if (!this.#stopped && journal.whenWritable() === undefined) {
        logger.warn("an expired thread could not be deleted; retrying later", {
          thread: key.thread,
          error: String(cause),
        });
      }
      return false;
    }
  }
}
