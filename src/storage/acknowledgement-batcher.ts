import type { Clock } from "../ports/clock.ts";
import type { Scheduler } from "../ports/scheduler.ts";

/** Milliseconds that the acknowledgements of one turn of the event loop may take. */
const BUDGET_MS = 15;
/** The smallest number of acknowledgements in a batch, however long they take. */
const MIN_BATCH = 8;

/**
 * Acknowledges stored writes: resolves their promises, after which their runs continue. The writes are acknowledged in batches, each in a
 * turn of the event loop of its own. One acknowledgement takes 0.2 ms to several milliseconds: all writes of one commit at once blocked the
 * event loop for 80 ms.
 *
 * The size of a batch is computed from the durations of earlier batches, so that a batch takes about {@link BUDGET_MS}.
 */
export class AcknowledgementBatcher {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  /** Milliseconds that one acknowledgement is expected to take; 0: not yet known. */
  #expectedMs = 0;
  /** The size of the batch whose duration is being measured; 0: none. */
  #batchSize = 0;
  /** When the batch of {@link #batchSize} started, in milliseconds of the monotonic clock. */
  #batchStart = 0;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Calls `acknowledgeOne` with each index from 0 to `count` - 1. Resolves in the same turn of the event loop as the last call. */
  async acknowledge(count: number, acknowledgeOne: (index: number) => void): Promise<void> {
    for (let acknowledged = 0; acknowledged < count;) {
      if (acknowledged > 0) {
        await new Promise<void>(this.#later);
        this.measure();
      }
      const most =
        this.#expectedMs === 0 ? count : Math.max(MIN_BATCH, Math.floor(BUDGET_MS / this.#expectedMs));
      const end = Math.min(count, acknowledged + most);
      this.#batchSize = end - acknowledged;
      this.#batchStart = this.#clock.mono();
      while (acknowledged < end) acknowledgeOne(acknowledged++);
    }
  }

  /** Measures how long a batch took. Called in the turn of the event loop after the batch. */
  measure(): void {
    if (this.#batchSize === 0) return;
    const took = (this.#clock.mono() - this.#batchStart) / this.#batchSize;
    // The expected time rises at once and falls slowly, because batches differ: acknowledging a run's end costs little, but acknowledging a
    // run's start runs nodes. With a hundred runs, batches of ends alternate with batches of starts.
    this.#expectedMs = Math.max(took, this.#expectedMs + (took - this.#expectedMs) / 8);
    this.#batchSize = 0;
  }

  /**
   * Discards the measurement of the last batch. Called when the committer becomes idle, because the measured time would include idle time.
   */
  skipMeasure(): void {
    this.#batchSize = 0;
  }

  /**
   * Waits two turns of the event loop, so that the measured time includes work that the acknowledged runs deferred to the
   * next turn.
   */
  readonly #later = (resolve: () => void): void => this.#scheduler.soon(() => this.#scheduler.soon(resolve));
}
