import type { Delivery, DeliveryContent, DeliveryStatus } from "../model/webhook-delivery.ts";
import type { Eventually } from "./eventually.ts";

export interface DeliveryKey {
  readonly tenant: string;
  readonly id: string;
}

export interface OutboxEntry extends DeliveryKey {
  readonly delivery: Delivery;
}

export interface DeliveryQuery {
  /** Only deliveries with this status. Absent: all deliveries, first the pending and then the dead ones. */
  readonly status?: DeliveryStatus;
  readonly limit: number;
  readonly offset: number;
}

/** A change of a delivery: returns the new record, null to delete it, or undefined to leave it unchanged. */
export type DeliveryUpdater = (now: Delivery) => Delivery | null | undefined;

/**
 * The outbox of webhook deliveries. The append that ends a run adds its delivery; `change` updates or deletes it. Deliveries are queued by
 * target (see {@link webhookHostOf}), so that a target that does not answer does not delay others.
 */
export interface Outbox {
  /**
   * Registers the one listener. It is called with a target each time a pending delivery to that target has been stored.
   */
  watch(listener: (target: string) => void): void;
  /**
   * The targets that have pending deliveries. MUST NOT read all pending deliveries of a target, nor deliveries that are not pending: there
   * may be very many of both.
   */
  targets(): AsyncIterable<string>;
  /** The pending deliveries of a target that are due first, at most `limit`. Deliveries that are due in the future are included. */
  pending(target: string, limit: number): Promise<readonly OutboxEntry[]>;
  /** The dead deliveries that will be deleted first, at most `limit`. */
  dead(limit: number): Promise<readonly OutboxEntry[]>;
  find(key: DeliveryKey): Eventually<Delivery | undefined>;
  content(key: DeliveryKey): Eventually<DeliveryContent | undefined>;
  /**
   * Counts the pending and the dead deliveries of all tenants. Each of the two counts stops at `most`,
   * because there may be very many deliveries. MUST NOT read more than `most` deliveries of each kind.
   */
  count(most: number): Promise<{ readonly pending: number; readonly dead: number }>;
  /** The deliveries that match the query: pending deliveries before dead ones; in each group, the deliveries of newer runs come first. */
  list(tenant: string, query: DeliveryQuery): Promise<readonly Delivery[]>;
  /**
   * Changes a delivery, as the function `change` decides. The implementation MUST call the function with the result of all earlier changes,
   * including those in flight, and synchronously if the storage answers synchronously. If there is no such delivery, the function is not
   * called. Resolves with the new record when the record is stored. With `durable`, the stored record survives a power cut; without
   * `durable`, it survives only the end of the process.
   */
  change(
    key: DeliveryKey,
    change: DeliveryUpdater,
    options: { readonly durable: boolean },
  ): Promise<Delivery | undefined>;
}
