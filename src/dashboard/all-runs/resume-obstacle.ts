import { findRuns, getStateWithoutValues } from "../api/client.ts";
import type { FoundRun } from "../api/records.ts";
import { isNotFound } from "../api-errors.ts";

/** Why a selected run is not resumed: see {@link RESUME_SKIP_TEXTS}. */
export type ResumeObstacle = "not-failed" | "gone-on" | "earlier" | "no-step" | "no-thread";

/** Returns why a run cannot be resumed, or null if it can. */
export async function findResumeObstacle(run: FoundRun): Promise<ResumeObstacle | null> {
  const { run_id, thread_id, status, is_latest } = run;
  if (status !== "error" && status !== "timeout") return "not-failed";
  if (!is_latest) return "gone-on";
  const head = getStateWithoutValues(thread_id).catch((cause: unknown) => {
    // A deleted thread must not keep the other selected runs from being resumed.
    if (isNotFound(cause)) return null;
    throw cause;
  });
  const [{ runs }, state] = await Promise.all([findRuns({ thread_id }, 1, null), head]);
  if (state === null) return "no-thread";
  if (runs[0]?.run_id !== run_id) return "gone-on";
  return state.next.length === 0 ? "no-step" : null;
}

/**
 * Returns, by run id, why a run is not resumed; null for a run that is resumed. Of several selected runs of a thread,
 * at most one is resumed.
 */
export async function resumeObstaclesByRun(
  runs: readonly FoundRun[],
  obstacleOf: (run: FoundRun) => Promise<ResumeObstacle | null> = findResumeObstacle,
): Promise<ReadonlyMap<string, ResumeObstacle | null>> {
  const found = await Promise.all(runs.map(async (run) => [run, await obstacleOf(run)] as const));
  const resumed = new Set(found.filter(([, obstacle]) => obstacle === null).map(([run]) => run.thread_id));
  return new Map(
    found.map(([run, obstacle]) => [
      run.run_id,
      obstacle === "gone-on" && resumed.has(run.thread_id) ? "earlier" : obstacle,
    ]),
  );
}

/** The text in the row of a run that was not resumed, by the reason. */
export const RESUME_SKIP_TEXTS: { readonly [O in ResumeObstacle]: string } = {
  "not-failed": "Skipped: the run did not fail",
  "gone-on": "Skipped: the thread has newer runs",
  earlier: "Skipped: a later run of this thread is resumed instead",
  "no-step": "Skipped: no task is pending",
  "no-thread": "Skipped: the thread is deleted",
};

/** For each obstacle, the words that follow the number of runs with this obstacle in {@link resumeSummary}. */
const COUNT_TEXTS: { readonly [O in ResumeObstacle]: string } = {
  "not-failed": "that did not fail",
  "gone-on": "whose thread has gone on with newer runs",
  earlier: "whose thread is resumed from its latest run instead",
  "no-step": "without a pending task",
  "no-thread": "whose thread is deleted",
};

/** Returns a text that says how many of the selected runs can be resumed, and how many cannot, by obstacle. */
export function resumeSummary(obstacles: ReadonlyMap<string, ResumeObstacle | null>): string {
  const all = [...obstacles.values()];
  const counted = Object.entries(COUNT_TEXTS).flatMap(([name, text]) => {
    const count = all.filter((one) => one === name).length;
    return count === 0 ? [] : [`${count} ${text}`];
  });
  const sum = `${resumableCount(obstacles)} of ${obstacles.size} selected can be resumed`;
  return counted.length === 0 ? `${sum}.` : `${sum}. Skipped: ${counted.join(", ")}.`;
}

export const resumableCount = (obstacles: ReadonlyMap<string, ResumeObstacle | null>): number =>
  [...obstacles.values()].filter((obstacle) => obstacle === null).length;
