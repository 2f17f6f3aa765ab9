import type { ThreadKeeping } from "../../actors/thread-system.ts";
import { ServiceError } from "../model/errors.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";

export interface ThreadExpiryDeps {
  readonly catalog: Pick<Catalog, "dueThreads">;
  readonly threads: Pick<ThreadKeeping, "expire">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Milliseconds between looks. */
  readonly interval: number;
}

/** Five minutes, where nothing is said: the least that a thread may outlive its time. */
export const DEFAULT_INTERVAL = 300_000;

/** The first look is soon: a server that is started often comes to it too. */
const FIRST = 60_000;

/** Threads taken up in one piece, and the milliseconds between pieces: a look that finds many is no burden. */
const PIECE = 20;
const PAUSE = 20;

/**
 * Does away with threads whose time is up, look after look in the background. When each is due is stored with it, so that a look
 * reads those alone, and what one process leaves the next one finds.
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
    this.#after(Math.min(this.#deps.interval, FIRST));
  }

  /** Resolves once nothing of it is under way. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    return this.#working;
  }

  #after(ms: number, failed: ReadonlySet<string> = new Set()): void {
    if (this.#stopped) return;
    this.#cancel = this.#deps.scheduler.after(ms, () => {
      this.#working = this.#piece(failed);
    });
  }

  /** `failed`: threads that could not be taken away in this look; they stay the first ones that are due. */
  async #piece(failed: ReadonlySet<string>): Promise<void> {
    const { catalog, clock, interval, logger } = this.#deps;
    try {
      const now = clock.now();
      const due = await catalog.dueThreads(now, PIECE + failed.size);
      const passed = new Set(failed);
      for (const key of due) {
        if (this.#stopped) return;
        const name = `${key.tenant}/${key.thread}`;
        if (!passed.has(name) && !(await this.#expire(key))) passed.add(name);
      }
      if (due.length < PIECE + failed.size) this.#after(interval);
      else this.#after(PAUSE, passed);
    } catch (cause) {
      logger.warn("threads whose time is up could not be looked for; it is tried again later", {
        error: String(cause),
      });
      this.#after(interval);
    }
  }

  async #expire(key: ThreadKey): Promise<boolean> {
    const { threads, logger } = this.#deps;
    try {
      await threads.expire(key);
      return true;
    } catch (cause) {
      // Somebody else has deleted it.
      if (cause instanceof ServiceError && cause.code === "thread.not_found") return true;
      if (!this.#stopped) {
        logger.warn("a thread whose time is up could not be taken away; it is tried again later", {
          thread: key.thread,
          error: String(cause),
        });
      }
      return false;
    }
  }
}
