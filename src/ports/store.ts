import type { Permission } from "../model/permitted-resources.ts";
import type { StoreOp, StoreResults } from "../model/store-item.ts";
import type { ThreadFence } from "./store-items.ts";

export interface StoreCaller {
  readonly tenant: string;
  /**
   * Present when the caller is an attempt of a run. The attempt's writes are refused when the thread has another epoch.
   */
  readonly fence?: ThreadFence;
  /**
   * Called right before something is written, in the same turn of the event loop. Throws if the caller may not write
   * any more.
   */
  readonly check?: () => void;
  /**
   * Limits the items that the caller may reach; absent: the caller may reach all items. The permission tests the members of an item's
   * value, and also the item's `namespace` and `key`, which take precedence over members with these names. Items that the caller may not
   * reach count as missing. A caller with a permission MUST pass only one operation in a batch.
   */
  readonly permission?: Permission;
}

/**
 * Long-term memory: JSON objects by namespace and key, shared by all threads of a tenant. {@link Store.batch} is the only method. Other
 * interfaces to the store are built on it: the HTTP routes at `/store`, `ctx.store` of nodes, and the `BaseStore` that LangGraph.js graphs
 * get.
 */
export interface Store {
  /**
   * Does all of `ops` and resolves with their results in the same order. Reads do not see the writes of the same batch. Of several writes
   * to one item, the last one counts. The writes are one atomic change: all are made, and the promise resolves when they would survive a
   * power cut, or none is made and the promise rejects.
   *
   * Rejects with a ServiceError:
   * - `validation.failed`, `value.unstorable`: the error names the field, in a batch of several operations with the index of the operation
   *   (`ops[2].key`)
   * - `store.namespace`: a put or a delete has an empty namespace
   * - `store.embedding`: the embedder has failed
   * - `journal.fenced`: a newer attempt of the run has replaced the caller
   * - `storage.unavailable`
   *
   * For a caller with a permission also:
   * - `store.item_not_found`: the item to replace or delete is one that the caller may not reach
   * - `auth.forbidden`: the permission does not allow the put
   * - `store.scan_limit`: a search has to skip too many items that the caller may not reach
   */
  batch<const Ops extends readonly StoreOp[]>(caller: StoreCaller, ops: Ops): Promise<StoreResults<Ops>>;
}
