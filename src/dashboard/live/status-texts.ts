import type { ApiRunStatus, ApiThreadStatus, Thread } from "../api/records.ts";
import { PAUSE_LABELS } from "./paused-run.ts";
import type { TaskStatus } from "./trace.ts";

/** The text for each status of a run. A paused run has the status `success`: see {@link pauseLabel}. */
export const RUN_STATUS_TEXTS: { readonly [S in ApiRunStatus]: string } = {
  success: "succeeded",
  error: "failed",
  timeout: "timed out",
  interrupted: "cancelled",
  running: "running",
  pending: "queued",
};

/** The text for a run or thread that waits for an answer or at a breakpoint, if it is not known which. */
export const WAITING_OR_PAUSED = "waiting or paused";

/** The text for each status of a thread. */
export const THREAD_STATUS_TEXTS: { readonly [S in ApiThreadStatus]: string } = {
  idle: "idle",
  busy: "busy",
  interrupted: WAITING_OR_PAUSED,
  error: "failed",
};

/**
 * Returns the text for the status of a thread. Its questions tell whether it waits for an answer or at a breakpoint.
 */
export function threadStatusText({ status, interrupts }: Pick<Thread, "status" | "interrupts">): string {
  if (status !== "interrupted") return THREAD_STATUS_TEXTS[status];
  return PAUSE_LABELS[Object.values(interrupts).flat().length > 0 ? "question" : "breakpoint"];
}

/** The text for each status of a task. */
export const TASK_STATUS_TEXTS: { readonly [S in TaskStatus]: string } = {
  waiting: "not started",
  running: "running",
  retrying: "retrying",
  done: "succeeded",
  // The question may have been answered since.
  interrupted: "asked a question",
  failed: "failed",
  stopped: "stopped",
};
