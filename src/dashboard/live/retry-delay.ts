/** Milliseconds before the first new attempt. The delay doubles with each further attempt. */
const FIRST_RETRY_MS = 300;
/** The longest delay before a new attempt, in milliseconds. */
const MAX_RETRY_MS = 10_000;

/** Returns the milliseconds until the next attempt. `failures`: the number of attempts that failed before this one. */
export const retryDelay = (failures: number): number =>
  Math.min(FIRST_RETRY_MS * 2 ** failures, MAX_RETRY_MS);
