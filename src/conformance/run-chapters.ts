import { systemScheduler } from "../platform/scheduler.ts";
import type { Chapter, ConformanceCheck } from "./conformance-check.ts";
import type { RecordedConnection } from "./connect-sdk.ts";
import { MismatchError } from "./mismatch-error.ts";
import type { RecordedRequest } from "./recorded-fetch.ts";

/** The longest time that one check may take, in milliseconds. */
const CHECK_TIMEOUT_MS = 30_000;

export interface CheckResult {
  readonly chapter: string;
  readonly title: string;
  readonly holds: boolean;
  /** What differs. Absent if the check holds. */
  readonly difference?: {
    readonly message: string;
    /** The latest request of the check; null if it has sent none. */
    readonly request: RecordedRequest | null;
    readonly expected: unknown;
    readonly actual: unknown;
  };
}

/**
 * Runs checks one after the other, each over a new connection. Calls `report` as each check ends. `timeout`: the longest time for one
 * check, in milliseconds.
 */
export async function runChapters(
  chapters: readonly Chapter[],
  open: () => RecordedConnection,
  report: (result: CheckResult) => void,
  timeout = CHECK_TIMEOUT_MS,
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const { name, checks } of chapters)
    for (const check of checks) {
      // oxlint-disable-next-line no-await-in-loop -- concurrent checks would disturb each other's timing
      const result = { chapter: name, title: check.title, ...(await runCheck(check, open(), timeout)) };
      results.push(result);
      report(result);
    }
  return results;
}

async function runCheck(
  check: ConformanceCheck,
  connection: RecordedConnection,
  timeout: number,
): Promise<Pick<CheckResult, "holds" | "difference">> {
  let cancel: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    const why = `no answer in ${timeout / 1000} s`;
    const rejectLate = () => {
      const difference = new MismatchError(why, "an answer", why);
      reject(difference);
      // Aborts the requests of a check that takes too long, so that it does not continue during the next check.
      connection.recorded.stop(difference);
    };
    cancel = systemScheduler.after(timeout, rejectLate, true);
  });
  try {
    await Promise.race([check.run(connection), late]);
    return { holds: true };
  } catch (cause) {
    const request = connection.recorded.latest ?? null;
    const message = cause instanceof Error ? cause.message : String(cause);
    const { expected, actual } =
      cause instanceof MismatchError ? cause : { expected: "the request is served", actual: message };
    return { holds: false, difference: { message, request, expected, actual } };
  } finally {
    cancel();
  }
}
