import type { Clock } from "../src/ports/clock.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";
import type { SystemLimits } from "./thread-system.ts";

/** A cell's place among those at rest: the cell itself holds it. */
export interface Place<C> {
  readonly cell: C;
  readonly since: number;
  before: Place<C> | null;
  after: Place<C> | null;
}

/** What can rest: a cell. */
interface Resting<C> {
  readonly alive: boolean;
  readonly runs: { readonly size: number };
  atRest: Place<C> | null;
}

/**
 * Threads at rest, the longest first. One timer for all: a timer for each would cost more than the thread. They are a chain: a
 * `Map` of thousands that loses its first entry with every run is searched for the next one through the gaps they left.
 */
export class Idle<C extends Resting<C>> {
  #oldest: Place<C> | null = null;
  #youngest: Place<C> | null = null;
  #size = 0;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #limits: SystemLimits;
  readonly #passivate: (cell: C) => boolean;
  #timer: Cancel | null = null;
  #passivated = 0;

  constructor(clock: Clock, scheduler: Scheduler, limits: SystemLimits, passivate: (cell: C) => boolean) {
    this.#clock = clock;
    this.#scheduler = scheduler;
    this.#limits = limits;
    this.#passivate = passivate;
  }

  get size(): number {
    return this.#size;
  }

  /** How many were let go. */
  get passivated(): number {
    return this.#passivated;
  }

  /** A cell may have come to rest, or have left it. */
  note(cell: C): void {
    this.drop(cell);
    if (!cell.alive || cell.runs.size > 0) return;
    this.#add(cell);
    const oldest = this.#oldest?.cell;
    // Not the one that has just come: somebody may be about to ask something of it.
    if (this.#size > this.#limits.maxIdle && oldest !== cell) this.#letGo(oldest);
    this.#timer ??= this.#scheduler.after(this.#limits.idle, () => this.#sweep());
  }

  drop(cell: C): void {
    const place = cell.atRest;
    if (place === null) return;
    const { before, after } = place;
    if (before === null) this.#oldest = after;
    else before.after = after;
    if (after === null) this.#youngest = before;
    else after.before = before;
    cell.atRest = null;
    // A link that is left would hold, once this place is in the old generation, all places that come after it.
    place.before = null;
    place.after = null;
    this.#size--;
  }

  stop(): void {
    this.#timer?.();
    this.#timer = null;
  }

  #add(cell: C): void {
    const before = this.#youngest;
    const place: Place<C> = { cell, since: this.#clock.mono(), before, after: null };
    if (before === null) this.#oldest = place;
    else before.after = place;
    this.#youngest = place;
    cell.atRest = place;
    this.#size++;
  }

  #letGo(cell: C | undefined): void {
    if (cell === undefined || !this.#passivate(cell)) return;
    this.drop(cell);
    this.#passivated++;
  }

  #sweep(): void {
    this.#timer = null;
    const now = this.#clock.mono();
    for (let place = this.#oldest; place !== null; place = this.#oldest) {
      const { cell, since } = place;
      const rested = now - since;
      if (rested < this.#limits.idle) {
        // Whole milliseconds: a fraction of one can be lost in the sum, and time would stand still.
        const left = Math.ceil(this.#limits.idle - rested);
        this.#timer = this.#scheduler.after(left, () => this.#sweep());
        return;
      }
      this.#letGo(cell);
      // It had a write in flight: it is looked at again with the youngest.
      if (cell.atRest === place) this.note(cell);
    }
  }
}
