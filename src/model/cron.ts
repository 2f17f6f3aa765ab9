import { contains, type JsonObject } from "./json.ts";
import type { Permits } from "./permission.ts";

/** What happens, after the run, to a thread that a cron without a thread made for it. */
export type OnRunCompleted = "delete" | "keep";

/** A schedule on which runs start. Times are epoch milliseconds. */
export interface CronRecord {
  readonly cron_id: string;
  readonly assistant_id: string;
  /** The thread of its runs; null: each run gets a thread of its own. */
  readonly thread_id: string | null;
  /** Set for a cron without a thread; else null. */
  readonly on_run_completed: OnRunCompleted | null;
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly schedule: string;
  /** IANA name of the time zone; null for UTC. */
  readonly timezone: string | null;
  /** Time after which it starts no run; null for never. */
  readonly end_time: number | null;
  /** Time at which it fires next; null when it has ended or is disabled. */
  readonly next: number | null;
  readonly enabled: boolean;
  /** The request body of its runs, as it was sent. */
  readonly payload: JsonObject;
  readonly metadata: JsonObject;
  /** The user for whom it starts runs; null or absent (in older records): none. */
  readonly user?: JsonObject | null;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A filter of crons. A cron must match every given member. */
export interface CronFilter {
  readonly assistant_id?: string;
  readonly thread_id?: string;
  readonly enabled?: boolean;
  /** Every member must be contained in the cron's metadata. */
  readonly metadata?: JsonObject;
  /** Which crons may be found, by their metadata. */
  readonly permits?: Permits | undefined;
}

export function matchesCron(
  cron: CronRecord,
  { assistant_id, thread_id, enabled, metadata, permits }: CronFilter,
): boolean {
  if (permits !== undefined && !permits(cron.metadata)) return false;
  if (assistant_id !== undefined && cron.assistant_id !== assistant_id) return false;
  if (thread_id !== undefined && cron.thread_id !== thread_id) return false;
  if (enabled !== undefined && cron.enabled !== enabled) return false;
  return metadata === undefined || contains(cron.metadata, metadata);
}
