import type { Clock } from "../ports/clock.ts";
import type { Scheduler } from "../ports/scheduler.ts";

/** Milliseconds that one turn of the event loop may take for acknowledgements. */
const BUDGET = 15;
/** Acknowledgements made in one turn at least, however long they take. */
const LEAST = 8;

/**
 * Acknowledges stored writes in batches: each batch has as many as are expected to finish within {@link BUDGET}, according to the earlier
 * ones. A writer that is acknowledged continues its run, which takes between 0.2 ms and several. All at once, the writers of one batch of
 * streaming runs blocked the event loop for 80 ms.
 */
export class AcknowledgementQueue {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  /** Milliseconds that one acknowledgement is expected to take. */
  #each = 0;
  /** The number of acknowledgements made in this turn. */
  #going = 0;
  /** Monotonic milliseconds: when they started. */
  #since = 0;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Calls `notify` with 0 to `count` - 1. Resolves in the turn of the last call. */
  async acknowledge(count: number, acknowledgeOne: (index: number) => void): Promise<void> {
    for (let acknowledged = 0; acknowledged < count;) {
      if (acknowledged > 0) {
        await new Promise<void>(this.#later);
        this.measure();
      }
      const most = this.#each === 0 ? count : Math.max(LEAST, Math.floor(BUDGET / this.#each));
      const end = Math.min(count, acknowledged + most);
      this.#going = end - acknowledged;
      this.#since = this.#clock.mono();
      while (acknowledged < end) acknowledgeOne(acknowledged++);
    }
  }

  /** Called in the turn after a batch, to measure how long it took. */
  measure(): void {
    if (this.#going === 0) return;
    const took = (this.#clock.mono() - this.#since) / this.#going;
    // Takes the longest recent time. Some writers only note the result, others start to run; with a hundred runs, those that end and those
    // that start come in alternating batches.
    this.#each = Math.max(took, this.#each + (took - this.#each) / 8);
    this.#going = 0;
  }

  /** Called when the committer becomes idle: the time of the last batch cannot be measured. */
  skipMeasure(): void {
    this.#going = 0;
  }

  /** Waits two turns, so that work that the writers put off to the next turn is measured too. */
  readonly #later = (resolve: () => void): void => this.#scheduler.soon(() => this.#scheduler.soon(resolve));
}
