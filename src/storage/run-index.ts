import type { RunStatus } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import { unseal } from "./envelope.ts";
import { runsByCreationPrefix, failedRunsPrefix, interruptedRunsPrefix, runSortKey } from "./keys.ts";
import { runRows, type StoredRun } from "./records.ts";

/**
 * The index of runs. It consists of keys without a value, which can be computed from the run's record alone. Each run gets one key when it is
 * admitted. A run that fails or is interrupted gets a second one when it ends, so that the few such runs are found among many. There are no keys
 * for other statuses, because they would have to change at the end of each run; these statuses are read from the records. Runs of temporary
 * threads are in no index.
 */

type IndexedRun = Pick<StoredRun, "run_id" | "created_at" | "status">;

export function createdRunKey({ tenant, thread }: ThreadKey, { run_id, created_at }: IndexedRun): string {
  return runSortKey(runsByCreationPrefix(tenant), created_at, thread, run_id);
}

/** The key prefix of the index of runs that ended with this status; undefined if there is no index for it. */
export function endedRunsPrefix(tenant: string, status: RunStatus | undefined): string | undefined {
  if (status === "error" || status === "timeout") return failedRunsPrefix(tenant);
  return status === "interrupted" ? interruptedRunsPrefix(tenant) : undefined;
}

/** The key of a run in the index for the status with which it ended; undefined if there is no such index. */
export function endedRunKey(
  { tenant, thread }: ThreadKey,
  { run_id, created_at, status }: IndexedRun,
): string | undefined {
  const prefix = endedRunsPrefix(tenant, status);
  return prefix && runSortKey(prefix, created_at, thread, run_id);
}

/** All index keys that a run of a thread that is not temporary must have. */
export function runIndexKeys(key: ThreadKey, run: IndexedRun): readonly string[] {
  const [created, ended] = [createdRunKey(key, run), endedRunKey(key, run)];
  return ended === undefined ? [created] : [created, ended];
}

/** Decodes a stored run; undefined if its record is damaged. `at`: the key of the record. */
export function tryDecodeRun(bytes: Buffer, key: ThreadKey, at: string): StoredRun | undefined {
  try {
    return runRows.record(unseal(bytes, key, at));
  } catch {
    return undefined;
  }
}
