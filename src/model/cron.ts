import type { PlainError } from "./errors.ts";
import { contains, type JsonObject } from "./json.ts";
import type { Permits } from "./permitted-resources.ts";
import type { TerminalStatus } from "./run.ts";

/**
 * What happens to the thread of a cron's run when the run has ended. This applies only to a cron without a thread: each
 * of its runs gets a new thread.
 */
export type OnRunCompleted = "delete" | "keep";

/** How the last run of a cron ended. The outcome is kept when the run is deleted with its thread. */
export interface CronOutcome {
  /** The id of the run; null if the run could not be started. */
  readonly run_id: string | null;
  readonly status: TerminalStatus;
  readonly error: PlainError | null;
  readonly ended_at: number;
}

/** A cron: a schedule that starts runs. Times are epoch milliseconds. */
export interface CronRecord {
  readonly cron_id: string;
  readonly assistant_id: string;
  /** The thread of the cron's runs; null: each run gets a thread of its own. */
  readonly thread_id: string | null;
  /** What happens to the thread after each run, if each run gets a thread of its own; null if the cron has a thread. */
  readonly on_run_completed: OnRunCompleted | null;
  /** A cron expression of five fields: minute, hour, day of the month, month, day of the week. */
  readonly schedule: string;
  /** IANA name of the time zone; null for UTC. */
  readonly timezone: string | null;
  /** Epoch milliseconds after which the cron starts no more runs; null: it has no end. */
  readonly end_time: number | null;
  /** Epoch milliseconds at which the cron fires next; null when it has ended or is disabled. */
  readonly next: number | null;
  readonly enabled: boolean;
  /** The request body for the cron's runs, as the client sent it. */
  readonly payload: JsonObject;
  readonly metadata: JsonObject;
  /** The user for whom the cron starts runs; null, or absent in older records: none. */
  readonly user?: JsonObject | null;
  /** How the last run ended; absent until a run of the cron has ended. */
  readonly last_run?: CronOutcome;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A filter of crons. A cron must match every given member. */
export interface CronFilter {
  readonly assistant_id?: string;
  readonly thread_id?: string;
  readonly enabled?: boolean;
  /** The cron's metadata must contain every member of this object. */
  readonly metadata?: JsonObject;
  /** Returns whether a cron with this metadata may be found; absent: all crons may be found. */
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
