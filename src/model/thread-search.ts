import { contains, type JsonObject } from "./json.ts";
import { type ThreadRecord, threadStatusOf, type ThreadStatus } from "./thread.ts";

/**
 * A metadata member is indexed only if its name and the text of its value together have at most this many characters.
 */
export const MAX_INDEXED_LENGTH = 64 * 1024;

export const threadOrders = ["thread_id", "status", "created_at", "updated_at", "state_updated_at"] as const;

export type ThreadOrder = (typeof threadOrders)[number];

/** A filter of threads. A thread must match every given member. */
export interface ThreadFilter {
  readonly ids?: readonly string[];
  readonly status?: ThreadStatus;
  /** The thread's metadata must contain every member of this object. */
  readonly metadata?: JsonObject;
}

/** True when a thread matches the filter. Temporary threads never do. */
export function matchesThread(thread: ThreadRecord, { ids, status, metadata }: ThreadFilter): boolean {
  if (thread.temporary !== null) return false;
  if (ids !== undefined && !ids.includes(thread.thread_id)) return false;
  if (status !== undefined && threadStatusOf(thread) !== status) return false;
  return metadata === undefined || contains(thread.metadata, metadata);
}

/**
 * The sort key of a thread. Threads with equal keys are sorted by id. In the order `status`, the key also has
 * the time of creation, which sorts threads with the same status.
 */
export function threadSortKey(order: ThreadOrder, thread: ThreadRecord): string | number {
  switch (order) {
    case "thread_id":
      return thread.thread_id;
    case "status":
      return `${threadStatusOf(thread)} ${String(thread.created_at).padStart(16, "0")}`;
    case "created_at":
    case "updated_at":
    case "state_updated_at":
      return thread[order];
    default:
      return order satisfies never;
  }
}
