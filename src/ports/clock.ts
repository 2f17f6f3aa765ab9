/** All time. Nothing else may ask the system for it, so that a simulation can hold it still. */
export interface Clock {
  /** Wall time in epoch milliseconds, whole. May jump either way; for records and the wire. */
  now(): number;
  /** Monotonic milliseconds from an arbitrary start; for durations and deadlines. */
  mono(): number;
}
