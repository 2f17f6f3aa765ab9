import type { Clock } from "./clock.ts";

/**
 * A clock of epoch milliseconds that never jumps: the wall clock at the start of the process, advanced by the monotonic clock. It is for stored
 * due times, such as that of a webhook's next attempt: a change of the wall clock must not delay or advance them.
 */
export class SteadyTime {
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
