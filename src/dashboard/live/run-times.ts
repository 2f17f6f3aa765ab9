import type { FoundRun } from "../api/records.ts";

/** The times of a run, from which its duration and its time in the queue are computed. */
export type RunTimes = Pick<FoundRun, "created_at" | "started_at" | "ended_at">;

/**
 * Returns the milliseconds for which a run has been executed, without its time in the queue; null if it has not
 * started. `now`: epoch milliseconds, used for a run that has not ended.
 */
export function runDurationMs({ started_at, ended_at }: RunTimes, now: number): number | null {
  if (started_at === null) return null;
  return Math.max(0, (ended_at === null ? now : Date.parse(ended_at)) - Date.parse(started_at));
}

/**
 * Returns the milliseconds for which a run was queued until it started or was cancelled. `now`: epoch milliseconds,
 * used for a run that is still queued.
 */
export function queueTimeMs({ created_at, started_at, ended_at }: RunTimes, now: number): number {
  const end = started_at ?? ended_at;
  return Math.max(0, (end === null ? now : Date.parse(end)) - Date.parse(created_at));
}
