import type { RunRecord } from "../../src/model/run.ts";
import type { SystemDeps } from "../port.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";

/** Milliseconds that a run may take from its first start; Infinity: as long as it likes. */
export function timeLimit({ kwargs }: RunRecord, { timeout }: SystemDeps["limits"]): number {
  return kwargs.timeout_seconds === undefined ? timeout : kwargs.timeout_seconds * 1_000;
}

/** Calls `over` once the run's time is up, the time of its earlier attempts counted; null: it has no limit. */
export function limitTime(
  run: RunRecord,
  { clock, scheduler, limits }: Pick<SystemDeps, "clock" | "scheduler" | "limits">,
  over: () => void,
): Cancel | null {
  const limit = timeLimit(run, limits);
  if (limit === Infinity) return null;
  // Nobody has counted the time between attempts but the clock on the wall, which may have been put back.
  const spent = run.attempt > 1 ? Math.max(0, clock.now() - (run.started_at ?? 0)) : 0;
  return scheduler.after(Math.max(0, limit - spent), over);
}
