import { cancelRun, createRun, deleteRun, getRun } from "../api/client.ts";
import { type FoundRun, hasRunEnded, type Run } from "../api/records.ts";
import { errorMessage } from "../app/notices.ts";
import { repeatRequestOf, resumeRequestOf } from "../live/repeat-and-resume-requests.ts";

export type BulkRunAction = "resume" | "retry" | "cancel" | "delete";

export interface ActionResult {
  readonly isOk: boolean;
  readonly text: string;
  /** The run that the action started; absent if it started none. */
  readonly started?: Run;
}

/**
 * Carries out an action on one run. A run that the action starts gets `batch` in its metadata. Never rejects: errors
 * are in the result.
 */
export async function applyRunAction(
  action: BulkRunAction,
  run: FoundRun,
  batch: string,
): Promise<ActionResult> {
  const { thread_id: thread, run_id: id } = run;
  if (action === "cancel" ? hasRunEnded(run) : !hasRunEnded(run))
    return {
      isOk: false,
      text: hasRunEnded(run) ? "The run has already ended" : "The run has not ended yet",
    };
  const start = async (requestOf: (run: Run) => object) => {
    const request = requestOf(await getRun(thread, id));
    return createRun(thread, { ...request, metadata: { batch } });
  };
  try {
    switch (action) {
      case "resume":
        return { isOk: true, text: "Resumed", started: await start(resumeRequestOf) };
      case "retry":
        return { isOk: true, text: "Run again", started: await start(repeatRequestOf) };
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
