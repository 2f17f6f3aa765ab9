import type { Permission } from "../model/permission.ts";
import type { StoreOp, StoreResults } from "../model/store-item.ts";
import type { ThreadFence } from "./store-items.ts";

export interface StoreCaller {
  readonly tenant: string;
  /** Present when the caller is an attempt of a run: its writes are refused when the thread has another epoch. */
  readonly fence?: ThreadFence;
  /** Called in the turn in which something is written. It throws if the caller may not write any more. */
  readonly check?: () => void;
  /**
   * Limits the items that the caller may reach; absent: all. It tests the members of an item's value, with `namespace` and `key` in place
   * of members of these names. Other items count as missing. With a permission, a batch has a single operation.
   */
  readonly permission?: Permission;
}

/**
 * Long-term memory: JSON objects by namespace and key, shared by all threads of a tenant. Clients use it at `/store`, nodes
 * as `ctx.store`. Other store interfaces, such as LangGraph's `BaseStore`, need only `batch`.
 */
export interface Store {
  /**
   * Does all of `ops` and resolves with their results in the same order. Reads see the state at the call, not the writes of
   * the same batch; of several writes to one item the last one counts. The writes are one atomic change: the promise resolves
   * when they would survive a power cut, and when it rejects, none of them is made.
   *
   * Rejects with ServiceError `validation.failed` or `value.unstorable` with the field (for several operations with the index
   * in front: `ops[2].key`), `store.namespace` when a put or a delete has an empty namespace, `store.embedding` when
   * the embedder fails, `journal.fenced` when the caller has been replaced, `storage.unavailable`. With a permission also:
   * `store.item_not_found` when an item that may not be reached is in the place of a put, or is to be deleted; `auth.forbidden` for a put
   * that the permission does not allow; `store.scan_limit` when a search has to pass too many items that may not be reached.
   */
  batch<const Ops extends readonly StoreOp[]>(caller: StoreCaller, ops: Ops): Promise<StoreResults<Ops>>;
}
