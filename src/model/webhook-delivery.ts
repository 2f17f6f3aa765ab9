import type { Interrupt } from "./interrupt.ts";
import type { JsonObject } from "./json.ts";
import type { RunRecord } from "./run.ts";

/** `pending`: still to be made. `dead`: given up, kept for people to look at. One that was made is gone. */
export type DeliveryStatus = "pending" | "dead";

/** A webhook that is owed: that a run has ended is to be told to a URL. Times are epoch milliseconds. */
export interface Delivery {
  /** The run's: it ends once. The same over all tries, so that the receiver can tell a repetition. */
  readonly id: string;
  readonly thread_id: string;
  /** Absolute, or a path on this very server. */
  readonly url: string;
  readonly status: DeliveryStatus;
  readonly created_at: number;
  /** Tries that failed. */
  readonly attempts: number;
  /** Of a pending one, when it is to be tried next; of a dead one, when it is deleted. */
  readonly due: number;
  readonly last_attempt_at: number | null;
  /** What the receiver answered to the last try, null where it gave none. */
  readonly last_status: number | null;
  readonly last_error: string | null;
}

/** All that is told, so that it can be when run and thread are gone. */
export interface DeliveryContent {
  readonly run: RunRecord;
  /** The thread's state at the run's end; null where it has none, or is not known. */
  readonly values: JsonObject | null;
  /** What waits for an answer, nothing at a breakpoint; null when the run did not pause. */
  readonly waiting: readonly Interrupt[] | null;
}

/** A delivery as the end of a run leaves it. */
export interface OutboxItem {
  readonly delivery: Delivery;
  readonly content: DeliveryContent;
}

/** What the end of a run owes to its webhook. */
export function outboxItem(content: DeliveryContent, webhook: string, now: number): OutboxItem {
  const { run_id, thread_id } = content.run;
  return {
    delivery: {
      id: run_id,
      thread_id,
      url: webhook,
      status: "pending",
      created_at: now,
      attempts: 0,
      due: now,
      last_attempt_at: null,
      last_status: null,
      last_error: null,
    },
    content,
  };
}

/** Deliveries to one place wait for one another, never for those to another: a path's place is this server. */
export function laneOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "";
}
