import type { Cancel, Scheduler } from "../../src/ports/scheduler.ts";
import type { SimulatedClock } from "./clock.ts";
import type { SimulatedRandom } from "./random.ts";

interface Timer {
  readonly due: number;
  readonly task: () => void;
}

/**
 * The largest number of turns without promise callbacks and timers; otherwise a server that spins would never end a
 * test.
 */
const SPIN = 1_000_000;

/**
 * A scheduler whose turns and timers run on command, each with all its promise callbacks. With a `random`, the seed
 * decides what the port leaves open: the order of two timers due at once, the order of ready work and a due timer, and
 * the order of pending `external` completions. `soon` keeps the order of its calls.
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

  /** Schedules a completion of the simulated world, such as a disk's. The order among such completions is open. */
  external(task: () => void): void {
    if (!this.#stopped) this.#external.push(task);
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Runs one piece of ready work; false if there is none. */
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

  /** Runs all ready work, and the work that it creates. */
  async settle(): Promise<void> {
    await callbacks();
    for (let turns = 0; this.step(); turns++) {
      if (turns > SPIN) throw new Error("the work does not come to an end");
      await callbacks();
    }
  }

  /** Advances time by `ms`, stopping at each timer on the way. */
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

  /** Advances time until no timer is left, or to the last one within `limit` ms. True: none is left. */
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

  /** The process is killed: no pending work runs, and no new work is accepted. */
  kill(): void {
    this.#stopped = true;
    this.#ready.length = 0;
    this.#external.length = 0;
    this.#timers.clear();
  }

  #choose(count: number): number {
    return count < 2 || this.#random === undefined ? 0 : this.#random.below(count);
  }

  /** The time of the next timer, by the monotonic clock. */
  next(): number | undefined {
    let next: number | undefined;
    for (const { due } of this.#timers) if (next === undefined || due < next) next = due;
    return next;
  }

  /** The earliest timers, if they are due now. */
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

/** Runs all ready promise callbacks, and those that they make ready. */
const callbacks = () => new Promise<void>((resolve) => setImmediate(resolve));
