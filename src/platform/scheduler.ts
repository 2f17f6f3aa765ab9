import type { Scheduler } from "../ports/scheduler.ts";

/** Milliseconds: the longest delay of a timer. Node fires a timer with a longer delay at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export const systemScheduler: Scheduler = {
  soon(task, isLast = false) {
    // A call with `isLast` is made in a promise callback. From there, `nextTick` runs only after all queued promise callbacks, so `task` is
    // queued behind the tasks that these callbacks schedule.
    if (isLast) process.nextTick(setImmediate, task);
    else setImmediate(task);
  },

  after(ms, task, isAwaited = false) {
    let timer: NodeJS.Timeout;
    const wait = (remaining: number) => {
      const next = remaining > MAX_DELAY_MS ? () => wait(remaining - MAX_DELAY_MS) : task;
      timer = setTimeout(next, Math.min(remaining, MAX_DELAY_MS));
      if (!isAwaited) timer.unref();
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};
