import { listRuns, listThreadRunsByStatus } from "../api/client.ts";
import type { Run } from "../api/records.ts";

/** The number of newest runs that are read. Of the queued runs, as many of the oldest are read. */
const RUNS = 100;
/** The limit of a page of queued runs: large, because further runs may be queued after they were counted. */
const QUEUE_PAGE = 1_000;

/** The runs of a thread that are shown. */
export interface ThreadRuns {
  /** Newest first. In a long queue, those between the newest and the next ones are left out. */
  readonly runs: readonly Run[];
  /** The queued runs, the next one first. In a long queue, the last ones are left out. */
  readonly queue: readonly Run[];
  /** The number of all queued runs. */
  readonly queued: number;
  /** Whether the thread may have more runs than `runs`. */
  readonly hasMore: boolean;
}

export const NO_RUNS: ThreadRuns = { runs: [], queue: [], queued: 0, hasMore: false };

/** Reads the newest runs of a thread. If there are many, reads the running one and the next ones of the queue separately. */
export async function readThreadRuns(id: string, signal?: AbortSignal): Promise<ThreadRuns> {
  const newest = await listRuns(id, RUNS, signal);
  if (newest.length < RUNS) {
    const queue = newest.filter(({ status }) => status === "pending").toReversed();
    return { runs: newest, queue, queued: queue.length, hasMore: false };
  }
  const [running, pending] = await Promise.all([
    listThreadRunsByStatus(id, "running", { limit: RUNS, offset: 0 }, signal),
    listThreadRunsByStatus(id, "pending", { limit: RUNS, offset: 0 }, signal),
  ]);
  const offset = Math.max(0, pending.total - RUNS);
  const oldest =
    offset === 0
      ? pending
      : await listThreadRunsByStatus(id, "pending", { limit: QUEUE_PAGE, offset }, signal);
  const open = [...oldest.runs, ...running.runs];
  // What the later reads found replaces what the first one did.
  const byId = new Map([...newest, ...open].map((run) => [run.run_id, run]));
  const runs = [...byId.values()].toSorted((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  return { runs, queue: oldest.runs.toReversed(), queued: oldest.total, hasMore: true };
}
