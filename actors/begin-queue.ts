import type { Clock } from "../src/ports/clock.ts";
import type { Scheduler } from "../src/ports/scheduler.ts";

/** Milliseconds that one turn of the event loop may spend on beginning runs. */
const BUDGET_MS = 8;

/** Begins runs whose start is stored. */
export interface RunStartQueue {
  /** Calls `begin` later, to begin the run. `begin` MUST NOT throw, and MUST check whether the run may still begin. */
  add(begin: () => void): void;
}

/**
 * Begins each run in a later turn of the event loop than the one in which the run's start was stored, so that the HTTP
 * response is sent before a node computes. When many runs begin at once, other work gets a turn every few milliseconds.
 */
export class BeginQueue implements RunStartQueue {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  #waiting: (() => void)[] = [];
  #isScheduled = false;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  add(begin: () => void): void {
    this.#waiting.push(begin);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#scheduler.soon(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    const since = this.#clock.mono();
    let begun = 0;
    while (begun < waiting.length) {
      waiting[begun++]?.();
      if (this.#clock.mono() - since >= BUDGET_MS) break;
    }
    if (begun === waiting.length) return;
    this.#waiting = [...waiting.slice(begun), ...this.#waiting];
    this.#schedule();
  };
}

/** Holds runs back until all of them are released together. */
export class DeferredRunStarts implements RunStartQueue {
  readonly #starts: RunStartQueue;
  #deferredStarts: (() => void)[] = [];

  /** `starts`: the queue that gets the released runs. */
  constructor(starts: RunStartQueue) {
    this.#starts = starts;
  }

  add(begin: () => void): void {
    this.#deferredStarts.push(begin);
  }

  release(): void {
    for (const begin of this.#deferredStarts) this.#starts.add(begin);
    this.#deferredStarts = [];
  }
}
