import { invalidField } from "../model/errors.ts";
import type { CancelAction } from "../model/run.ts";

/** A rolled back run has no record that could hold the reason. @throws ServiceError `validation.failed` */
export function checkReason(action: CancelAction, reason: string | undefined): void {
  if (reason !== undefined && action !== "interrupt") {
    throw invalidField("reason", "is kept with an interrupted run: it goes with the action interrupt alone");
  }
}
