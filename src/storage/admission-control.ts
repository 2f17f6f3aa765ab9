import type { Scheduler } from "../ports/scheduler.ts";

/**
 * Writes that wait or are in flight while newcomers are let in: about a full batch. With 256 clients at once a run takes a fifth
 * less CPU than without such a limit; with half of it the disk is left without work.
 */
export const ROOM = 56;
/** Newcomers let in after each batch, however much is under way: they wait, but do not starve. */
const LEAST = 8;

/**
 * Those who would begin something new while much is under way. What is under way goes first: fewer runs are then worked on at
 * once, what each has made is still near at hand when it goes on, and garbage collections have little to carry over.
 */
export class Newcomers {
  readonly #scheduler: Scheduler;
  readonly #underWay: () => number;
  #held: (() => void)[] = [];

  /** `underWay`: how many writes wait or are in flight. */
  constructor(scheduler: Scheduler, underWay: () => number) {
    this.#scheduler = scheduler;
    this.#underWay = underWay;
  }

  /** Resolves when it is the caller's turn, in the order of the calls; undefined: at once. */
  wait(): Promise<void> | undefined {
    if (this.#held.length === 0 && this.#underWay() < ROOM) return undefined;
    return new Promise<void>((resolve) => this.#held.push(resolve));
  }

  /** To be called after each batch: lets in as many as there is room for. */
  letIn(): void {
    if (this.#held.length === 0) return;
    this.#free(Math.max(LEAST, ROOM - this.#underWay()));
    // Those who write nothing (they are refused) leave their room to others, whom no batch would let in.
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
