/** Milliseconds before the first retry. The delay doubles with each further retry. */
const FIRST_RETRY_MS = 300;
/** The longest delay before a retry, in milliseconds. */
const MAX_RETRY_MS = 10_000;

/**
 * Returns the milliseconds to wait before the next retry. `failures`: 0 after the first failed attempt, 1 after the
 * second, and so on.
 */
export const retryDelayMs = (failures: number): number =>
  Math.min(FIRST_RETRY_MS * 2 ** failures, MAX_RETRY_MS);
