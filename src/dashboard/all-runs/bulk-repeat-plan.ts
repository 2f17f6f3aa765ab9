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

/** For each selected run, why it is not run again; null: it is. */
export type RepeatPlan = ReadonlyMap<FoundRun, BulkRepeatObstacle | null>;

/** Reads the selected runs, and the threads of those that can be run again only in some states of their threads. */
export async function planRepeat(runs: readonly FoundRun[]): Promise<RepeatPlan> {
  const find = async (found: FoundRun): Promise<BulkRepeatObstacle | null> => {
    if (!hasRunEnded(found)) return "unfinished";
    const run = await getRun(found.thread_id, found.run_id);
    return dependsOnThread(run) ? findRepeatObstacle(run, await getThread(run.thread_id)) : null;
  };
  return new Map(await Promise.all(runs.map(async (run) => [run, await find(run)] as const)));
}

/** The text in the row of a run that was not run again. */
export const LEFT_OUT_TEXTS: { readonly [O in BulkRepeatObstacle]: string } = {
  ...REPEAT_OBSTACLE_TEXTS,
  unfinished: "The run has not ended yet",
};

export const runsToRepeat = (plan: RepeatPlan): readonly FoundRun[] =>
  [...plan].filter(([, obstacle]) => obstacle === null).map(([run]) => run);

/** Says how many runs of each status are run again, and how many selected runs are not. */
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
