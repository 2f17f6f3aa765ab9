import type { FoundRun } from "../api/records.ts";

/** The times from which the duration of a run and its time in the queue are computed. */
export type RunTimes = Pick<FoundRun, "created_at" | "started_at" | "ended_at">;

/**
 * Returns how long a run has been executed, in milliseconds, without the time that it was queued; null: it has not
 * started. `now`: epoch milliseconds.
 */
export function runDurationMs({ started_at, ended_at }: RunTimes, now: number): number | null {
  if (started_at === null) return null;
  return Math.max(0, (ended_at === null ? now : Date.parse(ended_at)) - Date.parse(started_at));
}

/** Returns how long a run was queued until it started or was cancelled, in milliseconds. `now`: epoch milliseconds. */
export function queueTimeMs({ created_at, started_at, ended_at }: RunTimes, now: number): number {
  const end = started_at ?? ended_at;
  return Math.max(0, (end === null ? now : Date.parse(end)) - Date.parse(created_at));
}
