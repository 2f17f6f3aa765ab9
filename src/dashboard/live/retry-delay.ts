/** Milliseconds until the first new attempt; doubled for each further one. */
const FIRST_RETRY_MS = 300;
/** Milliseconds: the longest pause before a new attempt. */
const MAX_RETRY_MS = 10_000;

/** Returns the milliseconds until the next attempt. `failures`: the number of attempts that failed before this one. */
export const retryDelay = (failures: number): number =>
  Math.min(FIRST_RETRY_MS * 2 ** failures, MAX_RETRY_MS);
