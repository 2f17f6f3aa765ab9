/** Cancels a timer. Does nothing when the timer has fired, or when called again. */
export type Cancel = () => void;

/** The only way to defer work and to start timers. */
export interface Scheduler {
  /**
   * Runs `task` in a macrotask after the current turn of the event loop and its microtasks. Tasks run in the order of the calls. `isLast`
   * is for calls from a microtask: `task` then runs after all tasks that other microtasks of the same turn schedule.
   */
  soon(task: () => void, isLast?: boolean): void;
  /**
   * Runs `task` once after `ms` milliseconds. MUST NOT fire early for delays beyond 2^31-1 ms (Node fires those at once). MUST NOT keep the
   * process alive by itself, unless `isAwaited`: then `task` continues work that is in progress.
   */
  after(ms: number, task: () => void, isAwaited?: boolean): Cancel;
}
