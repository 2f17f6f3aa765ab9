import type { StoreOp, StoreResults } from "../model/store-item.ts";
import type { ThreadFence } from "./store-items.ts";

/** Who asks the store. */
export interface StoreCaller {
  readonly tenant: string;
  /** Present when a run's attempt asks: its writes are refused once the thread has another epoch. */
  readonly fence?: ThreadFence;
  /** Called in the turn in which something is about to be written; throws when the caller may not any more. */
  readonly check?: () => void;
}

/**
 * Long-term memory: JSON objects by namespace and key, shared by all threads of a tenant. Clients reach it over `/store`,
 * nodes as `ctx.store`; whatever else looks like a store (LangGraph's `BaseStore`) can be put over `batch` alone.
 */
export interface Store {
  /**
   * Does all of `ops` and resolves with their results in the same order. Reads see what was there at the call, not the
   * writes beside them; of several writes to one item the last one counts. The writes are one atomic change: it resolves
   * once they would survive a power cut, and when it rejects none of them is made.
   *
   * Rejects with ServiceError `validation.failed` or `value.unstorable` naming the field (of several operations with its
   * place in front: `ops[2].key`), `store.namespace` when a put or a delete has an empty namespace, `store.embedding` when
   * the embedder fails, `journal.fenced` when the caller has been replaced, `storage.unavailable`.
   */
  batch<const Ops extends readonly StoreOp[]>(caller: StoreCaller, ops: Ops): Promise<StoreResults<Ops>>;
}
