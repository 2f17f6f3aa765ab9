import { listRuns, listThreadRunsByStatus } from "../api/client.ts";
import type { Run } from "../api/records.ts";

/**
 * The number of newest runs that are read. If a thread has more runs, the same number is read from the front of its
 * queue.
 */
const MAX_NEWEST_RUNS = 100;
/**
 * The limit for the read of the queued runs that will start next. It is larger than {@link MAX_NEWEST_RUNS}, because
 * more runs may have been queued since the queue was counted.
 */
const MAX_QUEUE_PAGE = 1_000;

/** The runs of a thread that the dashboard shows. */
export interface ThreadRuns {
  /**
   * The newest runs, the running ones, and the queued runs that will start next, newest first. In a long queue, the
   * runs between are left out.
   */
  readonly runs: readonly Run[];
  /** The queued runs, in the order in which they will start. In a long queue, the runs at the end are left out. */
  readonly queue: readonly Run[];
  /** The number of queued runs, including those that `queue` leaves out. */
  readonly queued: number;
  /** Whether the thread may have runs that `runs` does not contain. */
  readonly hasMore: boolean;
}

export const NO_RUNS: ThreadRuns = { runs: [], queue: [], queued: 0, hasMore: false };

/**
 * Reads the newest runs of a thread. If the thread has {@link MAX_NEWEST_RUNS} or more, also reads its running runs and
 * the queued runs that will start next.
 */
export async function readThreadRuns(id: string, signal?: AbortSignal): Promise<ThreadRuns> {
  const newest = await listRuns(id, MAX_NEWEST_RUNS, signal);
  if (newest.length < MAX_NEWEST_RUNS) {
    const queue = newest.filter(({ status }) => status === "pending").toReversed();
    return { runs: newest, queue, queued: queue.length, hasMore: false };
  }
  const [running, pending] = await Promise.all([
    listThreadRunsByStatus(id, "running", { limit: MAX_NEWEST_RUNS, offset: 0 }, signal),
    listThreadRunsByStatus(id, "pending", { limit: MAX_NEWEST_RUNS, offset: 0 }, signal),
  ]);
  const offset = Math.max(0, pending.total - MAX_NEWEST_RUNS);
  const oldest =
    offset === 0
      ? pending
      : await listThreadRunsByStatus(id, "pending", { limit: MAX_QUEUE_PAGE, offset }, signal);
  const open = [...oldest.runs, ...running.runs];
  // For a run that was read twice, the later result is kept.
  const byId = new Map([...newest, ...open].map((run) => [run.run_id, run]));
  const runs = [...byId.values()].toSorted((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  return { runs, queue: oldest.runs.toReversed(), queued: oldest.total, hasMore: true };
}
