import type { Clock } from "./clock.ts";
import type { Scheduler } from "./scheduler.ts";

/** Milliseconds of one turn of the event loop that work of one kind may take in all. */
const TURN = 15;
/** Milliseconds, and bytes read or written, after which one piece of work lets the others go on. */
const SLICE = 4;
const BYTES = 256 * 1024;
/** Milliseconds of work, some of which could not be divided, after which there is a pause of the same length, and at most how long. */
const LONG = 2 * TURN;
const LONGEST_PAUSE = 50;
/** As many begin without a look at the clock. */
const FEW = 16;
/** As many are put off to one turn, most of the times more than fit. */
const MOST = 256;

/**
 * What work may take of a turn of the event loop. Whatever grows with what a client sends, or with what is stored, is done by one:
 * what does not fit waits for the turns that follow, so that everybody else is heard in between.
 *
 * Requests {@link take} a place when they begin. Work that is long asks its {@link Share}, item by item, whether it may go on:
 * however many are at work, a turn takes no longer, and who waits goes on lane by lane (a lane is a tenant), each in order.
 */
export class Budget {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #waiting = new Lanes();
  /** It is one for long work, not one for requests that begin. */
  #isLong = false;
  /** Counts turns in which there was something to do. */
  #turn = 0;
  /** The end of this turn is waited for. */
  #isWatched = false;
  /** Begun in this turn. */
  #begun = 0;
  /** When the work of this turn began; undefined: there was none. */
  #since: number | undefined;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Calls `begin`: now, or when it is its turn. */
  take(begin: () => void): void {
    if (this.#waiting.size > 0) return this.wait("", begin);
    // Before it begins, which may fail: else no turn would end any more, and all who come would wait.
    if (++this.#begun === FEW) this.#watch();
    if (this.#begun < FEW || !this.#isOver(this.#clock.mono())) begin();
    else this.wait("", begin);
  }

  /** For one piece of long work of that tenant. */
  share(lane = ""): Share {
    this.#isLong = true;
    return new Share(this, lane);
  }

  /** Calls `go` in a later turn. */
  wait(lane: string, go: () => void): void {
    this.#waiting.push(lane, go);
    this.#watch();
  }

  /** Tells a share what time it is, and in which turn; `isOver`: nothing more fits into it. */
  look(): { readonly now: number; readonly turn: number; readonly isOver: boolean } {
    this.#watch();
    const now = this.#clock.mono();
    return { now, turn: this.#turn, isOver: this.#isOver(now) };
  }

  #isOver(now: number): boolean {
    return now - (this.#since ??= now) >= TURN;
  }

  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#scheduler.soon(this.#turned);
  }

  /** Several long turns one after another would each delay the same request: it takes some to come, to be read and answered. */
  readonly #turned = (): void => {
    const took = this.#since === undefined || !this.#isLong ? 0 : this.#clock.mono() - this.#since;
    if (took < LONG) this.#begin();
    else this.#scheduler.after(Math.min(took, LONGEST_PAUSE), this.#begin);
  };

  readonly #begin = (): void => {
    this.#isWatched = false;
    this.#turn++;
    this.#since = undefined;
    const { size } = this.#waiting;
    // Who comes meanwhile waits behind them.
    this.#begun = size === 0 ? 0 : FEW + 1;
    if (size === 0) return;
    // One task for each: what it leads to at once comes before the next, and is counted.
    for (let i = Math.min(size, MOST); i > 0; i--) this.#scheduler.soon(this.#next);
    this.#watch();
  };

  readonly #next = (): void => {
    if (!this.#isOver(this.#clock.mono())) this.#waiting.shift()?.();
  };
}

/** One piece of long work, and what it has had of its turn. */
export class Share {
  readonly #budget: Budget;
  readonly #lane: string;
  #turn = -1;
  #since = 0;
  #bytes = 0;

  constructor(budget: Budget, lane: string) {
    this.#budget = budget;
    this.#lane = lane;
  }

  /** Asked after each item, which took so many `bytes`: has it had its part? Then it MUST await {@link next}. */
  isSpent(bytes = 0): boolean {
    const { now, turn, isOver } = this.#budget.look();
    if (turn !== this.#turn) {
      this.#turn = turn;
      this.#since = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    return isOver || now - this.#since >= SLICE || this.#bytes > BYTES;
  }

  /** Resolves when it may go on. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#budget.wait(this.#lane, resolve));
  }
}

/** What waits, by lane: one of each lane in turn. */
class Lanes {
  readonly #lanes = new Map<string, (() => void)[]>();
  size = 0;

  push(lane: string, go: () => void): void {
    this.size++;
    const known = this.#lanes.get(lane);
    if (known === undefined) this.#lanes.set(lane, [go]);
    else known.push(go);
  }

  shift(): (() => void) | undefined {
    for (const [lane, waiting] of this.#lanes) {
      const first = waiting.shift();
      this.size--;
      if (waiting.length === 0) this.#lanes.delete(lane);
      else if (this.#lanes.size > 1) {
        // To the end of the line.
        this.#lanes.delete(lane);
        this.#lanes.set(lane, waiting);
      }
      return first;
    }
    return undefined;
  }
}
