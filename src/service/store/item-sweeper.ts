import type { Clock } from "../../ports/clock.ts";
import type { StoreItems } from "../../ports/store-items.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Cancel, Scheduler } from "../../ports/scheduler.ts";

export interface ItemSweeperDeps {
  readonly items: StoreItems;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Milliseconds between two searches for expired items. */
  readonly interval: number;
}

/** The number of items that are deleted at a time. */
const ITEMS_PER_BATCH = 200;

/** Deletes expired items of the store to free their space. Reads ignore expired items in any case. */
export class ItemSweeper {
  readonly #deps: ItemSweeperDeps;
  #cancel: Cancel = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: ItemSweeperDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#deps.scheduler.after(this.#deps.interval, () => {
      this.#working = this.#pass();
    });
  }

  /** Stops the sweeper. Resolves when the deletion in progress is done. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    return this.#working;
  }

  async #pass(): Promise<void> {
    try {
      while (!this.#stopped && (await this.#piece()) === ITEMS_PER_BATCH);
    } catch (cause) {
      this.#deps.logger.warn("expired items could not be deleted; retrying later", {
        error: String(cause),
      });
    }
    this.start();
  }

  async #piece(): Promise<number> {
    const { items, clock } = this.#deps;
    const now = clock.now();
    const due = (await items.expiring(ITEMS_PER_BATCH)).filter(({ expires_at }) => expires_at <= now);
    await Promise.all(
      due.map(({ tenant, namespace, key, expires_at }) =>
        items.change(tenant, [{ kind: "expire", namespace, key, expires_at }], { now, durable: false }),
      ),
    );
    return due.length;
  }
}
