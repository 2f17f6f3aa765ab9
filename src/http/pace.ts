import type { Clock } from "../ports/clock.ts";
import type { Scheduler } from "../ports/scheduler.ts";

/** Milliseconds of a turn that requests may begin in. */
const BUDGET = 15;
/** As many begin without a look at the clock. */
const FEW = 16;
/** As many are put off to one turn, most of the times more than fit. */
const MOST = 256;

/**
 * Lets requests begin as they come, until those of one turn have taken {@link BUDGET}: the others begin in the turns that follow,
 * in their order. When thousands come at once, the loop reads them all in one turn, and nobody else would be heard meanwhile.
 */
export class Pace {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  /** Begun in this turn; from {@link FEW} on it is known when the turn ends. */
  #begun = 0;
  /** When they began to; undefined: none has. */
  #since: number | undefined;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Calls `begin`: now, or when it is its turn. */
  take(begin: () => void): void {
    if (this.#waiting.length > 0) return void this.#waiting.push(begin);
    // Before it begins, which may fail: else no turn would end any more, and all who come would wait.
    if (++this.#begun === FEW) this.#scheduler.soon(this.#turned);
    if (this.#begun < FEW || this.#fits()) begin();
    else this.#waiting.push(begin);
  }

  #fits(): boolean {
    const now = this.#clock.mono();
    this.#since ??= now;
    return now - this.#since < BUDGET;
  }

  readonly #turned = (): void => {
    this.#since = undefined;
    const { length } = this.#waiting;
    // Who comes meanwhile waits behind them.
    this.#begun = length === 0 ? 0 : FEW + 1;
    if (length === 0) return;
    // One task for each: what it leads to at once comes before the next, and is counted.
    for (let i = Math.min(length, MOST); i > 0; i--) this.#scheduler.soon(this.#next);
    this.#scheduler.soon(this.#turned);
  };

  readonly #next = (): void => {
    if (this.#fits()) this.#waiting.shift()?.();
  };
}
