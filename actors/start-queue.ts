import type { Clock } from "../src/ports/clock.ts";
import type { Scheduler } from "../src/ports/scheduler.ts";

/** Milliseconds that one turn may spend on beginning runs. */
const BUDGET_MS = 8;

/**
 * Runs whose start is stored and that have yet to begin. Each begins in a later turn than its store is heard of, so that the answer to
 * who asked for it is on its way before a node computes: whoever waits for the storage goes on in that earlier turn. Where many begin at
 * once, the turns in between are for whatever else there is to do.
 */
export class StartQueue {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  #waiting: (() => void)[] = [];
  #isScheduled = false;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** `begin` MUST NOT throw, and looks itself whether the run may still begin. */
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
