import type { Clock } from "../src/ports/clock.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";
import type { Cell } from "./thread/cell.ts";
import type { SystemLimits } from "./port.ts";

/** Threads at rest, the longest first. One timer for all: a timer for each would cost more than the thread. */
export class Idle {
  readonly #since = new Map<Cell, number>();
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #limits: SystemLimits;
  readonly #passivate: (cell: Cell) => boolean;
  #timer: Cancel | null = null;
  #passivated = 0;

  constructor(clock: Clock, scheduler: Scheduler, limits: SystemLimits, passivate: (cell: Cell) => boolean) {
    this.#clock = clock;
    this.#scheduler = scheduler;
    this.#limits = limits;
    this.#passivate = passivate;
  }

  get size(): number {
    return this.#since.size;
  }

  /** How many were let go. */
  get passivated(): number {
    return this.#passivated;
  }

  /** A cell may have come to rest, or have left it. */
  note(cell: Cell): void {
    this.#since.delete(cell);
    if (!cell.alive || cell.runs.size > 0) return;
    this.#since.set(cell, this.#clock.mono());
    const oldest = this.#since.keys().next().value;
    // Not the one that has just come: somebody may be about to ask something of it.
    if (this.#since.size > this.#limits.maxIdle && oldest !== cell) this.#letGo(oldest);
    this.#timer ??= this.#scheduler.after(this.#limits.idle, () => this.#sweep());
  }

  drop(cell: Cell): void {
    this.#since.delete(cell);
  }

  stop(): void {
    this.#timer?.();
    this.#timer = null;
  }

  #letGo(cell: Cell | undefined): void {
    if (cell === undefined || !this.#passivate(cell)) return;
    this.#since.delete(cell);
    this.#passivated++;
  }

  #sweep(): void {
    this.#timer = null;
    const now = this.#clock.mono();
    for (const [cell, since] of this.#since) {
      const rested = now - since;
      if (rested < this.#limits.idle) {
        // Whole milliseconds: a fraction of one can be lost in the sum, and time would stand still.
        const left = Math.ceil(this.#limits.idle - rested);
        this.#timer = this.#scheduler.after(left, () => this.#sweep());
        return;
      }
      this.#letGo(cell);
      // It had a write in flight: it is looked at again with the youngest.
      if (this.#since.has(cell)) this.note(cell);
    }
  }
}
