import type { Scheduler } from "../src/ports/scheduler.ts";

/** Adapts the scheduler to XState's clock interface. */
export const createXStateClock = (scheduler: () => Scheduler) => ({
  setTimeout: (task: () => void, ms: number) => scheduler().after(ms, task),
  clearTimeout: (cancel: unknown) => (cancel as (() => void) | undefined)?.(),
});
