import type { Scheduler } from "../ports/scheduler.ts";

/** Node fires a timer with a longer delay than this at once. */
const LONGEST = 2 ** 31 - 1;

/** The event loop's turns and timers. */
export const systemScheduler: Scheduler = {
  soon(task) {
    setImmediate(task);
  },

  after(ms, task) {
    let timer: NodeJS.Timeout;
    const wait = (left: number) => {
      const next = left > LONGEST ? () => wait(left - LONGEST) : task;
      timer = setTimeout(next, Math.min(left, LONGEST));
      timer.unref();
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};
