import type { JsonObject } from "./json.ts";

/** The namespace of an item: labels from the outermost to the innermost, such as `["users", "alice", "notes"]`. */
export type Namespace = readonly string[];

export interface ItemKey {
  readonly namespace: Namespace;
  readonly key: string;
}

/** An item of the store: a JSON object under a key in a namespace. */
export interface Item<V extends JsonObject = JsonObject> extends ItemKey {
  readonly value: V;
  /** Epoch milliseconds of the first put. */
  readonly created_at: number;
  /** Epoch milliseconds of the last put. */
  readonly updated_at: number;
  /** Minutes that the item lives after a put or a refresh; absent: it does not expire. */
  readonly ttl?: number;
  /** Epoch milliseconds at which the item expires; absent: never. */
  readonly expires_at?: number;
}

export interface FoundItem<V extends JsonObject = JsonObject> extends Item<V> {
  /** Similarity to the query, from -1 to 1; null without a query, and for an item that is not indexed. */
  readonly score: number | null;
}

export interface GetOp extends ItemKey {
  readonly kind: "get";
  /** True: reading restarts the item's time to live. Default: as configured for the server, or else true. */
  readonly refresh_ttl?: boolean | undefined;
}

export interface PutOp extends ItemKey {
  readonly kind: "put";
  readonly value: JsonObject;
  /**
   * Paths of the parts of the value that are indexed for queries; false: none; null or absent: as configured for the
   * server.
   */
  readonly index?: false | readonly string[] | null | undefined;
  /** Minutes until the item expires; null: never. Absent: as configured for the server. */
  readonly ttl?: number | null | undefined;
}

export interface DeleteOp extends ItemKey {
  readonly kind: "delete";
}

export interface SearchOp {
  readonly kind: "search";
  /** Only items in this namespace and in the namespaces below it; empty: all items. */
  readonly namespace_prefix: Namespace;
  /**
   * Conditions on the value's members, by name; all must hold. A condition is a plain value, which must be equal, an object of
   * operators (`$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$nin`), or an object of conditions on the member's own members.
   */
  readonly filter?: JsonObject | undefined;
  /**
   * A text; the most similar items come first. If the server's configuration has no index, the text has no effect; if the configured index
   * is not available, the search is refused.
   */
  readonly query?: string | undefined;
  /** The most items to return, from 1 to 1000. Default: 10. */
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly refresh_ttl?: boolean | undefined;
}

export interface NamespacesOp {
  readonly kind: "namespaces";
  /** The first labels of the namespaces; `*` matches any label. */
  readonly prefix?: Namespace | undefined;
  /** The last labels of the namespaces; `*` matches any label. */
  readonly suffix?: Namespace | undefined;
  /**
   * The most labels of a result: longer namespaces are cut to this length. Namespaces that are equal after the cut are
   * returned once.
   */
  readonly max_depth?: number | undefined;
  /** The most namespaces to return, from 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}

export type StoreOp = GetOp | PutOp | DeleteOp | SearchOp | NamespacesOp;

/** The result of an operation: null for a `get` that finds nothing, and for every `put` and `delete`. */
export type StoreResult<O extends StoreOp = StoreOp> = O extends GetOp
  ? Item | null
  : O extends SearchOp
    ? readonly FoundItem[]
    : O extends NamespacesOp
      ? readonly Namespace[]
      : null;

export type StoreResults<Ops extends readonly StoreOp[]> = {
  readonly [I in keyof Ops]: StoreResult<Ops[I]>;
};
