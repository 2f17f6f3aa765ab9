import { getRun, getThread } from "../api/client.ts";
import { type ApiRunStatus, type FoundRun, hasRunEnded } from "../api/records.ts";
import {
  dependsOnThread,
  findRepeatObstacle,
  REPEAT_OBSTACLE_TEXTS,
  type RepeatObstacle,
} from "../live/repeat-obstacle.ts";
import { RUN_STATUS_TEXTS } from "../live/status-texts.ts";

type BulkRepeatObstacle = RepeatObstacle | "unfinished";

/** For each selected run, the reason why it will not be run again, or null if it will. */
export type RepeatPlan = ReadonlyMap<FoundRun, BulkRepeatObstacle | null>;

/**
 * Decides which of the selected runs will be run again. Reads each ended run, and its thread if the decision depends
 * on the thread's state.
 */
export async function planRepeat(runs: readonly FoundRun[]): Promise<RepeatPlan> {
  const find = async (found: FoundRun): Promise<BulkRepeatObstacle | null> => {
    if (!hasRunEnded(found)) return "unfinished";
    const run = await getRun(found.thread_id, found.run_id);
    return dependsOnThread(run) ? findRepeatObstacle(run, await getThread(run.thread_id)) : null;
  };
  return new Map(await Promise.all(runs.map(async (run) => [run, await find(run)] as const)));
}

/** The text in the row of a run that was skipped by *Run again*, by the reason. */
export const LEFT_OUT_TEXTS: { readonly [O in BulkRepeatObstacle]: string } = {
  ...REPEAT_OBSTACLE_TEXTS,
  unfinished: "The run has not ended yet",
};

export const runsToRepeat = (plan: RepeatPlan): readonly FoundRun[] =>
  [...plan].filter(([, obstacle]) => obstacle === null).map(([run]) => run);

/** Returns a text with the number of runs of each status that will run again, and the numbers of skipped runs. */
export function repeatSummary(plan: RepeatPlan): string {
  const runs = runsToRepeat(plan);
  const counted = (Object.keys(RUN_STATUS_TEXTS) as ApiRunStatus[]).flatMap((status) => {
    const count = runs.filter((run) => run.status === status).length;
    return count === 0 ? [] : [`${count} ${RUN_STATUS_TEXTS[status]}`];
  });
  const unfinished = [...plan.values()].filter((obstacle) => obstacle === "unfinished").length;
  const others = plan.size - runs.length - unfinished;
  const left = [
    ...(others === 0 ? [] : [`${others} that cannot be run again`]),
    ...(unfinished === 0 ? [] : [`${unfinished} not ended yet`]),
  ];
  const sum = `${new Intl.ListFormat("en-GB").format(counted)} runs will run again.`;
  return left.length === 0 ? sum : `${sum} Skipped: ${left.join(", ")}.`;
}
