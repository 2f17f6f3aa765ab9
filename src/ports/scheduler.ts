/** Ends a timer that has not fired; afterwards, and when called twice, it does nothing. */
export type Cancel = () => void;

/** The order of ready work, and every timer. */
export interface Scheduler {
  /** Runs `task` after the current turn and its promise callbacks, in the order of the calls. */
  soon(task: () => void): void;
  /**
   * Runs `task` once after `ms` milliseconds. MUST NOT fire early for delays beyond 2^31-1 ms (Node fires those at
   * once), and MUST NOT keep the process alive by itself.
   */
  after(ms: number, task: () => void): Cancel;
}
