import type { ItemPlace, Namespace } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Eventually } from "./eventually.ts";

/** The epoch that a writer believes a thread to be at. */
export interface ThreadFence {
  readonly thread: ThreadKey;
  readonly epoch: number;
}

/** All of an item but its value: what a search looks through. */
export interface ItemHead extends ItemPlace {
  /** Epoch milliseconds. */
  readonly created_at: number;
  readonly updated_at: number;
  /** Milliseconds that it lives after a put or a refresh; null: for ever. */
  readonly ttl: number | null;
  /** Epoch milliseconds; null: never. */
  readonly expires_at: number | null;
  /** What its value takes in storage. */
  readonly bytes: number;
}

export interface ItemRecord extends ItemHead {
  readonly value: JsonObject;
}

/** What an item is found by, each of length 1. */
export interface ItemVectors extends ItemPlace {
  readonly vectors: readonly Float32Array[];
}

export type ItemChange =
  | (ItemVectors & {
      readonly kind: "put";
      readonly value: JsonObject;
      readonly ttl: number | null;
    })
  | (ItemPlace & { readonly kind: "delete" })
  /** Its time to live begins anew; nothing happens to one that is gone, has expired, or never does. */
  | (ItemPlace & { readonly kind: "refresh" })
  /** Of one that {@link Items.expiring} told of: deletes it if it has expired, and what told of it in any case. */
  | (ItemPlace & { readonly kind: "expire"; readonly expires_at: number });

export interface Expiring extends ItemPlace {
  readonly tenant: string;
  readonly expires_at: number;
}

export interface ItemWrite {
  /** Epoch milliseconds. */
  readonly now: number;
  /** True: resolves once it would survive a power cut. False: the end of the process. */
  readonly durable: boolean;
  readonly fence?: ThreadFence;
}

/**
 * The items of the store as they are kept. What has expired and is not deleted yet is still given: the caller knows the time.
 * Namespaces and keys are any strings that are not empty; namespaces have one label or more.
 */
export interface Items {
  find(tenant: string, place: ItemPlace): Eventually<ItemRecord | undefined>;
  /** Of all items whose namespace begins with `prefix`. MUST NOT read other items, nor values. */
  heads(tenant: string, prefix: Namespace): AsyncIterable<ItemHead>;
  /** Those of the items with a namespace that begins with `prefix` that have any. MUST NOT read others. */
  vectors(tenant: string, prefix: Namespace): AsyncIterable<ItemVectors>;
  /**
   * The namespaces that begin with `prefix` and hold an item that has not expired by `now`, each once, cut to `depth`
   * labels, parents first, siblings in the order of their labels. MUST NOT read each item.
   */
  namespaces(
    tenant: string,
    query: { readonly prefix: Namespace; readonly depth: number; readonly now: number },
  ): AsyncIterable<Namespace>;
  /** The first `limit` items of all tenants by when they expire. MUST read those alone. */
  expiring(limit: number): Promise<readonly Expiring[]>;
  /**
   * Makes all changes, in their order, or none. Each is judged at the call, by what all earlier ones make of the item, stored
   * or in flight: a put keeps the `created_at` of the item that it replaces, unless that has expired.
   * Rejects with `journal.fenced` when the thread is gone or at another epoch than the fence's, `storage.unavailable`.
   */
  change(tenant: string, changes: readonly ItemChange[], write: ItemWrite): Promise<void>;
}
