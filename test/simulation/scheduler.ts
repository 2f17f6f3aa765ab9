import type { Cancel, Scheduler } from "../../src/ports/scheduler.ts";
import type { SimulatedClock } from "./clock.ts";
import type { SimulatedRandom } from "./random.ts";

interface Timer {
  readonly due: number;
  readonly task: () => void;
}

/** Turns that make no promise callbacks and no timers; a server that spins would otherwise never end a test. */
const SPIN = 1_000_000;

/**
 * Turns and timers that run when they are told to, each with all its promise callbacks. With a `random`, the seed decides
 * what the port leaves open: which of two timers due at once comes first, whether ready work or a due timer does, and
 * which of the pending `external` completions is next. `soon` stays in the order of its calls.
 */
export class SimulatedScheduler implements Scheduler {
  readonly #clock: SimulatedClock;
  readonly #random: SimulatedRandom | undefined;
  readonly #ready: (() => void)[] = [];
  readonly #external: (() => void)[] = [];
  /** In the order in which they were set. */
  readonly #timers = new Set<Timer>();
  #stopped = false;

  constructor(clock: SimulatedClock, random?: SimulatedRandom) {
    this.#clock = clock;
    this.#random = random;
  }

  soon(task: () => void): void {
    if (!this.#stopped) this.#ready.push(task);
  }

  after(ms: number, task: () => void): Cancel {
    if (this.#stopped) return () => undefined;
    const timer = { due: this.#clock.mono() + Math.max(0, ms), task };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Work that the world completes, e.g. a disk: in any order among its like. */
  external(task: () => void): void {
    if (!this.#stopped) this.#external.push(task);
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Runs one piece of what is ready at this instant; false when nothing is. */
  step(): boolean {
    const sources: (() => (() => void) | undefined)[] = [];
    if (this.#ready.length > 0) sources.push(() => this.#ready.shift());
    if (this.#external.length > 0) {
      sources.push(() => this.#external.splice(this.#choose(this.#external.length), 1)[0]);
    }
    const due = this.#due();
    if (due.length > 0) sources.push(() => this.#fire(due[this.#choose(due.length)]));
    if (sources.length === 0) return false;
    sources[this.#choose(sources.length)]?.()?.();
    return true;
  }

  /** Runs all that is ready at this instant, and what comes of it. */
  async settle(): Promise<void> {
    await callbacks();
    for (let turns = 0; this.step(); turns++) {
      if (turns > SPIN) throw new Error("the work does not come to an end");
      await callbacks();
    }
  }

  /** Moves time on by `ms`, stopping at each timer on the way. */
  async advance(ms: number): Promise<void> {
    await this.settle();
    const until = this.#clock.mono() + ms;
    for (;;) {
      const next = this.next();
      if (next === undefined || next > until) break;
      this.#clock.advance(Math.max(0, next - this.#clock.mono()));
      await this.settle();
    }
    this.#clock.advance(Math.max(0, until - this.#clock.mono()));
  }

  /** Moves time on until no timer is left, or to the last one within `limit` ms. True: nothing is left. */
  async untilIdle(limit = 600_000): Promise<boolean> {
    await this.settle();
    const until = this.#clock.mono() + limit;
    for (;;) {
      const next = this.next();
      if (next === undefined) return true;
      if (next > until) return false;
      this.#clock.advance(Math.max(0, next - this.#clock.mono()));
      await this.settle();
    }
  }

  /** The process is killed: nothing that was asked for happens, and nothing can be asked for. */
  kill(): void {
    this.#stopped = true;
    this.#ready.length = 0;
    this.#external.length = 0;
    this.#timers.clear();
  }

  #choose(count: number): number {
    return count < 2 || this.#random === undefined ? 0 : this.#random.below(count);
  }

  /** When the next timer is due, by the monotonic clock. */
  next(): number | undefined {
    let next: number | undefined;
    for (const { due } of this.#timers) if (next === undefined || due < next) next = due;
    return next;
  }

  /** The timers that are due first, if they are due now. */
  #due(): Timer[] {
    const next = this.next();
    if (next === undefined || next > this.#clock.mono()) return [];
    return [...this.#timers].filter(({ due }) => due === next);
  }

  #fire(timer: Timer | undefined): (() => void) | undefined {
    if (timer !== undefined) this.#timers.delete(timer);
    return timer?.task;
  }
}

/** All promise callbacks that are ready, and those that they make ready. */
const callbacks = () => new Promise<void>((resolve) => setImmediate(resolve));
