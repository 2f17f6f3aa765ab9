import type { RunRecord } from "../../src/model/run.ts";
import type { SystemDeps } from "../thread-system-interface.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";

/** Milliseconds that an attempt of a run may take; Infinity: no limit. */
export function timeLimitOf({ kwargs }: RunRecord, { timeout }: SystemDeps["limits"]): number {
  return kwargs.timeout_seconds === undefined ? timeout : kwargs.timeout_seconds * 1_000;
}

/**
 * Calls `onTimeout` when an attempt of the run has used up its time. Returns a function that cancels the timer; null:
 * there is no limit. Each attempt gets the whole limit, because the time of earlier attempts is known only from the
 * wall clock, which may have been set forward.
 */
export function startTimeLimit(
  run: RunRecord,
  { scheduler, limits }: Pick<SystemDeps, "scheduler" | "limits">,
  onTimeout: () => void,
): Cancel | null {
  const limit = timeLimitOf(run, limits);
  return limit === Infinity ? null : scheduler.after(limit, onTimeout);
}
