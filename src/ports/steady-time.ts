import type { Clock } from "./clock.ts";

/**
 * Epoch milliseconds without jumps: the wall clock at the start of the process, advanced by the monotonic clock. For stored due times, such
 * as that of a webhook's next attempt, which a change of the wall clock must neither delay nor advance.
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
