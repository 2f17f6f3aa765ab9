import type { ThreadKey } from "../model/thread.ts";
import type { Clock } from "../ports/clock.ts";
import type { Journal } from "../ports/journal.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { Hub } from "./hub.ts";

export interface ExpiryDeps {
  readonly journal: Pick<Journal, "expireEvents" | "expireOnce">;
  readonly hub: Pick<Hub, "isRead">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Milliseconds for which the events of a run that has ended are kept. */
  readonly ttl: number;
  /** Milliseconds for which a request is known when it comes again. */
  readonly repeats: number;
}

/** How long events are kept where nothing is said: a day. */
export const DEFAULT_TTL = 86_400_000;

/** Threads looked at in one piece, and the milliseconds between pieces: a pass over many is no burden. */
const PIECE = 100;
const PAUSE = 100;
/** Milliseconds between passes: a tenth of what events are kept for, within these. */
const SHORTEST = 1_000;
const LONGEST = 3_600_000;

/** Deletes the events of runs that ended long ago, and forgets requests of long ago, pass after pass in the background. */
export class Expiry {
  readonly #deps: ExpiryDeps;
  readonly #between: number;
  #cancel: Cancel = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
    this.#between = Math.min(LONGEST, Math.max(SHORTEST, deps.ttl / 10));
  }

  /** The first pass is soon: a server that is started often comes to it too. */
  start(): void {
    this.#after(Math.min(this.#between, 60_000), null);
  }

  /** Resolves once nothing of it is under way. */
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
    const { journal, hub, clock, ttl, repeats, logger } = this.#deps;
    try {
      // oxlint-disable-next-line no-await-in-loop -- piece by piece, so that others get their turn
      while (from === null && (await journal.expireOnce(clock.now() - repeats, PIECE)));
      const next = await journal.expireEvents(clock.now() - ttl, from, PIECE, (...run) => hub.isRead(...run));
      this.#after(next === null ? this.#between : PAUSE, next);
    } catch (cause) {
      logger.warn("old events could not be deleted; it is tried again later", { error: String(cause) });
      this.#after(this.#between, null);
    }
  }
}
