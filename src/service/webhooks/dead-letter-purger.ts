import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Outbox } from "../../ports/outbox.ts";
import type { Cancel, Scheduler } from "../../ports/scheduler.ts";

/** Milliseconds after which a dead letter is deleted. */
export const DEAD_LETTER_TTL = 7 * 86_400_000;

/** The number of deliveries that are read at a time. */
const DELIVERIES_PER_READ = 100;
/** Milliseconds before a retry after a storage failure. */
const PAUSE_MS = 60_000;

interface Deps {
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** Deletes dead letters (deliveries that are not retried any more) after {@link DEAD_LETTER_TTL}. */
export class DeadLetterPurger {
  readonly #deps: Deps;
  #timer: Cancel | undefined;
  #stopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  start(): void {
    void this.#sweep();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.();
  }

  /** Schedules a deletion of expired dead letters in `ms`, unless one is scheduled already. */
  schedule(ms: number): void {
    if (this.#stopped || this.#timer !== undefined) return;
    this.#timer = this.#deps.scheduler.after(ms, () => {
      this.#timer = undefined;
      void this.#sweep();
    });
  }

  async #sweep(): Promise<void> {
    const { outbox, clock, logger } = this.#deps;
    try {
      for (;;) {
        const now = clock.now();
        const found = await outbox.dead(DELIVERIES_PER_READ);
        const over = found.filter(({ delivery }) => delivery.due <= now);
        for (const entry of over) {
          await outbox.change(entry, (d) => (d.status === "dead" && d.due <= now ? null : undefined), {
            durable: false,
          });
        }
        const next = found.find(({ delivery }) => delivery.due > now);
        if (next !== undefined) return this.schedule(next.delivery.due - now);
        if (over.length === 0 || this.#stopped) return;
      }
    } catch (error) {
      logger.warn("dead letters could not be deleted; retrying", { error: String(error) });
      this.schedule(PAUSE_MS);
    }
  }
}
