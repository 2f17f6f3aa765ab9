import type { RunRecord } from "../../src/model/run.ts";
import type { SystemDeps } from "../thread-system.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";

/** Milliseconds that an attempt of a run may take; Infinity: as long as it likes. */
export function timeLimit({ kwargs }: RunRecord, { timeout }: SystemDeps["limits"]): number {
  return kwargs.timeout_seconds === undefined ? timeout : kwargs.timeout_seconds * 1_000;
}

/**
 * Calls `over` once an attempt of the run has taken as long as it may; null: it may take as long as it likes. Each attempt has the whole
 * time: what an earlier process took can be told by the wall clock alone, and one that is ahead would end the run at once.
 */
export function limitTime(
  run: RunRecord,
  { scheduler, limits }: Pick<SystemDeps, "scheduler" | "limits">,
  over: () => void,
): Cancel | null {
  const limit = timeLimit(run, limits);
  return limit === Infinity ? null : scheduler.after(limit, over);
}
