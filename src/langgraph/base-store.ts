import type {
  BaseStore,
  Item as LangGraphItem,
  ListNamespacesOperation,
  Operation,
  PutOperation,
  SearchItem,
  SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type {
  FoundItem,
  Item,
  NamespacesOp,
  PutOp,
  SearchOp,
  StoreOp,
  StoreResult,
} from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";
import { ServiceError } from "../model/errors.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type { LangGraphLibrary } from "./user-library.ts";
import { deserialise } from "./deserialisation.ts";
import { serialise } from "./serialisation.ts";

/** The largest number of items or namespaces that one {@link StoreOp} can request. */
const MAX_RESULTS = 1_000;
/** The largest number of pages into which one operation of LangGraph is split. Each page is one {@link StoreOp}. */
const MAX_PAGES = 10;

/**
 * Access to the store for one attempt of a run. Operations go through the `NodeIo` of a running node function, and are refused if no node
 * function is running.
 */
export class AttemptStoreAccess {
  readonly #open = new Set<Pick<NodeIo, "store">>();

  /** Runs a node function. Operations may use its `io` until the node function ends. */
  async during<T>(io: Pick<NodeIo, "store">, body: () => Promise<T>): Promise<T> {
    this.#open.add(io);
    try {
      return await body();
    } finally {
      this.#open.delete(io);
    }
  }

  batch(ops: readonly StoreOp[]): Promise<readonly StoreResult[]> {
    // LangGraph batches the operations of all node functions of a run, so the `io` of any running function is suitable.
    const [io] = this.#open;
    if (io !== undefined) return io.store(ops);
    return Promise.reject(
      new ServiceError("journal.fenced", "No node of this run is at work: the store is closed to it"),
    );
  }
}

/**
 * Creates a LangGraph.js `BaseStore` that uses the server's store. Messages in stored values are read as objects of LangChain's message
 * classes.
 */
export function createBaseStore(
  library: LangGraphLibrary,
  store: Pick<AttemptStoreAccess, "batch">,
): BaseStore {
  const batch = async (operations: readonly Operation[]): Promise<unknown[]> => {
    const operationLists = operations.map(opsOf);
    const results = await store.batch(operationLists.flat());
    let from = 0;
    return operationLists.map((ops) => {
      const own = results.slice(from, (from += ops.length));
      return resultOf(library, ops, own);
    });
  };
  // All methods of `BaseStore` call `batch`. The class must come from the user's copy of the library.
  const made = Object.create(library.checkpoint.BaseStore.prototype) as BaseStore;
  return Object.assign(made, { batch });
}

/**
 * Adds `listNamespaces` to LangGraph's `AsyncBatchedStore`, the batching wrapper through which nodes use the store. The wrapper's own
 * `listNamespaces` always fails; the added method calls the wrapped store.
 */
export function addListNamespaces(wrapped: unknown): void {
  const { lg_name: name } = (wrapped ?? {}) as { readonly lg_name?: unknown };
  if (name !== "AsyncBatchedStore" || Object.hasOwn(wrapped as object, "listNamespaces")) return;
  const { store } = wrapped as { readonly store: BaseStore };
  const listNamespaces: BaseStore["listNamespaces"] = (options) => store.listNamespaces(options);
  Object.assign(wrapped as object, { listNamespaces });
}

/**
 * Converts one LangGraph operation to store operations: one operation, several for the pages of a long list, or none if nothing can match.
 */
function opsOf(operation: Operation): readonly StoreOp[] {
  if ("namespacePrefix" in operation) return pages(searchOf(operation), operation.limit ?? 10);
  if (!("key" in operation)) {
    const op = namespacesOf(operation);
    return op === undefined ? [] : pages(op, operation.limit);
  }
  const { namespace, key } = operation;
  return ["value" in operation ? writeOf(operation) : { kind: "get", namespace, key }];
}

function writeOf(operation: PutOperation): StoreOp {
  const { namespace, key, value, index } = operation;
  if (value === null) return { kind: "delete", namespace, key };
  const { ttl } = operation as { readonly ttl?: number | null };
  const put: PutOp = { kind: "put", namespace, key, value: serialise(value) as JsonObject, index };
  return ttl === undefined ? put : { ...put, ttl };
}

function searchOf({ namespacePrefix, filter, query, offset }: SearchOperation): SearchOp {
  return { kind: "search", namespace_prefix: namespacePrefix, filter, query, offset };
}

function namespacesOf({
  matchConditions = [],
  maxDepth,
  offset,
}: ListNamespacesOperation): NamespacesOp | undefined {
  const paths = (type: "prefix" | "suffix") =>
    matchConditions.filter(({ matchType }) => matchType === type).map(({ path }) => path);
  const prefix = joined(paths("prefix"));
  const suffix = joined(paths("suffix").map((path) => path.toReversed()))?.toReversed();
  if (prefix === undefined || suffix === undefined) return undefined;
  return {
    kind: "namespaces",
    offset,
    ...(prefix.length > 0 && { prefix }),
    ...(suffix.length > 0 && { suffix }),
    ...(maxDepth !== undefined && { max_depth: maxDepth }),
  };
}

/** Combines label paths that must all match into one path; undefined if no namespace can match all of them. `*` matches any label. */
function joined(paths: readonly (readonly string[])[]): readonly string[] | undefined {
  const labels: string[] = [];
  for (const path of paths) {
    for (const [i, label] of path.entries()) {
      const known = labels[i] ?? "*";
      if (label !== "*" && known !== "*" && label !== known) return undefined;
      labels[i] = label === "*" ? known : label;
    }
  }
  return labels;
}

/** Splits a list operation into pages. If it needs more than {@link MAX_PAGES} pages, it is not split, and the store refuses it. */
function pages<Op extends SearchOp | NamespacesOp>(op: Op, limit: number): readonly Op[] {
  if (!(limit > MAX_RESULTS && limit <= MAX_RESULTS * MAX_PAGES)) return [{ ...op, limit }];
  const made: Op[] = [];
  for (let from = 0; from < limit; from += MAX_RESULTS) {
    made.push({ ...op, offset: (op.offset ?? 0) + from, limit: Math.min(MAX_RESULTS, limit - from) });
  }
  return made;
}

function resultOf(
  library: LangGraphLibrary,
  ops: readonly StoreOp[],
  results: readonly StoreResult[],
): unknown {
  const [op] = ops;
  switch (op?.kind) {
    case "get":
      return itemOf(library, results[0] as Item | null);
    case "search":
      return (results as readonly (readonly FoundItem[])[]).flat().map((item) => foundOf(library, item));
    case "put":
    case "delete":
      return undefined;
    default:
      return results.flat();
  }
}

function itemOf(library: LangGraphLibrary, item: Item | null): LangGraphItem | null {
  if (item === null) return null;
  return {
    namespace: [...item.namespace],
    key: item.key,
    value: deserialise(library, item.value) as LangGraphItem["value"],
    createdAt: new Date(item.created_at),
    updatedAt: new Date(item.updated_at),
  };
}

function foundOf(library: LangGraphLibrary, item: FoundItem): SearchItem {
  const found = itemOf(library, item) as SearchItem;
  return item.score === null ? found : { ...found, score: item.score };
}
