import type { JsonObject } from "../model/json.ts";
import type { RunStatus } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import {
  cronRunsPrefix,
  runsByCreationPrefix,
  failedRunsPrefix,
  interruptedRunsPrefix,
  runSortKey,
} from "./keys.ts";
import { runRowConverter, type StoredRun } from "./stored-records.ts";

/**
 * The index of runs. It consists of keys without a value, which can be computed from the run's record alone. Every run gets one key when it
 * is admitted, and a run of a cron gets a second one. A run that fails or is interrupted gets one more key at its end, so that such runs,
 * which are few, are found quickly. Other states have no key, because the key would have to be replaced at the end of each run; these
 * states are read from the record. Runs of temporary threads are in no index.
 */

type IndexedRun = Pick<StoredRun, "run_id" | "created_at" | "status" | "metadata">;

/**
 * The maximum length of an indexed cron id, in characters, because clients can set the `cron_id` in the metadata of their own runs to any
 * text.
 */
const MAX_CRON_ID = 64;

/** The id of the cron that the metadata of a run contains; undefined if they contain none, or one that is too long to be indexed. */
export function cronIdFromMetadata(metadata: JsonObject | undefined): string | undefined {
  const cron = metadata?.["cron_id"];
  return typeof cron === "string" && cron !== "" && cron.length <= MAX_CRON_ID ? cron : undefined;
}

export function createdRunKey({ tenant, thread }: ThreadKey, { run_id, created_at }: IndexedRun): string {
  return runSortKey(runsByCreationPrefix(tenant), created_at, thread, run_id);
}

/** The keys that a run gets when it is admitted. */
export function admittedRunKeys(key: ThreadKey, run: IndexedRun): readonly string[] {
  const created = createdRunKey(key, run);
  const cron = cronIdFromMetadata(run.metadata);
  if (cron === undefined) return [created];
  return [created, runSortKey(cronRunsPrefix(key.tenant, cron), run.created_at, key.thread, run.run_id)];
}

/** The prefix of the index of runs that ended with this status; undefined if they have no index of their own. */
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

/** All index keys of a run whose thread is not temporary. */
export function runIndexKeys(key: ThreadKey, run: IndexedRun): readonly string[] {
  const ended = endedRunKey(key, run);
  return ended === undefined ? admittedRunKeys(key, run) : [...admittedRunKeys(key, run), ended];
}

/** Decodes a stored run; undefined if its record is damaged. `at`: the key of the record. */
export function tryDecodeRun(bytes: Buffer, key: ThreadKey, at: string): StoredRun | undefined {
  try {
    return runRowConverter.record(decodeWithChecksum(bytes, key, at));
  } catch {
    return undefined;
  }
}
