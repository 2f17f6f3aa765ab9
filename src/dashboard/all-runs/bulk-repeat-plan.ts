import { getRun, getThread } from "../api/client.ts";
import { type ApiRunStatus, type FoundRun, hasRunEnded, type Thread } from "../api/records.ts";
import {
  findRepeatObstacle,
  isRepeatQueued,
  QUEUED_RUN_WARNING,
  questionsLostByRepeat,
  REPEAT_OBSTACLE_TEXTS,
  type RepeatObstacle,
} from "../live/repeat-obstacle.ts";
import { isNotFound } from "../api-errors.ts";
import { RUN_STATUS_TEXTS } from "../live/status-texts.ts";

type BulkRepeatObstacle = RepeatObstacle | "unfinished" | "deleted";

export interface RepeatPlan {
  /** For each selected run, the reason why it will not be run again, or null if it will. */
  readonly obstacles: ReadonlyMap<FoundRun, BulkRepeatObstacle | null>;
  /** The ids of the threads whose pending questions the new runs drop. */
  readonly unanswered: ReadonlySet<string>;
  /**
   * The ids of the threads in which a new run is queued behind a run in progress or another new run. If this other run asks a
   * question, the new run drops it.
   */
  readonly queued: ReadonlySet<string>;
}

/** Decides which of the selected runs will be run again. Reads each ended run and its thread. */
export async function planRepeat(runs: readonly FoundRun[]): Promise<RepeatPlan> {
  const threads = new Map<string, Promise<Thread>>();
  const unanswered = new Set<string>();
  /** The number of new runs by thread. */
  const counts = new Map<string, number>();
  const queued = new Set<string>();
  const find = async (found: FoundRun): Promise<BulkRepeatObstacle | null> => {
    if (!hasRunEnded(found)) return "unfinished";
    const { thread_id: id } = found;
    const reading = threads.get(id) ?? getThread(id);
    threads.set(id, reading);
    const records = await Promise.all([getRun(id, found.run_id), reading]).catch((cause: unknown) => {
      if (isNotFound(cause)) return null;
      throw cause;
    });
    if (records === null) return "deleted";
    const [run, thread] = records;
    if (questionsLostByRepeat(run, thread).length > 0) unanswered.add(id);
    const obstacle = findRepeatObstacle(run, thread);
    if (obstacle !== null) return obstacle;
    const count = (counts.get(id) ?? 0) + 1;
    counts.set(id, count);
    if (isRepeatQueued(run, thread) || count > 1) queued.add(id);
    return null;
  };
  const obstacles = new Map(await Promise.all(runs.map(async (run) => [run, await find(run)] as const)));
  return { obstacles, unanswered, queued };
}

/** The text in the row of a run that was skipped by *Run again*, by the reason. */
export const REPEAT_SKIP_TEXTS: { readonly [O in BulkRepeatObstacle]: string } = {
  ...REPEAT_OBSTACLE_TEXTS,
  unfinished: "The run has not ended yet",
  deleted: "The run or its thread has been deleted",
};

export const runsToRepeat = ({ obstacles }: RepeatPlan): readonly FoundRun[] =>
  [...obstacles].filter(([, obstacle]) => obstacle === null).map(([run]) => run);

/**
 * Returns a text with the number of runs of each status that will run again, the numbers of skipped runs, and the
 * numbers of threads that lose a question, or may lose one.
 */
export function repeatSummary(plan: RepeatPlan): string {
  const runs = runsToRepeat(plan);
  const counted = (Object.keys(RUN_STATUS_TEXTS) as ApiRunStatus[]).flatMap((status) => {
    const count = runs.filter((run) => run.status === status).length;
    return count === 0 ? [] : [`${count} ${RUN_STATUS_TEXTS[status]}`];
  });
  const { obstacles, unanswered, queued } = plan;
  const unfinished = [...obstacles.values()].filter((obstacle) => obstacle === "unfinished").length;
  const others = obstacles.size - runs.length - unfinished;
  const left = [
    ...(others === 0 ? [] : [`${others} that cannot be run again`]),
    ...(unfinished === 0 ? [] : [`${unfinished} not ended yet`]),
  ];
  const lost =
    unanswered.size === 0
      ? ""
      : unanswered.size === 1
        ? " 1 thread waits for an answer: the new run drops the question."
        : ` ${unanswered.size} threads wait for an answer: the new runs drop the questions.`;
  const threads = `${queued.size} ${queued.size === 1 ? "thread" : "threads"}`;
  const later = queued.size === 0 ? "" : ` In ${threads}, new runs are queued. ${QUEUED_RUN_WARNING}`;
  const sum = `${new Intl.ListFormat("en-GB").format(counted)} ${runs.length === 1 ? "run" : "runs"} will run again.`;
  return `${sum}${left.length === 0 ? "" : ` Skipped: ${left.join(", ")}.`}${lost}${later}`;
}
