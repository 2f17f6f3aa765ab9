import type { ThreadKey } from "../model/thread.ts";
import { unseal } from "./envelope.ts";
import { runsByCreationPrefix, failedRunsPrefix, runSortKey } from "./keys.ts";
import { runRows, type StoredRun } from "./records.ts";

/**
 * The index of runs: keys without a value, which follow from the run's record alone. Every run costs one when it is admitted, and a run
 * that fails a second one at its end, so that few failures are found among many runs. Any other state is read from the record, because a key
 * for it would have to be moved at each end. Runs of temporary threads are in no index.
 */

type IndexedRun = Pick<StoredRun, "run_id" | "created_at" | "status">;

export function createdRunKey({ tenant, thread }: ThreadKey, { run_id, created_at }: IndexedRun): string {
  return runSortKey(runsByCreationPrefix(tenant), created_at, thread, run_id);
}

export function failedRunKey({ tenant, thread }: ThreadKey, { run_id, created_at }: IndexedRun): string {
  return runSortKey(failedRunsPrefix(tenant), created_at, thread, run_id);
}

export const hasFailed = ({ status }: Pick<StoredRun, "status">): boolean =>
  status === "error" || status === "timeout";

/** All index keys that a run of a thread that is not temporary must have. */
export function runIndexKeys(key: ThreadKey, run: IndexedRun): readonly string[] {
  const created = createdRunKey(key, run);
  return hasFailed(run) ? [created, failedRunKey(key, run)] : [created];
}

/** The run; undefined if its record is damaged. */
export function runAt(bytes: Buffer, key: ThreadKey, at: string): StoredRun | undefined {
  try {
    return runRows.record(unseal(bytes, key, at));
  } catch {
    return undefined;
  }
}
