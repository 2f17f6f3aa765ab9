import type { Delivery, DeliveryContent, DeliveryStatus } from "../model/webhook-delivery.ts";
import type { Eventually } from "./eventually.ts";

export interface DeliveryKey {
  readonly tenant: string;
  /** The delivery's id. */
  readonly id: string;
}

/** A delivery with its owner. */
export interface Owed extends DeliveryKey {
  readonly delivery: Delivery;
}

export interface DeliveryQuery {
  /** Absent: the pending ones, then the dead. */
  readonly status?: DeliveryStatus;
  readonly limit: number;
  readonly offset: number;
}

/** What becomes of a delivery: kept as it then is, deleted (null), or left as it was (undefined). */
export type DeliveryChange = (now: Delivery) => Delivery | null | undefined;

/**
 * Webhooks that are owed. They come in by the journal's appends, in the one that ends their run, and go by `change`. A lane
 * holds those of one place ({@link laneOf}), so that a place that does not answer holds up no other.
 */
export interface Outbox {
  /** Registers the one listener that is told of a lane each time something in it has been stored as pending. */
  watch(listener: (lane: string) => void): void;
  /** Lanes with something pending. MUST read those alone, never threads, and not each delivery. */
  lanes(): AsyncIterable<string>;
  /** The pending ones of a lane, by when they are due: the first `limit`, also those of the future. */
  pending(lane: string, limit: number): Promise<readonly Owed[]>;
  /** The dead ones, by when they are to be deleted: the first `limit`. */
  dead(limit: number): Promise<readonly Owed[]>;
  find(key: DeliveryKey): Eventually<Delivery | undefined>;
  content(key: DeliveryKey): Eventually<DeliveryContent | undefined>;
  /**
   * How many are pending and how many dead, of all owners; where there are `most` or more, `most`. MUST read no more than it
   * takes to count them.
   */
  count(most: number): Promise<{ readonly pending: number; readonly dead: number }>;
  /** Newest run first. */
  list(tenant: string, query: DeliveryQuery): Promise<readonly Delivery[]>;
  /**
   * Changes a delivery. `change` MUST be called at once, with what all earlier changes have made of it, stored or in
   * flight; not at all when there is none. Resolves with what there is afterwards, once it is stored: with `durable`, so
   * that it would survive a power cut, without, the end of the process.
   */
  change(
    key: DeliveryKey,
    change: DeliveryChange,
    options: { readonly durable: boolean },
  ): Promise<Delivery | undefined>;
}
