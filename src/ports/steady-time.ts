import type { Clock } from "./clock.ts";

/**
 * Epoch milliseconds that pass evenly while the process lives: the wall clock as it was at the start, carried on by the monotonic one.
 * For moments that are stored and waited for, such as the next try of a webhook: a wall clock that is set meanwhile neither holds them
 * nor brings them early.
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
