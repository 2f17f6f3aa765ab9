import type { Scheduler } from "../ports/scheduler.ts";

/**
 * New work is admitted while fewer than this many writes are queued or in flight. With 256 concurrent clients, the limit saves a fifth of
 * the CPU of each run. A lower limit makes more batches: 0.036 batches a run with a limit of 56, 0.024 with 84.
 */
export const MAX_CONCURRENT_WRITES = 84;
/**
 * At least this many of the waiting callers are admitted after every batch, even if many writes are in flight, so that no caller waits
 * forever.
 */
const MIN_ADMITTED = 8;

/**
 * Admission control for new work. Writes of runs in progress go first, so that fewer runs are in progress at once. The data of these runs
 * then stays in the CPU caches, and less of it survives garbage collections.
 */
export class WriteAdmission {
  readonly #scheduler: Scheduler;
  readonly #underWay: () => number;
  #waiting: (() => void)[] = [];

  /** `underWay` returns the number of writes queued or in flight. */
  constructor(scheduler: Scheduler, underWay: () => number) {
    this.#scheduler = scheduler;
    this.#underWay = underWay;
  }

  /**
   * Waits until the caller is admitted; returns undefined if the caller is admitted at once. Callers are admitted in
   * the order of their calls.
   */
  wait(): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#underWay() < MAX_CONCURRENT_WRITES) return undefined;
    return new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Admits as many callers as there is capacity for, but at least {@link MIN_ADMITTED}. Called after each batch. Returns true if a caller
   * was waiting.
   */
  admit(): boolean {
    if (this.#waiting.length === 0) return false;
    this.#admitCallers(Math.max(MIN_ADMITTED, MAX_CONCURRENT_WRITES - this.#underWay()));
    // The admitted callers may write nothing, for example if their requests are refused. Then no batch follows that could admit the next
    // callers, so they are admitted in the next turn of the event loop.
    if (this.#waiting.length > 0 && this.#underWay() === 0) this.#scheduler.soon(this.#admitAgain);
    return true;
  }

  admitAll(): void {
    this.#admitCallers(this.#waiting.length);
  }

  readonly #admitAgain = (): void => {
    if (this.#underWay() === 0) this.admit();
  };

  #admitCallers(count: number): void {
    for (const admitted of this.#waiting.splice(0, count)) admitted();
  }
}
