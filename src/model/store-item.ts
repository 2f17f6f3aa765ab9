import type { JsonObject } from "./json.ts";

/** Where an item lies: labels from the outermost to the innermost, such as `["users", "alice", "notes"]`. */
export type Namespace = readonly string[];

export interface ItemPlace {
  readonly namespace: Namespace;
  readonly key: string;
}

/** What is kept in the store: a JSON object under a key in a namespace. */
export interface Item<V extends JsonObject = JsonObject> extends ItemPlace {
  readonly value: V;
  /** Epoch milliseconds of the first put. */
  readonly created_at: number;
  /** Epoch milliseconds of the last put. */
  readonly updated_at: number;
}

export interface FoundItem<V extends JsonObject = JsonObject> extends Item<V> {
  /** How near it is to the query, from -1 to 1; null without a query, and for an item that is not indexed. */
  readonly score: number | null;
}

export interface GetOp extends ItemPlace {
  readonly kind: "get";
  /** Does reading it let its time to live begin anew? Default: as the server is configured, which is yes. */
  readonly refresh_ttl?: boolean | undefined;
}

export interface PutOp extends ItemPlace {
  readonly kind: "put";
  readonly value: JsonObject;
  /** Which parts of the value are found by a query: paths, none (false), or (null) those of the server's configuration. */
  readonly index?: false | readonly string[] | null | undefined;
  /** Minutes until it expires; null: never. Absent: as the server is configured. */
  readonly ttl?: number | null | undefined;
}

export interface DeleteOp extends ItemPlace {
  readonly kind: "delete";
}

export interface SearchOp {
  readonly kind: "search";
  /** Only items in this namespace and those below it; empty: all. */
  readonly namespace_prefix: Namespace;
  /**
   * What the value's members must be, by name: a plain value (equal), an object of operators (`$eq`, `$ne`, `$gt`, `$gte`,
   * `$lt`, `$lte`, `$in`, `$nin`), or an object whose own members are asked in the same way. All of them hold.
   */
  readonly filter?: JsonObject | undefined;
  /** Nearest first. Without an index in the server's configuration it changes nothing. */
  readonly query?: string | undefined;
  /** 1 to 1000; default 10. */
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly refresh_ttl?: boolean | undefined;
}

export interface NamespacesOp {
  readonly kind: "namespaces";
  /** First labels; `*` stands for any one. */
  readonly prefix?: Namespace | undefined;
  /** Last labels; `*` stands for any one. */
  readonly suffix?: Namespace | undefined;
  /** Longer namespaces are cut to so many labels; each comes once. */
  readonly max_depth?: number | undefined;
  /** 1 to 1000; default 100. */
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}

export type StoreOp = GetOp | PutOp | DeleteOp | SearchOp | NamespacesOp;

/** What an operation gives: a `get` null where there is nothing, a `put` and a `delete` always null. */
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
