import { contains, type JsonObject } from "./json.ts";
import type { RunOrigin, RunRecord, RunStatus } from "./run.ts";

/** A run without its kwargs, which may be large. */
export type RunWithoutKwargs = Omit<RunRecord, "kwargs">;

/** A filter of the runs of all threads. A run must match every given member. */
export interface RunFilter {
  /** A run in progress is stored as `pending`. So `pending` and `running` both find pending and running runs, and the caller separates them. */
  readonly status?: RunStatus;
  readonly thread_id?: string;
  readonly assistant_id?: string;
  readonly graph_id?: string;
  readonly origin?: RunOrigin;
  /** The run's metadata must contain every member of this object. */
  readonly metadata?: JsonObject;
  /** The run's metadata must have no member with one of these names. */
  readonly without_metadata?: readonly string[];
  /** Epoch milliseconds: created at this time or later. */
  readonly created_after?: number;
  /** Epoch milliseconds: created before this time. */
  readonly created_before?: number;
  /** A part of the error's name or message. Upper and lower case are not distinguished. */
  readonly error?: string;
}

export function matchesRun(run: RunWithoutKwargs, filter: RunFilter): boolean {
  const {
    status,
    thread_id,
    assistant_id,
    graph_id,
    origin,
    metadata,
    error,
    without_metadata = [],
  } = filter;
  const { created_after = 0, created_before = Number.POSITIVE_INFINITY } = filter;
  if (status !== undefined && run.status !== (status === "running" ? "pending" : status)) return false;
  if (thread_id !== undefined && run.thread_id !== thread_id) return false;
  if (assistant_id !== undefined && run.assistant_id !== assistant_id) return false;
  if (graph_id !== undefined && run.graph_id !== graph_id) return false;
  if (origin !== undefined && run.origin !== origin) return false;
  if (run.created_at < created_after || run.created_at >= created_before) return false;
  if (error !== undefined && !mentions(run, error.toLowerCase())) return false;
  if (without_metadata.some((name) => Object.hasOwn(run.metadata, name))) return false;
  return metadata === undefined || contains(run.metadata, metadata);
}

function mentions({ error }: RunWithoutKwargs, text: string): boolean {
  return error !== null && [error.error, error.message].some((part) => part.toLowerCase().includes(text));
}
