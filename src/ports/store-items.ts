import type { ItemKey, Namespace } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Eventually } from "./eventually.ts";

/**
 * A thread, and the epoch that a writer expects it to have. Each new attempt of a run raises the epoch, so writes of an older attempt are
 * refused.
 */
export interface ThreadFence {
  readonly thread: ThreadKey;
  readonly epoch: number;
}

/**
 * An item without its value. A search reads items in this form first, and then only the values of the items that it
 * found.
 */
export interface ItemHead extends ItemKey {
  /** Epoch milliseconds. */
  readonly created_at: number;
  readonly updated_at: number;
  /** Milliseconds that the item lives after a put or a refresh; null: without limit. */
  readonly ttl: number | null;
  /** Epoch milliseconds; null: never. */
  readonly expires_at: number | null;
  /** The bytes of the item's value in storage. */
  readonly bytes: number;
}

export interface ItemRecord extends ItemHead {
  readonly value: JsonObject;
}

/** The embedding vectors of an item, each normalised to length 1. */
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
  /** Restarts the item's time to live. Does nothing if the item no longer exists, has expired, or never expires. */
  | (ItemKey & { readonly kind: "refresh" })
  /** Deletes the item if it has expired, and also deletes the entry in the expiry index that {@link StoreItems.expiring} listed for it. */
  | (ItemKey & { readonly kind: "expire"; readonly expires_at: number });

export interface Expiring extends ItemKey {
  readonly tenant: string;
  readonly expires_at: number;
}

export interface ItemWrite {
  /** Epoch milliseconds. */
  readonly now: number;
  /**
   * True: the change resolves when it would survive a power cut. False: when it would survive the end of the process.
   */
  readonly durable: boolean;
  readonly fence?: ThreadFence;
}

/**
 * Storage of the store's items. Reads also return expired items that are not deleted yet, so callers have to check `expires_at`. A
 * namespace has at least one label. Labels and keys can be any strings that are not empty.
 */
export interface StoreItems {
  find(tenant: string, place: ItemKey): Eventually<ItemRecord | undefined>;
  /** All items whose namespace begins with `prefix`, without their values. MUST NOT read other items or any values. */
  heads(tenant: string, prefix: Namespace): AsyncIterable<ItemHead>;
  /** Vectors of the items whose namespace begins with `prefix`; items without vectors are left out. MUST NOT read other items. */
  vectors(tenant: string, prefix: Namespace): AsyncIterable<ItemVectors>;
  /**
   * The namespaces that begin with `prefix` and have an item that has not expired by `now`. Each namespace is cut to `depth` labels and
   * returned once, parents before their children and siblings in the order of their labels. MUST NOT read every item, because a namespace
   * may have many.
   */
  namespaces(
    tenant: string,
    query: { readonly prefix: Namespace; readonly depth: number; readonly now: number },
  ): AsyncIterable<Namespace>;
  /** The first `limit` items of all tenants by expiry time. MUST NOT read other items. */
  expiring(limit: number): Promise<readonly Expiring[]>;
  /**
   * Makes all changes, in order, or none. Each applies to the result of all earlier changes, stored or in flight. A put keeps the `created_at`
   * of the item that it replaces, unless that item has expired. Rejects with `journal.fenced` if the thread of `write.fence` no longer
   * exists or has another epoch, or with `storage.unavailable`.
   */
  change(tenant: string, changes: readonly ItemChange[], write: ItemWrite): Promise<void>;
}
