import type { Clock } from "./clock.ts";
import type { Scheduler } from "./scheduler.ts";

/** Milliseconds: the most that all work of one budget may take in a turn of the event loop. */
const TURN_MS = 15;
/** Milliseconds after which one piece of work yields to the others. */
const SLICE = 4;
/** Bytes read or written after which one piece of work yields to the others. */
const BYTES = 256 * 1024;
/** Milliseconds: a turn that took longer than `LONG` is followed by a pause of twice its length, at most `LONGEST_PAUSE`. */
const LONG = 2 * TURN_MS;
const LONGEST_PAUSE = 100;
/** Requests that begin in a turn without a check of the clock. */
const UNTIMED_REQUESTS = 16;
/** Waiting tasks that are scheduled in one turn at most. Usually the turn is over before that. */
const MAX_TASKS_PER_TURN = 256;

/**
 * A time budget for work in each turn of the event loop. All work that grows with the size of requests or of stored data uses one: work
 * that does not fit into the turn waits for the following turns, so that other events are handled in between.
 *
 * Requests begin with {@link take}. Long work checks its {@link BudgetShare} after each item, so that a turn takes no longer however much
 * work there is. Waiting work continues in order, round robin over the lanes (a lane is a tenant).
 */
export class TimeBudget {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #waiting = new TenantQueues();
  /** True when the budget is for long work, and not for requests that begin. */
  #isLong = false;
  /** Number of turns in which there was work. */
  #turn = 0;
  /** True when the end of this turn is scheduled. */
  #isWatched = false;
  /** Number of requests that have begun in this turn. */
  #begun = 0;
  /** Time at which the work of this turn began; undefined when there was none. */
  #since: number | undefined;

  constructor(clock: Clock, scheduler: Scheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Calls `begin` now, or in a later turn if this one is full. `tenant`: the tenant of the request, if it is known. */
  take(tenant: string, begin: () => void): void {
    if (this.#waiting.size > 0) return this.wait(tenant, begin);
    // Scheduled before `begin`, which may throw: otherwise no turn would end again, and all later requests would wait.
    if (++this.#begun === UNTIMED_REQUESTS) this.#watch();
    if (this.#begun < UNTIMED_REQUESTS || !this.#isOver(this.#clock.mono())) begin();
    else this.wait(tenant, begin);
  }

  /** Makes a share for one piece of long work of a tenant. */
  share(tenant = ""): BudgetShare {
    this.#isLong = true;
    return new BudgetShare(this, tenant);
  }

  /** Calls `go` in a later turn. */
  wait(tenant: string, go: () => void): void {
    this.#waiting.push(tenant, go);
    this.#watch();
  }

  /** The time and the number of the turn, for a share. `isOver`: the turn has used up its time. */
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
   * Ends a turn. A long turn is followed by a pause: a request needs several turns, and would be delayed by long work in each. With a pause
   * of the same length, a run of another tenant waited 370 to 440 ms beside clients that read large states; with twice that, 190 to 250.
   */
  readonly #turned = (): void => {
    const took = this.#since === undefined || !this.#isLong ? 0 : this.#clock.mono() - this.#since;
    if (took < LONG) this.#begin();
    // Keeps the process alive: a command such as `heddle check` would end here otherwise, in the middle of its work.
    else this.#scheduler.after(Math.min(2 * took, LONGEST_PAUSE), this.#begin, true);
  };

  readonly #begin = (): void => {
    this.#isWatched = false;
    this.#turn++;
    this.#since = undefined;
    const { size } = this.#waiting;
    // While work waits, new requests wait behind it.
    this.#begun = size === 0 ? 0 : UNTIMED_REQUESTS + 1;
    if (size === 0) return;
    // Each is a macrotask of its own: its microtasks run before the next one begins, and count for the budget.
    for (let i = Math.min(size, MAX_TASKS_PER_TURN); i > 0; i--) this.#scheduler.soon(this.#next);
    this.#watch();
  };

  readonly #next = (): void => {
    if (!this.#isOver(this.#clock.mono())) this.#waiting.shift()?.();
  };
}

/** The share of one piece of long work in the current turn. */
export class BudgetShare {
  /** True if this piece of work alone has taken long in the turn of the last {@link isSpent}. */
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

  /** True when the share is used up: then the caller MUST await {@link next}. Called after each item, with its `bytes`. */
  isSpent(bytes = 0): boolean {
    const { now, turn, isOver } = this.#budget.checkTurn();
    if (turn !== this.#turn) {
      this.#turn = turn;
      this.#since = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    this.isSlow = now - this.#since >= SLICE;
    return isOver || this.isSlow || this.#bytes > BYTES;
  }

  /** Resolves when the work may go on. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#budget.wait(this.#tenant, resolve));
  }
}

/** Waiting work by lane. It takes one item from each lane in turn. */
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
        // Moves the lane to the end.
        this.#byTenant.delete(tenant);
        this.#byTenant.set(tenant, waiting);
      }
      return first;
    }
    return undefined;
  }
}
