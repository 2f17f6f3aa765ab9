/** Milliseconds before the first retry, without the random spread. */
const FIRST_DELAY_MS = 10_000;
const FACTOR = 3;
/** Milliseconds: the longest delay, without the random spread. A receiver cannot request a longer delay either. */
const MAX_DELAY_MS = 6 * 3_600_000;
/**
 * Each delay is changed at random by up to this fraction of its length, so that deliveries that failed together are not retried together.
 */
const JITTER = 0.2;

/**
 * Milliseconds until the next attempt of a delivery. `failed`: the number of failed attempts, from 1. `luck`: a random number from 0 to 1.
 * `asked`: the delay that the receiver requested, in milliseconds.
 */
export function webhookRetryDelay(failed: number, luck: number, asked = 0): number {
  const delay = Math.min(FIRST_DELAY_MS * FACTOR ** (failed - 1), MAX_DELAY_MS);
  const spread = delay * (1 - JITTER + 2 * JITTER * luck);
  return Math.round(Math.max(spread, Math.min(asked, MAX_DELAY_MS)));
}

/** Converts a `Retry-After` header, which is a number of seconds or a date, to milliseconds from `now`; 0 if there is no valid header. */
export function retryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}

/**
 * Error statuses (4xx and 5xx) after which a retry cannot help. After any other error status, and if there
 * was no response, the delivery is retried.
 */
const FINAL: ReadonlySet<number> = new Set([400, 405, 410, 411, 413, 414, 415, 422, 431, 501, 505]);

/**
 * The result of an attempt, by the status of the response; `again` means that the delivery is retried, `never` that it is given up.
 * Redirects are not followed: they would bypass the checks of the URL.
 */
export function attemptOutcomeOf(status: number): "delivered" | "again" | "never" {
  if (status >= 200 && status < 300) return "delivered";
  if (status >= 300 && status < 400) return "never";
  return FINAL.has(status) ? "never" : "again";
}
