import type { ItemKey, Namespace } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Eventually } from "./eventually.ts";

/** The thread epoch that a writer expects. */
export interface ThreadFence {
  readonly thread: ThreadKey;
  readonly epoch: number;
}

/** An item without its value: a search reads this first. */
export interface ItemHead extends ItemKey {
  /** Epoch milliseconds. */
  readonly created_at: number;
  readonly updated_at: number;
  /** Milliseconds that it lives after a put or a refresh; null: without limit. */
  readonly ttl: number | null;
  /** Epoch milliseconds; null: never. */
  readonly expires_at: number | null;
  /** Bytes of its value in storage. */
  readonly bytes: number;
}

export interface ItemRecord extends ItemHead {
  readonly value: JsonObject;
}

/** Vectors by which an item is found, each normalised to length 1. */
export interface ItemVectors extends ItemKey {
  readonly vectors: readonly Float32Array[];
}

export type ItemChange =
  | (ItemVectors & {
      readonly kind: "put";
      readonly value: JsonObject;
      readonly ttl: number | null;
    })
  | (ItemKey & { readonly kind: "delete" })
  /** Restarts its time to live. Does nothing if the item no longer exists, has expired, or never expires. */
  | (ItemKey & { readonly kind: "refresh" })
  /** For an item that {@link StoreItems.expiring} listed: deletes it if it has expired, and its index entry in any case. */
  | (ItemKey & { readonly kind: "expire"; readonly expires_at: number });

export interface Expiring extends ItemKey {
  readonly tenant: string;
  readonly expires_at: number;
}

export interface ItemWrite {
  /** Epoch milliseconds. */
  readonly now: number;
  /** True: resolves when it would survive a power cut. False: when it would survive the end of the process. */
  readonly durable: boolean;
  readonly fence?: ThreadFence;
}

/**
 * Storage of the store's items. Expired items that are not deleted yet are still returned: the caller compares the time.
 * Namespaces have one label or more; labels and keys are any strings that are not empty.
 */
export interface StoreItems {
  find(tenant: string, place: ItemKey): Eventually<ItemRecord | undefined>;
  /** Heads of all items whose namespace begins with `prefix`. MUST NOT read other items, nor values. */
  heads(tenant: string, prefix: Namespace): AsyncIterable<ItemHead>;
  /** Vectors of all items that have some, with a namespace that begins with `prefix`. MUST NOT read others. */
  vectors(tenant: string, prefix: Namespace): AsyncIterable<ItemVectors>;
  /**
   * The namespaces that begin with `prefix` and have an item that has not expired by `now`: each once, cut to `depth` labels,
   * parents first, siblings in the order of their labels. MUST NOT read each item.
   */
  namespaces(
    tenant: string,
    query: { readonly prefix: Namespace; readonly depth: number; readonly now: number },
  ): AsyncIterable<Namespace>;
  /** The first `limit` items of all tenants by expiry time. MUST read no others. */
  expiring(limit: number): Promise<readonly Expiring[]>;
  /**
   * Makes all changes, in order, or none. Each applies to the result of all earlier changes, stored or in flight: a put keeps the
   * `created_at` of the item that it replaces, unless that has expired. Rejects with `journal.fenced` if the thread no longer exists or its
   * epoch is not that of the fence, or with `storage.unavailable`.
   */
  change(tenant: string, changes: readonly ItemChange[], write: ItemWrite): Promise<void>;
}
