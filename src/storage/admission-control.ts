import type { Scheduler } from "../ports/scheduler.ts";

/**
 * Writes queued or in flight up to which new work is admitted: about one full batch. With 256 concurrent clients, this limit saves a fifth
 * of the CPU for each run; half of it leaves the disk idle at times.
 */
export const ROOM = 56;
/** Callers admitted after each batch at least, however much is in flight, so that none starves. */
const LEAST = 8;

/**
 * Admission control for new work. Writes of runs in progress go first. Then fewer runs are in progress at once, their data is still in the
 * caches when they continue, and less of it survives garbage collections.
 */
export class Newcomers {
  readonly #scheduler: Scheduler;
  readonly #underWay: () => number;
  #held: (() => void)[] = [];

  /** `underWay` returns the number of writes queued or in flight. */
  constructor(scheduler: Scheduler, underWay: () => number) {
    this.#scheduler = scheduler;
    this.#underWay = underWay;
  }

  /** Resolves when the caller is admitted, in the order of the calls; undefined means at once. */
  wait(): Promise<void> | undefined {
    if (this.#held.length === 0 && this.#underWay() < ROOM) return undefined;
    return new Promise<void>((resolve) => this.#held.push(resolve));
  }

  /** Admits as many callers as there is capacity for. Called after each batch. */
  letIn(): void {
    if (this.#held.length === 0) return;
    this.#free(Math.max(LEAST, ROOM - this.#underWay()));
    // Admitted callers may write nothing (their request is refused). Then no batch follows that would admit the next ones.
    if (this.#held.length > 0 && this.#underWay() === 0) this.#scheduler.soon(this.#again);
  }

  letInAll(): void {
    this.#free(this.#held.length);
  }

  readonly #again = (): void => {
    if (this.#underWay() === 0) this.letIn();
  };

  #free(count: number): void {
    for (const come of this.#held.splice(0, count)) come();
  }
}
