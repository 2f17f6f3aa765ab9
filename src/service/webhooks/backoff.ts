const FIRST = 10_000;
const FACTOR = 3;
/** The longest a receiver may ask for, too. */
const LONGEST = 6 * 3_600_000;
/** Those that failed together do not come again together. */
const JITTER = 0.2;

/** Milliseconds until the next try, after `failed` of them (from 1); `luck` is from 0 to 1. */
export function backoff(failed: number, luck: number, asked = 0): number {
  const delay = Math.min(FIRST * FACTOR ** (failed - 1), LONGEST);
  const spread = delay * (1 - JITTER + 2 * JITTER * luck);
  return Math.round(Math.max(spread, Math.min(asked, LONGEST)));
}

/** What a `Retry-After` asks for in milliseconds: seconds, or a date. */
export function retryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}

/** Answers that say: this request will never be taken. All others, and no answer, may be different the next time. */
const FINAL: ReadonlySet<number> = new Set([400, 405, 410, 411, 413, 414, 415, 422, 431, 501, 505]);

/** What a status means. A redirect is not followed: it would lead past all that was checked. */
export function verdictOf(status: number): "delivered" | "again" | "never" {
  if (status >= 200 && status < 300) return "delivered";
  if (status >= 300 && status < 400) return "never";
  return FINAL.has(status) ? "never" : "again";
}
