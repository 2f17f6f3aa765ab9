import type { FoundItem, Item, Namespace, StoreOp, StoreResults } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";

export interface PutOptions {
  /** Which parts of the value are found by a query: paths such as `title` or `parts[*].text`; false: none. */
  readonly index?: false | readonly string[];
  /** Minutes until it expires; null: never. Default: the configuration's `store.ttl.default_ttl`, else never. */
  readonly ttl?: number | null;
}

export interface ReadOptions {
  /** Does the time to live of what is read begin anew? Default: the configuration's `store.ttl.refresh_on_read`, else yes. */
  readonly refreshTtl?: boolean;
}

export interface SearchOptions extends ReadOptions {
  /**
   * What members of the value must be: `{ kind: "note", age: { $gte: 18 } }`. Operators are `$eq`, `$ne`, `$gt`, `$gte`, `$lt`,
   * `$lte` (numbers or texts, each among themselves), `$in` and `$nin`.
   */
  readonly filter?: JsonObject;
  /** Nearest in meaning first; needs `store.index` in the configuration, else it changes nothing. */
  readonly query?: string;
  /** 1 to 1000; default 10. */
  readonly limit?: number;
  /** Default 0. */
  readonly offset?: number;
}

export interface NamespaceOptions {
  /** First labels; `*` stands for any one. */
  readonly prefix?: Namespace;
  /** Last labels; `*` stands for any one. */
  readonly suffix?: Namespace;
  /** Longer namespaces are cut to so many labels. */
  readonly maxDepth?: number;
  /** 1 to 1000; default 100. */
  readonly limit?: number;
  /** Default 0. */
  readonly offset?: number;
}

/**
 * The store as a node has it: JSON objects by namespace and key. A namespace is 1 to 32 labels of up to 256 characters, none of
 * them empty or with a period, the first not `langgraph`; a key has up to 1024 characters, a value up to 1 MiB as JSON.
 *
 * Every call rejects with a ServiceError: `validation.failed` or `value.unstorable` naming what is wrong, `store.namespace` for
 * an empty namespace, `store.embedding` when the embedder fails (nothing is written then), `storage.unavailable`, and
 * with `journal.fenced` or a TypeError when the attempt is over.
 */
export interface NodeStore {
  /** The item, or null. */
  get<V extends JsonObject = JsonObject>(
    namespace: Namespace,
    key: string,
    options?: ReadOptions,
  ): Promise<Item<V> | null>;
  /** Makes or replaces an item. Resolves once it would survive a power cut. */
  put(namespace: Namespace, key: string, value: JsonObject, options?: PutOptions): Promise<void>;
  /** Also of an item that is not there. */
  delete(namespace: Namespace, key: string): Promise<void>;
  /** Items in the namespace and below it: with a `query` the nearest first, else the last updated first. */
  search<V extends JsonObject = JsonObject>(
    prefix: Namespace,
    options?: SearchOptions,
  ): Promise<readonly FoundItem<V>[]>;
  listNamespaces(options?: NamespaceOptions): Promise<readonly Namespace[]>;
  /**
   * Does several operations (at most 1000). Their writes are made all together or not at all; their reads do not see them.
   * @example const [alice] = await ctx.store.batch([{ kind: "get", namespace: ["users"], key: "alice" }]);
   */
  batch<const Ops extends readonly StoreOp[]>(ops: Ops): Promise<StoreResults<Ops>>;
}
