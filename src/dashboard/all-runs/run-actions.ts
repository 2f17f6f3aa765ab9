import { cancelRun, createRun, deleteRun, getRun } from "../api/client.ts";
import { type FoundRun, isDone } from "../api/records.ts";
import { runHref } from "../app/page-location.ts";
import { errorMessage } from "../app/notices.ts";
import { repeatRequestOf } from "../threads/runs-tab.tsx";

export type BulkRunAction = "retry" | "cancel" | "delete";

/** The outcome of an action on one run. */
export interface ActionResult {
  readonly isOk: boolean;
  readonly text: string;
  /** The address of the page of the run that was started; absent if the action started none. */
  readonly href?: string;
}

/** Carries out an action on one run. Never rejects. */
export async function applyToRun(action: BulkRunAction, run: FoundRun): Promise<ActionResult> {
  const { thread_id: thread, run_id: id } = run;
  if (action === "cancel" ? isDone(run) : !isDone(run))
    return { isOk: false, text: isDone(run) ? "It has ended already" : "It has not ended yet" };
  try {
    switch (action) {
      case "retry": {
        const { run_id } = await createRun(thread, repeatRequestOf(await getRun(thread, id)));
        return { isOk: true, text: "Started again", href: runHref(thread, run_id) };
      }
      case "cancel":
        await cancelRun(thread, id, "interrupt");
        return { isOk: true, text: "Cancelled" };
      case "delete":
        await deleteRun(thread, id);
        return { isOk: true, text: "Deleted" };
      default:
        return action satisfies never;
    }
  } catch (cause) {
    return { isOk: false, text: errorMessage(cause) };
  }
}
