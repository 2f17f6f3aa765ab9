import type { Clock } from "../../../src/ports/clock.ts";
import type { Cancel, Scheduler } from "../../../src/ports/scheduler.ts";
import type { SimulatedClock } from "../clock.ts";
import type { SimulatedRandom } from "../random.ts";
import type { SimulatedScheduler } from "../scheduler.ts";

/** The simulated world as all machines share it: its time, its randomness, and the work that is due. */
export interface Universe {
  readonly clock: SimulatedClock;
  readonly scheduler: SimulatedScheduler;
  readonly random: SimulatedRandom;
}

/**
 * The slowest and the fastest clock of a machine, in milliseconds per millisecond of the database's clock. The leases allow for clocks that
 * are slower by a sixth.
 */
const SLOWEST_RATE = 0.85;
const FASTEST_RATE = 1.15;

interface HeldTask {
  readonly isTimer: boolean;
  run(): void;
}

/** A computer with clocks of its own, which can be paused: then nothing on it runs, and its clocks go on. */
export class Machine implements Clock {
  readonly name: string;
  readonly universe: Universe;
  #wallOffset: number;
  /** The monotonic clock at the time `#since` of the world's clock. */
  #base: number;
  #since: number;
  #rate = 1;
  #held: HeldTask[] | undefined;

  constructor(name: string, universe: Universe) {
    this.name = name;
    this.universe = universe;
    this.#base = universe.random.below(1_000_000);
    this.#since = universe.clock.mono();
    this.#wallOffset = universe.clock.now() - this.#base + universe.random.below(2_000) - 1_000;
    this.drift();
  }

  now(): number {
    return Math.floor(this.#wallOffset + this.mono());
  }

  mono(): number {
    return this.#base + (this.universe.clock.mono() - this.#since) * this.#rate;
  }

  /** Milliseconds of the world's clock in which `ms` milliseconds pass on this machine. */
  trueMs(ms: number): number {
    return ms / this.#rate;
  }

  /** Changes the speed of both clocks. */
  drift(): void {
    this.#base = this.mono();
    this.#since = this.universe.clock.mono();
    const { random } = this.universe;
    const rates = [SLOWEST_RATE, FASTEST_RATE, SLOWEST_RATE + random.float() * (FASTEST_RATE - SLOWEST_RATE)];
    this.#rate = random.pick(rates);
  }

  /** Sets the wall clock forward or back. */
  jump(ms: number): void {
    this.#wallOffset += ms;
  }

  get isPaused(): boolean {
    return this.#held !== undefined;
  }

  pause(): void {
    this.#held ??= [];
  }

  /** Goes on. What came meanwhile runs in its order, but timers may run first, as in Node's event loop. */
  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    const isTimersFirst = this.universe.random.chance(0.5);
    const tasks = isTimersFirst ? held.toSorted((a, b) => Number(b.isTimer) - Number(a.isTimer)) : held;
    for (const task of tasks) this.universe.scheduler.soon(() => this.run(task));
  }

  run(task: HeldTask): void {
    if (this.#held === undefined) task.run();
    else this.#held.push(task);
  }
}

/** The timers of one process of a machine, by the machine's clock. Nothing of a dead process runs. */
export class ProcessScheduler implements Scheduler {
  readonly machine: Machine;
  #isDead = false;

  constructor(machine: Machine) {
    this.machine = machine;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  soon(task: () => void): void {
    this.machine.universe.scheduler.soon(() => this.run(task));
  }

  after(ms: number, task: () => void): Cancel {
    let isCancelled = false;
    const run = (): void => {
      if (!isCancelled) task();
    };
    const { machine } = this;
    const cancel = machine.universe.scheduler.after(machine.trueMs(ms), () => this.run(run, true));
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  external(task: () => void): void {
    this.machine.universe.scheduler.external(() => this.run(task));
  }

  /** Runs something that reaches the process from outside: at once, or when its machine goes on. */
  run(task: () => void, isTimer = false): void {
    this.machine.run({
      isTimer,
      run: () => {
        if (!this.#isDead) task();
      },
    });
  }

  kill(): void {
    this.#isDead = true;
  }
}
