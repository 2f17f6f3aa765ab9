import type { ThreadKey } from "../model/thread.ts";
import type { Clock } from "../ports/clock.ts";
import type { Journal } from "../ports/journal.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { RunLogRegistry } from "./run-log-registry.ts";

export interface ExpiryDeps {
  readonly journal: Pick<Journal, "expireEvents" | "expireOnce">;
  readonly runLogs: Pick<RunLogRegistry, "isRead">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Milliseconds after which the events of an ended run are deleted. */
  readonly ttl: number;
  /** Milliseconds after which the records of idempotency keys are deleted. */
  readonly repeats: number;
}

/** The default lifetime of events in milliseconds: a day. */
export const DEFAULT_EVENT_TTL = 86_400_000;

/** The maximum number of threads to check, or of idempotency keys to delete, in one batch. */
const ENTRIES_PER_BATCH = 100;
/** Milliseconds between batches, so that a search through many threads does not delay other work for long. */
const PAUSE_MS = 100;
/** Milliseconds. Limits of the time between two searches for expired events, which is a tenth of the events' lifetime. */
const MIN_INTERVAL_MS = 1_000;
const MAX_INTERVAL_MS = 3_600_000;

/** Deletes the events of runs that ended long ago, and old idempotency keys, at intervals in the background. */
export class EventExpiry {
  readonly #deps: ExpiryDeps;
  readonly #between: number;
  #cancel: Cancel = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
    this.#between = Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, deps.ttl / 10));
  }

  /** Starts the first search within a minute, so that even a server that restarts often deletes expired events. */
  start(): void {
    this.#after(Math.min(this.#between, 60_000), null);
  }

  /** Stops the expiry. Resolves when the batch in progress is done. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    return this.#working;
  }

  #after(ms: number, from: ThreadKey | null): void {
    if (this.#stopped) return;
    this.#cancel = this.#deps.scheduler.after(ms, () => {
      this.#working = this.#piece(from);
    });
  }

  async #piece(from: ThreadKey | null): Promise<void> {
    const { journal, runLogs, clock, ttl, repeats, logger } = this.#deps;
    try {
      // oxlint-disable-next-line no-await-in-loop -- a batch at a time, so that other work runs in between
      while (from === null && (await journal.expireOnce(clock.now() - repeats, ENTRIES_PER_BATCH)));
      const next = await journal.expireEvents(clock.now() - ttl, from, ENTRIES_PER_BATCH, (...run) =>
        runLogs.isRead(...run),
      );
      this.#after(next === null ? this.#between : PAUSE_MS, next);
    } catch (cause) {
      logger.warn("old events could not be deleted; retrying later", { error: String(cause) });
      this.#after(this.#between, null);
    }
  }
}
