import type { FoundItem, Item, Namespace, StoreOp, StoreResults } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";

export interface PutOptions {
  /** The parts of the value to index for queries: paths such as `title` or `parts[*].text`; false: none. */
  readonly index?: false | readonly string[];
  /** Minutes until the item expires; null: never. Default: the configuration's `store.ttl.default_ttl`, else never. */
  readonly ttl?: number | null;
}

export interface ReadOptions {
  /** True: the read restarts the time to live of the items. Default: the configuration's `store.ttl.refresh_on_read`, else true. */
  readonly refreshTtl?: boolean;
}

export interface SearchOptions extends ReadOptions {
  /**
   * Conditions on fields of the value: `{ kind: "note", age: { $gte: 18 } }`. Operators are `$eq`, `$ne`, `$gt`, `$gte`, `$lt`,
   * `$lte` (two numbers or two strings), `$in` and `$nin`.
   */
  readonly filter?: JsonObject;
  /** Sorts by similarity to this text. It has no effect without `store.index` in the configuration. */
  readonly query?: string;
  /** The most items to return: 1 to 1000. Default: 10. */
  readonly limit?: number;
  /** The number of items to skip. Default: 0. */
  readonly offset?: number;
}

export interface NamespaceOptions {
  /** The first labels; `*` matches any one label. */
  readonly prefix?: Namespace;
  /** The last labels; `*` matches any one label. */
  readonly suffix?: Namespace;
  /** Longer namespaces are cut to this number of labels. Absent: none are cut. */
  readonly maxDepth?: number;
  /** The most namespaces to return: 1 to 1000. Default: 100. */
  readonly limit?: number;
  /** The number of namespaces to skip. Default: 0. */
  readonly offset?: number;
}

/**
 * The store API for nodes: JSON objects by namespace and key. A namespace is 1 to 32 labels of up to 256 characters,
 * none of them empty or with a period, the first not `langgraph`; a key has up to 1024 characters, a value up to 1 MiB
 * as JSON.
 *
 * Every call may reject with a ServiceError: `validation.failed` or `value.unstorable` with the field,
 * `store.namespace` for an empty namespace, `store.embedding` if the embedder fails (nothing is written then), or
 * `storage.unavailable`. When the attempt of the node's task is over, every call rejects with `journal.fenced` or a
 * TypeError.
 */
export interface NodeStore {
  /** Resolves with the item, or with null if there is none. */
  get<V extends JsonObject = JsonObject>(
    namespace: Namespace,
    key: string,
    options?: ReadOptions,
  ): Promise<Item<V> | null>;
  /** Creates or replaces an item. Resolves when the item would survive a power failure. */
  put(namespace: Namespace, key: string, value: JsonObject, options?: PutOptions): Promise<void>;
  /** Deletes an item. Also resolves if there is no such item. */
  delete(namespace: Namespace, key: string): Promise<void>;
  /** Finds items in the namespace and those below it: with a `query` the most similar first, else the last updated first. */
  search<V extends JsonObject = JsonObject>(
    prefix: Namespace,
    options?: SearchOptions,
  ): Promise<readonly FoundItem<V>[]>;
  listNamespaces(options?: NamespaceOptions): Promise<readonly Namespace[]>;
  /**
   * Runs several operations (at most 1000). Their writes are atomic; their reads do not see these writes.
   * @example const [alice] = await ctx.store.batch([{ kind: "get", namespace: ["users"], key: "alice" }]);
   */
  batch<const Ops extends readonly StoreOp[]>(ops: Ops): Promise<StoreResults<Ops>>;
}
