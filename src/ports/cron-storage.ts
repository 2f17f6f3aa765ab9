import type { CronRecord } from "../model/cron.ts";
import type { Eventually } from "./eventually.ts";

export interface CronKey {
  readonly tenant: string;
  readonly cron: string;
}

/** A cron that will fire. */
export interface PlannedCron extends CronKey {
  /** The time for which the cron is planned, in epoch milliseconds. */
  readonly slot: number;
}

/** A change of a cron: returns the new record, null to delete it, or undefined to leave it unchanged. */
export type CronUpdater = (now: CronRecord | undefined) => CronRecord | null | undefined;

/** The crons of all tenants, and which of them fires next. */
export interface CronStorage {
  find(key: CronKey): Eventually<CronRecord | undefined>;
  /** The tenant's crons, newest first. */
  list(tenant: string): AsyncIterable<CronRecord>;
  /** Ids of the crons that start runs on this thread. Called often, so it MUST NOT read all crons each time. */
  ofThread(tenant: string, thread: string): Promise<readonly string[]>;
  /** The `limit` crons that fire next, ordered by `CronRecord.next`. MUST NOT read other crons. */
  next(limit: number): Promise<readonly PlannedCron[]>;
  /**
   * Changes, creates or deletes a cron, as the function `change` decides. The implementation MUST call the function
   * with the result of all earlier changes, including those in flight, and synchronously if the storage answers
   * synchronously. Resolves with the new record, or with undefined if there is none, when the change would survive a
   * power cut.
   */
  change(key: CronKey, change: CronUpdater): Promise<CronRecord | undefined>;
}
