import type { Clock } from "./clock.ts";

/**
 * A clock of epoch milliseconds that never jumps. It adds the time of the monotonic clock to the wall clock's time at its creation. It is
 * used for stored due times, such as the time of a webhook's next attempt: a change of the wall clock must not move them.
 */
export class MonotonicEpochClock {
  readonly #clock: Clock;
  readonly #origin: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#origin = clock.now() - clock.mono();
  }

  now(): number {
    return Math.round(this.#origin + this.#clock.mono());
  }
}
