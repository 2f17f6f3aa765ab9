import type { Clock } from "../ports/clock.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";

/** Milliseconds between two measurements. */
const SAMPLE_INTERVAL_MS = 100;
/** Milliseconds for which measuring continues after the last request for metrics. */
const MAX_UNASKED_MS = 5 * 60_000;

/**
 * Measures the lag of the event loop: how late a timer fires. Measuring begins with a request for metrics, and ends {@link MAX_UNASKED_MS}
 * after the last one.
 */
export class EventLoopLag {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  #observe: (seconds: number) => void = () => undefined;
  #asked = 0;
  #due = 0;
  #cancel: Cancel | null = null;
  #closed = false;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Starts or continues measuring. From now on, `observe` gets each lag in seconds, and an earlier `observe` no longer does. */
  readonly look = (observe: (seconds: number) => void): void => {
    this.#observe = observe;
    this.#asked = this.#clock.mono();
    if (this.#cancel === null && !this.#closed) this.#wait(this.#asked);
  };

  close(): void {
    this.#closed = true;
    this.#cancel?.();
    this.#cancel = null;
  }

  #wait(now: number): void {
    this.#due = now + SAMPLE_INTERVAL_MS;
    this.#cancel = this.#scheduler.after(SAMPLE_INTERVAL_MS, this.#tick);
  }

  readonly #tick = (): void => {
    this.#cancel = null;
    const now = this.#clock.mono();
    this.#observe(Math.max(0, now - this.#due) / 1_000);
    if (now - this.#asked < MAX_UNASKED_MS) this.#wait(now);
  };
}
