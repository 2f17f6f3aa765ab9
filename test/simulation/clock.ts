import type { Clock } from "../../src/ports/clock.ts";

/** Time that stands still until it is moved. */
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

  /** Moves both on. A scheduler's timers are fired by the scheduler's own `advance`, not by this. */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`time does not go back by ${ms} ms`);
    this.#wall += ms;
    this.#mono += ms;
  }

  /** The wall clock is set: forth or back, the monotonic one does not move. */
  jump(ms: number): void {
    this.#wall += ms;
  }
}
