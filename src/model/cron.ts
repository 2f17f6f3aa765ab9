import { contains, type JsonObject } from "./json.ts";

/** What becomes of the thread that a firing without one has made, once its run has ended. */
export type OnRunCompleted = "delete" | "keep";

/** Runs that are to start again and again. Times are epoch milliseconds. */
export interface CronRecord {
  readonly cron_id: string;
  readonly assistant_id: string;
  /** The thread on which its runs are; null: each has one of its own. */
  readonly thread_id: string | null;
  /** Of one without a thread; else null. */
  readonly on_run_completed: OnRunCompleted | null;
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly schedule: string;
  /** By its IANA name; null: UTC. */
  readonly timezone: string | null;
  /** It starts nothing after this. */
  readonly end_time: number | null;
  /** The slot that it fires next; null: none, it is over or off. */
  readonly next: number | null;
  readonly enabled: boolean;
  /** What its runs are asked for with, as it was sent. */
  readonly payload: JsonObject;
  readonly metadata: JsonObject;
  readonly created_at: number;
  readonly updated_at: number;
}

/** Which crons are meant: those that fit all that is named. */
export interface CronFilter {
  readonly assistant_id?: string;
  readonly thread_id?: string;
  readonly enabled?: boolean;
  /** Every member must be contained in the cron's metadata. */
  readonly metadata?: JsonObject;
}

export function fits(cron: CronRecord, { assistant_id, thread_id, enabled, metadata }: CronFilter): boolean {
  if (assistant_id !== undefined && cron.assistant_id !== assistant_id) return false;
  if (thread_id !== undefined && cron.thread_id !== thread_id) return false;
  if (enabled !== undefined && cron.enabled !== enabled) return false;
  return metadata === undefined || contains(cron.metadata, metadata);
}
