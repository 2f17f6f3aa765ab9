import type { Clock } from "./clock.ts";
import type { Scheduler } from "./scheduler.ts";

/** The most milliseconds that all work of one budget may take in a turn of the event loop. */
const TURN_MS = 15;
/** Milliseconds after which one piece of long work yields to other work. */
const MAX_SLICE_MS = 4;
/** Bytes read or written after which one piece of long work yields to other work. */
const MAX_SLICE_BYTES = 256 * 1024;
/**
 * A turn of the event loop that took at least this many milliseconds is followed by a pause: twice the turn's length, but at most
 * MAX_PAUSE_MS.
 */
const LONG_TURN_MS = 2 * TURN_MS;
const MAX_PAUSE_MS = 100;
/**
 * From the request with this number on (counted from 1), the clock is checked before a request begins. Earlier requests begin at once,
 * unless older work waits.
 */
const UNTIMED_REQUESTS = 16;
/**
 * The most waiting tasks that are scheduled for one turn of the event loop. Usually the turn's time is used up before
 * this many tasks have run.
 */
const MAX_TASKS_PER_TURN = 256;

/**
 * A time budget for work in each turn of the event loop. Work that grows with the size of requests or of stored data uses a budget:
 * what does not fit into the turn waits for the following turns, so that other events are handled in between.
 *
 * Requests begin with {@link take}. Long work checks its {@link BudgetShare} after each item, so that a turn stays short however much work
 * there is. Waiting work of one tenant continues in order; the work of different tenants alternates.
 */
export class TimeBudget {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #waiting = new TenantQueues();
  /** True once long work has used this budget (see {@link share}). Until then, no pause follows a long turn. */
  #isLong = false;
  /**
   * The number of turns of the event loop that this budget has counted. A turn is counted only if {@link #watch} was called in it: turns
   * with only a few requests are not.
   */
  #turn = 0;
  /** True when {@link #turned} is already scheduled to run at the end of this turn. */
  #isWatched = false;
  /**
   * The number of requests that have begun since the end of the last counted turn (see {@link #turn}), which may be several turns of the
   * event loop ago. While older work waits, the number is set above {@link UNTIMED_REQUESTS}, so that the clock is checked before each new
   * request begins.
   */
  #begun = 0;
  /** Time on the monotonic clock, in milliseconds, at which the work of this turn began; undefined if there was none. */
  #since: number | undefined;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /**
   * Calls `begin` now or, if the time of this turn of the event loop is used up, in a later turn. `tenant`:
   * the tenant of the request; empty if it is not known.
   */
  take(tenant: string, begin: () => void): void {
    if (this.#waiting.size > 0) return this.wait(tenant, begin);
    // Schedules the end of the turn before `begin`, which may throw. If nothing ended the turn, all later requests would wait forever.
    if (++this.#begun === UNTIMED_REQUESTS) this.#watch();
    if (this.#begun < UNTIMED_REQUESTS || !this.#isOver(this.#clock.mono())) begin();
    else this.wait(tenant, begin);
  }

  /**
   * Returns the share of one long job of a tenant, such as a search. The job asks the share whether it has to wait for a
   * later turn of the event loop.
   */
  share(tenant = ""): BudgetShare {
    this.#isLong = true;
    return new BudgetShare(this, tenant);
  }

  /** Calls `go` in a later turn of the event loop. */
  wait(tenant: string, go: () => void): void {
    this.#waiting.push(tenant, go);
    this.#watch();
  }

  /**
   * Called by a {@link BudgetShare}. Returns the monotonic time in milliseconds, the number of the current turn (see {@link #turn}), and
   * whether the turn has used up its time (`isOver`).
   */
  checkTurn(): { readonly now: number; readonly turn: number; readonly isOver: boolean } {
    this.#watch();
    const now = this.#clock.mono();
    return { now, turn: this.#turn, isOver: this.#isOver(now) };
  }

  #isOver(now: number): boolean {
    return now - (this.#since ??= now) >= TURN_MS;
  }

  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#scheduler.soon(this.#turned);
  }

  /**
   * Ends a turn of the event loop. A long turn is followed by a pause, because a request needs several turns, and long
   * work would delay each of them. While clients of one tenant read large states, a run of another tenant waited 370 to
   * 440 ms with a pause as long as the turn, and 190 to 250 ms with a pause twice as long.
   */
  readonly #turned = (): void => {
    const took = this.#since === undefined || !this.#isLong ? 0 : this.#clock.mono() - this.#since;
    if (took < LONG_TURN_MS) this.#begin();
    // This timer keeps the process alive. Without it, a command such as `heddle check` would end here, in the middle of its work.
    else this.#scheduler.after(Math.min(2 * took, MAX_PAUSE_MS), this.#begin, true);
  };

  readonly #begin = (): void => {
    this.#isWatched = false;
    this.#turn++;
    this.#since = undefined;
    const { size } = this.#waiting;
    // If older work waits, the clock is checked before each new request of this turn.
    this.#begun = size === 0 ? 0 : UNTIMED_REQUESTS + 1;
    if (size === 0) return;
    // Each task gets a macrotask of its own, so its microtasks run before the next task begins, and their time counts for the budget.
    for (let i = Math.min(size, MAX_TASKS_PER_TURN); i > 0; i--) this.#scheduler.soon(this.#next);
    this.#watch();
  };

  readonly #next = (): void => {
    if (!this.#isOver(this.#clock.mono())) this.#waiting.shift()?.();
  };
}

/** The share of a {@link TimeBudget} that one piece of long work may use in the current turn of the event loop. */
export class BudgetShare {
  /**
   * True if this work alone took {@link MAX_SLICE_MS} or longer in the turn of the event loop in which {@link isSpent} was
   * last called.
   */
  isSlow = false;
  readonly #budget: TimeBudget;
  readonly #tenant: string;
  #turn = -1;
  #since = 0;
  #bytes = 0;

  constructor(budget: TimeBudget, tenant: string) {
    this.#budget = budget;
    this.#tenant = tenant;
  }

  /**
   * True when this share of the time budget is used up: then the caller MUST await {@link next}. Called after each item
   * of the work, with the item's `bytes`.
   */
  isSpent(bytes = 0): boolean {
    const { now, turn, isOver } = this.#budget.checkTurn();
    if (turn !== this.#turn) {
      this.#turn = turn;
      this.#since = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    this.isSlow = now - this.#since >= MAX_SLICE_MS;
    return isOver || this.isSlow || this.#bytes > MAX_SLICE_BYTES;
  }

  /** Waits for a turn of the event loop in which the work may go on. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#budget.wait(this.#tenant, resolve));
  }
}

/** A queue of waiting work for each tenant. {@link TenantQueues.shift} takes one piece of work from each queue in rotation. */
export class TenantQueues {
  readonly #byTenant = new Map<string, (() => void)[]>();
  size = 0;

  push(tenant: string, go: () => void): void {
    this.size++;
    const known = this.#byTenant.get(tenant);
    if (known === undefined) this.#byTenant.set(tenant, [go]);
    else known.push(go);
  }

  shift(): (() => void) | undefined {
    for (const [tenant, waiting] of this.#byTenant) {
      const first = waiting.shift();
      this.size--;
      if (waiting.length === 0) this.#byTenant.delete(tenant);
      else if (this.#byTenant.size > 1) {
        // Moves the tenant behind the other tenants.
        this.#byTenant.delete(tenant);
        this.#byTenant.set(tenant, waiting);
      }
      return first;
    }
    return undefined;
  }
}
