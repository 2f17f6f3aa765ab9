import type { DeliveryContent } from "../../model/webhook-delivery.ts";
import { toIso } from "../../model/time.ts";
import { apiRun } from "../api-records.ts";

/** The body of a delivery: the run's record as the API shows it, and its result. */
export function payloadOf({ run, values, waiting }: DeliveryContent, now: number): string {
  return JSON.stringify({
    ...apiRun(run, { isRunning: false, position: undefined }),
    run_started_at: run.started_at === null ? null : toIso(run.started_at),
    run_ended_at: run.ended_at === null ? null : toIso(run.ended_at),
    webhook_sent_at: toIso(now),
    values,
    // A paused run's pending interrupts: its status alone does not distinguish it from a finished run.
    ...(waiting !== null && { interrupts: waiting }),
    ...(run.error !== null && { error: run.error.message }),
  });
}
