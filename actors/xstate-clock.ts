import type { Scheduler } from "../src/ports/scheduler.ts";

/** The scheduler as XState asks for it. */
export const timersOf = (scheduler: () => Scheduler) => ({
  setTimeout: (task: () => void, ms: number) => scheduler().after(ms, task),
  clearTimeout: (cancel: unknown) => (cancel as (() => void) | undefined)?.(),
});
