import type { FoundItem, Item, Namespace, StoreOp, StoreResult, StoreResults } from "../model/store-item.ts";
import { type JsonObject, toStorable } from "../model/json.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type {
  NamespaceOptions,
  NodeStore,
  PutOptions,
  ReadOptions,
  SearchOptions,
} from "../graph/node-store.ts";

/**
 * `ctx.store` for one attempt of a task. It is a class without closures, so that creating it is cheap: each call of a node
 * function gets such an object, and few use it.
 */
export class CtxStore implements NodeStore {
  readonly #io: NodeIo;
  readonly #check: () => void;

  constructor(io: NodeIo, check: () => void) {
    this.#io = io;
    this.#check = check;
  }

  async get<V extends JsonObject>(namespace: Namespace, key: string, options?: ReadOptions) {
    const found = await this.#run({ kind: "get", namespace, key, refresh_ttl: options?.refreshTtl });
    return found as Item<V> | null;
  }

  async put(namespace: Namespace, key: string, value: JsonObject, options?: PutOptions) {
    const { index, ttl } = options ?? {};
    await this.#run({ kind: "put", namespace, key, value, index, ttl });
  }

  async delete(namespace: Namespace, key: string) {
    await this.#run({ kind: "delete", namespace, key });
  }

  async search<V extends JsonObject>(namespace_prefix: Namespace, options: SearchOptions = {}) {
    const { filter, query, limit, offset, refreshTtl: refresh_ttl } = options;
    const asked = { filter, query, limit, offset, refresh_ttl };
    const found = await this.#run({ kind: "search", namespace_prefix, ...asked });
    return found as readonly FoundItem<V>[];
  }

  listNamespaces({ prefix, suffix, maxDepth: max_depth, limit, offset }: NamespaceOptions = {}) {
    return this.#run({ kind: "namespaces", prefix, suffix, max_depth, limit, offset });
  }

  async batch<const Ops extends readonly StoreOp[]>(ops: Ops): Promise<StoreResults<Ops>> {
    this.#check();
    return this.#io.store(ops.map(plainCopy) as unknown as Ops);
  }

  async #run<O extends StoreOp>(op: O): Promise<StoreResult<O>> {
    this.#check();
    const [result] = await this.#io.store([plainCopy(op)] as const);
    return result as StoreResult<O>;
  }
}

/** A plain copy of an operation. The node may change its own object later, and the copy may be posted to another thread. */
const plainCopy = <O extends StoreOp>(op: O): O => toStorable(op, String(op.kind)) as O;
