import type { Clock } from "../ports/clock.ts";
import type { Scheduler } from "../ports/scheduler.ts";

/** Milliseconds that one turn of the event loop may take for acknowledgements. */
const BUDGET = 15;
/** Acknowledgements that are always made in one turn, however long they take. */
const LEAST = 8;

/**
 * Acknowledges stored writes in batches. Each batch has as many as should finish within {@link BUDGET}, judged by the earlier ones. A
 * writer that is acknowledged continues its run, which takes between 0.2 ms and several. When all writers of one batch of streaming runs
 * were acknowledged at once, they blocked the event loop for 80 ms.
 */
export class AcknowledgementQueue {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  /** Milliseconds that one acknowledgement is expected to take. */
  #each = 0;
  /** The number of acknowledgements made in this turn. */
  #going = 0;
  /** When they started, in milliseconds of the monotonic clock. */
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
    // Uses the longest recent time. Some writers only record the result, others start to run; with a hundred runs, those that end and those
    // that start come in alternating batches.
    this.#each = Math.max(took, this.#each + (took - this.#each) / 8);
    this.#going = 0;
  }

  /** Called when the committer becomes idle: the duration of the last batch cannot be measured. */
  skipMeasure(): void {
    this.#going = 0;
  }

  /** Waits two turns, to include work that the writers deferred to the next turn. */
  readonly #later = (resolve: () => void): void => this.#scheduler.soon(() => this.#scheduler.soon(resolve));
}
