/**
 * The source of time of a server. Code outside `src/platform` MUST NOT read the system's clock, so that a simulation
 * can control time.
 */
export interface Clock {
  /** Wall time: whole epoch milliseconds, for records and responses. It may jump forwards or backwards. */
  now(): number;
  /** Monotonic time: milliseconds from an arbitrary start, for durations and deadlines. */
  mono(): number;
}
