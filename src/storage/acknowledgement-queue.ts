import type { Clock } from "../ports/clock.ts";
import type { Scheduler } from "../ports/scheduler.ts";

/** Milliseconds that a turn may take which lets writers go on. */
const BUDGET = 15;
/** Told in one turn, however long they take. */
const LEAST = 8;

/**
 * Tells writers that what they wrote is stored: as many a turn as are likely to go on within {@link BUDGET}, by what those before
 * them took. Each goes on with its run, which takes a fifth of a millisecond or several: told all at once, those of a batch of runs
 * that stream kept the loop for 80 ms.
 */
export class Telling {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  /** Milliseconds that one of them may take. */
  #each = 0;
  /** Those who go on in this turn, and since when. */
  #going = 0;
  #since = 0;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Calls `tell` with 0 to `count` - 1. Resolves in the turn of the last one. */
  async tell(count: number, tell: (index: number) => void): Promise<void> {
    for (let told = 0; told < count;) {
      if (told > 0) {
        await new Promise<void>(this.#later);
        this.turned();
      }
      const most = this.#each === 0 ? count : Math.max(LEAST, Math.floor(BUDGET / this.#each));
      const end = Math.min(count, told + most);
      this.#going = end - told;
      this.#since = this.#clock.mono();
      while (told < end) tell(told++);
    }
  }

  /** The turn after the one in which the last of them went on. */
  turned(): void {
    if (this.#going === 0) return;
    const took = (this.#clock.mono() - this.#since) / this.#going;
    // Some only note what was stored, others begin to run: the longest of late counts. Those of a hundred runs come by turns, all that
    // end and all that begin.
    this.#each = Math.max(took, this.#each + (took - this.#each) / 8);
    this.#going = 0;
  }

  /** The next turn will not be told: the loop rests. */
  rested(): void {
    this.#going = 0;
  }

  /** Two turns on: what writers put off to the next one has its part in what they take. */
  readonly #later = (resolve: () => void): void => this.#scheduler.soon(() => this.#scheduler.soon(resolve));
}
