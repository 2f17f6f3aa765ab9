import { systemClock } from "../../../src/platform/clock.ts";
import { systemScheduler } from "../../../src/platform/scheduler.ts";
import type { Clock } from "../../../src/ports/clock.ts";
import type { Cancel, Scheduler } from "../../../src/ports/scheduler.ts";

/** Milliseconds. */
const LONG = 20_000;

interface LongTimer {
  readonly due: number;
  readonly task: () => void;
}

/** The system's time, which a test can put forward: long timers then fire at once. */
export class ShiftedTime {
  #shift: number;
  readonly #long: number;
  readonly #timers = new Set<LongTimer>();

  /**
   * @param shift milliseconds by which its clock is ahead
   * @param long milliseconds: shorter timers run in real time
   */
  constructor(shift = 0, long = LONG) {
    this.#shift = shift;
    this.#long = long;
  }

  readonly clock: Clock = {
    now: () => systemClock.now() + this.#shift,
    mono: () => systemClock.mono() + this.#shift,
  };

  readonly scheduler: Scheduler = {
    soon: (task, isLast) => systemScheduler.soon(task, isLast),
    after: (ms, task, isAwaited): Cancel => {
      if (ms < this.#long) return systemScheduler.after(ms, task, isAwaited);
      const timer = { due: this.clock.mono() + ms, task };
      this.#timers.add(timer);
      return () => void this.#timers.delete(timer);
    },
  };

  /** Puts the time forward, and fires the timers that are due by then. */
  advance(ms: number): void {
    this.#shift += ms;
    const now = this.clock.mono();
    const due = [...this.#timers].filter((timer) => timer.due <= now).sort((a, b) => a.due - b.due);
    for (const timer of due) if (this.#timers.delete(timer)) timer.task();
  }
}
