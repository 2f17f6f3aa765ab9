import { invalidField } from "../model/errors.ts";
import type { CancelAction } from "../model/run.ts";

/**
 * Refuses a cancellation reason unless the action is `interrupt`. The reason is stored in the record of the run, and a run that is rolled
 * back has no record.
 * @throws ServiceError `validation.failed`
 */
export function checkCancelReason(action: CancelAction, reason: string | undefined): void {
  if (reason !== undefined && action !== "interrupt") {
    throw invalidField("reason", "is kept with an interrupted run: it goes with the action interrupt alone");
  }
}
