import { uuid6, uuid6Time } from "../../src/model/ids.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Random } from "../../src/ports/random.ts";

/** Generates the ids of one thread's checkpoints. They always increase, even if the clock jumps back. */
export class CheckpointIdGenerator {
  readonly #clock: Clock;
  readonly #random: Random;
  #last = { ms: 0, tick: 0 };

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  next(step: number): string {
    const now = this.#clock.now();
    const { ms, tick } = this.#last;
    if (now > ms) this.#last = { ms: now, tick: 0 };
    else this.#last = tick < 9_999 ? { ms, tick: tick + 1 } : { ms: ms + 1, tick: 0 };
    return uuid6(this.#last.ms, this.#last.tick, step, this.#random.bytes(6));
  }

  /** Returns `made`, the id that a graph has chosen for a checkpoint, if it is above all earlier ids; else a new id. */
  above(made: string, step: number): string {
    const before = this.#last;
    this.saw(made);
    return this.#last === before ? this.next(step) : made;
  }

  /** Records an existing id, so that new ids are above it. */
  saw(checkpoint: string): void {
    const { ms, tick } = uuid6Time(checkpoint);
    if (ms > this.#last.ms || (ms === this.#last.ms && tick > this.#last.tick)) this.#last = { ms, tick };
  }
}
