import { parseUrl } from "./url.ts";
import type { Interrupt } from "./interrupt.ts";
import type { JsonObject } from "./json.ts";
import type { RunRecord } from "./run.ts";

/**
 * `pending`: not delivered yet. `dead`: given up, after too many failed attempts or after a response that no retry can change; stored for
 * people to look at. Successful deliveries are deleted.
 */
export type DeliveryStatus = "pending" | "dead";

/** A webhook delivery: reports the end of a run to a URL. Times are epoch milliseconds. */
export interface Delivery {
  /**
   * The id of the run whose end is delivered. It is the same in all attempts of the delivery, so that the receiver can
   * detect a repetition.
   */
  readonly id: string;
  readonly thread_id: string;
  /** An absolute URL, or a path on this server. */
  readonly url: string;
  readonly status: DeliveryStatus;
  readonly created_at: number;
  /** Number of failed attempts. */
  readonly attempts: number;
  /** Epoch milliseconds of the next attempt if pending; of the deletion if dead. */
  readonly due: number;
  readonly last_attempt_at: number | null;
  /** HTTP status of the last attempt; null when there was no response. */
  readonly last_status: number | null;
  readonly last_error: string | null;
}

/** The content of a delivery. It is stored with the delivery, so that it can be sent even after the run and the thread were deleted. */
export interface DeliveryContent {
  readonly run: RunRecord;
  /** The thread's state at the end of the run; null when there is none, or it is not known. */
  readonly values: JsonObject | null;
  /** Interrupts that wait for an answer, empty at a breakpoint; null when the run did not pause. */
  readonly waiting: readonly Interrupt[] | null;
}

/** A new delivery with its content, as the end of a run adds it to the outbox. */
export interface NewDelivery {
  readonly delivery: Delivery;
  readonly content: DeliveryContent;
}

/** Makes the delivery for the end of a run. */
export function createDelivery(content: DeliveryContent, webhook: string, now: number): NewDelivery {
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

/** The target of a URL: its host, or "" for a path on this server. A delivery waits only for other deliveries to the same target. */
export function webhookHostOf(url: string): string {
  return parseUrl(url)?.host ?? "";
}
