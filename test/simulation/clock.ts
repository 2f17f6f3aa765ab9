import type { Clock } from "../../src/ports/clock.ts";

/** A clock that stands still until it is advanced. */
export class SimulatedClock implements Clock {
  #wall: number;
  #mono = 0;

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#wall = start;
  }

  now(): number {
    return Math.floor(this.#wall);
  }

  mono(): number {
    return this.#mono;
  }

  /** Advances both clocks. It fires no timers: the scheduler's own `advance` does. */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`time does not go back by ${ms} ms`);
    this.#wall += ms;
    this.#mono += ms;
  }

  /** Sets the wall clock forward or back; the monotonic clock does not change. */
  jump(ms: number): void {
    this.#wall += ms;
  }
}
