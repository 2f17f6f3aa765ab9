/** Cancels a timer. Does nothing when the timer has fired, or when called again. */
export type Cancel = () => void;

/** The only way to defer work and to start timers. Tests and the simulation replace it, so that they control the time. */
export interface Scheduler {
  /**
   * Runs `task` in a macrotask after the current turn of the event loop and its microtasks. Tasks run in the order of the calls. `isLast`
   * is for calls from a microtask: `task` then runs after all tasks that other microtasks of the same turn schedule.
   */
  soon(task: () => void, isLast?: boolean): void;
  /**
   * Runs `task` once after `ms` milliseconds. MUST NOT run it earlier if the delay is longer than 2^31-1 ms (Node's timers run it
   * immediately in this case). MUST NOT keep the process alive by itself, unless `isAwaited` is true, which means that `task` continues
   * work in progress.
   */
  after(ms: number, task: () => void, isAwaited?: boolean): Cancel;
}
