import type { Eventually } from "./eventually.ts";
import type { Scheduler } from "./scheduler.ts";

/** The error of {@link withTimeLimit} when the time is over. */
export class TimeLimitError extends Error {
  override readonly name = "TimeLimitError";

  constructor(ms: number) {
    super(`it did not answer in ${ms / 1_000} s`);
  }
}

/**
 * Calls `work` and resolves with its result. `work` is not stopped when the time is over; its result is then ignored.
 * @throws TimeLimitError if there is no result after `ms` milliseconds; otherwise the error of `work`
 */
export function withTimeLimit<T>(scheduler: Scheduler, ms: number, work: () => Eventually<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = scheduler.after(ms, () => reject(new TimeLimitError(ms)));
    new Promise<T>((settle) => settle(work())).then(resolve, reject).finally(cancel);
  });
}
