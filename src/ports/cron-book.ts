import type { CronRecord } from "../model/cron.ts";
import type { Eventually } from "./eventually.ts";

export interface CronKey {
  readonly tenant: string;
  readonly cron: string;
}

/** A cron that is to fire, and the slot. */
export interface CronSlot extends CronKey {
  readonly slot: number;
}

/** What becomes of a cron: it is as it then is, deleted (null), or left as it was (undefined). */
export type CronChange = (now: CronRecord | undefined) => CronRecord | null | undefined;

/** The crons of all tenants, and which of them fires next. */
export interface CronBook {
  find(key: CronKey): Eventually<CronRecord | undefined>;
  /** Newest first. */
  list(tenant: string): AsyncIterable<CronRecord>;
  /** Ids of the crons whose runs are on this thread. Asked again and again, it MUST NOT read all crons each time. */
  ofThread(tenant: string, thread: string): Promise<readonly string[]>;
  /** Those that are to fire, by `CronRecord.next`: the first `limit`. MUST read those alone. */
  next(limit: number): Promise<readonly CronSlot[]>;
  /**
   * Changes a cron, or makes one. `change` MUST be called at once, with what all earlier changes have made of it, stored or in
   * flight. Resolves with what there is afterwards, once it would survive a power cut.
   */
  change(key: CronKey, change: CronChange): Promise<CronRecord | undefined>;
}
