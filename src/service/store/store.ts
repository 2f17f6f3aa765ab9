import { ServiceError } from "../../model/errors.ts";
import type { Permission } from "../../model/permitted-resources.ts";
import type { Item, PutOp, SearchOp, StoreOp, StoreResult } from "../../model/store-item.ts";
import { TimeBudget } from "../../ports/time-budget.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ItemChange, ItemRecord, StoreItems } from "../../ports/store-items.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Scheduler } from "../../ports/scheduler.ts";
import type { Store, StoreCaller } from "../../ports/store.ts";
import {
  checkCount,
  checkIndex,
  checkKeyText,
  checkLabels,
  checkPage,
  checkItemKey,
  checkTtl,
  checkValue,
  MAX_BATCH_OPS,
  refuseOperation,
} from "./item-limits.ts";
import { embedTexts, type StoreIndex } from "./embedding.ts";
import { type ItemTest, compileFilter } from "./item-filter.ts";
import { allowsItem, ItemPermissionFilter } from "./item-permission.ts";
import { listNamespaces } from "./namespaces.ts";
import { isUnexpired, searchItems } from "./item-search.ts";
import { textsAtPaths } from "./indexed-texts.ts";
import { KeyedMutex } from "../keyed-mutex.ts";

export interface StorePolicy {
  /** Minutes: the default lifetime of items; null: they do not expire. */
  readonly defaultTtl: number | null;
  /** Default of `refresh_ttl`: whether a read restarts an item's lifetime. */
  readonly refreshOnRead: boolean;
  /** The configuration of semantic search; absent: there is no semantic search. */
  readonly index?: StoreIndex;
  /** The reason why semantic search is configured but not available. A search with a query is refused with this text. */
  readonly noIndex?: string;
}

export const DEFAULT_STORE_POLICY: StorePolicy = { defaultTtl: null, refreshOnRead: true };

export interface StoreDeps {
  readonly items: StoreItems;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly policy: StorePolicy;
  /** Makes long searches yield to other work. */
  readonly budget?: TimeBudget;
}

/** The largest number of texts that are embedded for one item. */
const MAX_TEXTS = 256;
/** The number of texts that are passed to the embedder at a time. */
const TEXTS_PER_CALL = 256;

const MINUTE = 60_000;

interface Read {
  readonly place: number;
  readonly run: (now: number) => Promise<StoreResult>;
}

interface Put {
  readonly op: PutOp;
  readonly texts: readonly string[];
}

export function createStore(deps: StoreDeps): Store {
  const { items, clock, scheduler, logger, policy, budget = new TimeBudget(clock, scheduler) } = deps;
  const { index } = policy;

  async function vectorsOf(texts: readonly string[]): Promise<readonly Float32Array[]> {
    if (index === undefined || texts.length === 0) return [];
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += TEXTS_PER_CALL) {
      vectors.push(...(await embedTexts(index, texts.slice(from, from + TEXTS_PER_CALL), scheduler)));
    }
    return vectors;
  }

  /**
   * Restarts the lifetime of items that were read. A failure is logged, and the read succeeds anyway. Resolves with the start of the new
   * lifetime, or with undefined if the lifetime was not restarted.
   */
  async function refresh(
    tenant: string,
    read: readonly ItemRecord[],
    asked: boolean | undefined,
  ): Promise<number | undefined> {
    if (!(asked ?? policy.refreshOnRead)) return undefined;
    const mortal = read.filter(({ ttl }) => ttl !== null);
    if (mortal.length === 0) return undefined;
    const changes = mortal.map(({ namespace, key }) => ({ kind: "refresh" as const, namespace, key }));
    const now = clock.now();
    try {
      await items.change(tenant, changes, { now, durable: false });
      return now;
    } catch (cause) {
      logger.warn("the lifetime of items that were read could not be restarted", { error: String(cause) });
      return undefined;
    }
  }

  async function search(
    tenant: string,
    op: SearchOp,
    test: ItemTest | undefined,
    gate: ItemPermissionFilter | undefined,
    at: string,
  ) {
    const vector = op.query === undefined || op.query === "" ? undefined : (await vectorsOf([op.query]))[0];
    const found = await searchItems(items, {
      tenant,
      op,
      now: clock.now(),
      test,
      gate,
      vector,
      at,
      share: budget.share(tenant),
    });
    const refreshed = await refresh(
      tenant,
      found.map(({ record }) => record),
      op.refresh_ttl,
    );
    return found.map(({ record, score }) => ({ ...shown(record, refreshed), score }));
  }

  /**
   * Checks an operation. If it is a read, returns a function that performs it. If it is a write, adds it to `writes` and returns undefined.
   */
  function prepare(
    { tenant, permission }: StoreCaller,
    op: StoreOp,
    at: string,
    writes: (Put | ItemChange)[],
  ): Read["run"] | undefined {
    switch (op.kind) {
      case "get":
        checkLabels(op.namespace, `${at}namespace`);
        checkKeyText(op.key, `${at}key`);
        return async (now) => {
          // No item has an empty namespace.
          const found = op.namespace.length === 0 ? undefined : await items.find(tenant, op);
          if (found === undefined || !isUnexpired(found, now)) return null;
          // The item is treated as missing, so that the caller does not learn whether it exists.
          if (permission !== undefined && !allowsItem(permission, found)) return null;
          return shown(found, await refresh(tenant, [found], op.refresh_ttl));
        };
      case "search": {
        checkLabels(op.namespace_prefix, `${at}namespace_prefix`);
        checkPage(op, at);
        if (op.query !== undefined && policy.noIndex !== undefined)
          refuseOperation(`${at}query`, policy.noIndex);
        const test = op.filter === undefined ? undefined : compileFilter(op.filter, `${at}filter`);
        return () => search(tenant, op, test, permission && new ItemPermissionFilter(permission), at);
      }
      case "namespaces":
        checkLabels(op.prefix ?? [], `${at}prefix`);
        checkLabels(op.suffix ?? [], `${at}suffix`);
        checkCount(op.max_depth, `${at}max_depth`, 1, 1_000);
        checkPage(op, at);
        return (now) =>
          listNamespaces(items, tenant, op, now, permission && new ItemPermissionFilter(permission));
      case "put": {
        checkItemKey(op, at);
        checkTtl(op.ttl, `${at}ttl`);
        checkIndex(op.index, `${at}index`);
        const value = checkValue(op.value, `${at}value`);
        if (permission !== undefined && !allowsItem(permission, { ...op, value }))
          throw new ServiceError("auth.forbidden", "Not authorized");
        const paths = op.index === false ? [] : (op.index ?? index?.fields ?? []);
        const texts = index === undefined ? [] : textsAtPaths(value, paths);
        if (texts.length > MAX_TEXTS)
          refuseOperation(`${at}index`, `gives ${texts.length} texts, and may give ${MAX_TEXTS}`);
        writes.push({ op: { ...op, value }, texts });
        return undefined;
      }
      case "delete":
        checkItemKey(op, at);
        writes.push({ kind: "delete", namespace: op.namespace, key: op.key });
        return undefined;
      default:
        return refuseOperation(`${at}kind`, "is no operation of the store");
    }
  }

  async function changesOf(writes: readonly (Put | ItemChange)[]): Promise<readonly ItemChange[]> {
    const vectors = await vectorsOf(writes.flatMap((write) => ("op" in write ? write.texts : [])));
    let from = 0;
    return writes.map((write) => {
      if (!("op" in write)) return write;
      const { op, texts } = write;
      const own = vectors.slice(from, (from += index === undefined ? 0 : texts.length));
      const minutes = op.ttl === undefined ? policy.defaultTtl : op.ttl;
      const ttl = minutes === null ? null : Math.ceil(minutes * MINUTE);
      return { kind: "put", namespace: [...op.namespace], key: op.key, value: op.value, vectors: own, ttl };
    });
  }

  /**
   * Checks whether the caller may replace or delete an item. If the item does not exist, a put passes, because its new value was checked
   * before; a delete is checked with the item's namespace and key alone, so that the caller does not learn whether the item exists.
   */
  async function checkWrite(tenant: string, permission: Permission, change: ItemChange): Promise<void> {
    const { namespace, key } = change;
    const found = await items.find(tenant, change);
    const there = found !== undefined && isUnexpired(found, clock.now()) ? found : undefined;
    if (there === undefined && change.kind === "put") return;
    if (!allowsItem(permission, there ?? { namespace, key }))
      throw new ServiceError("store.item_not_found", "Item not found");
  }

  /**
   * Locks items, so that nobody else in this process changes an item between the permission check of a write and the write. Callers without
   * a permission may reach all items: their writes are not checked, and do not wait for each other.
   */
  const locks = new KeyedMutex();

  async function batch(caller: StoreCaller, ops: readonly StoreOp[]) {
    const { tenant, fence, check, permission } = caller;
    if (!Array.isArray(ops)) refuseOperation("ops", "must be a list of operations");
    if (permission !== undefined && ops.length !== 1)
      throw new TypeError("with a permission, a batch has one operation");
    if (ops.length > MAX_BATCH_OPS) refuseOperation("ops", `has more than ${MAX_BATCH_OPS} operations`);
    const writes: (Put | ItemChange)[] = [];
    const reads = ops.map((op, i) => prepare(caller, op, ops.length === 1 ? "" : `ops[${i}].`, writes));
    const results: StoreResult[] = [];
    for (const read of reads) results.push(read === undefined ? null : await read(clock.now()));
    if (writes.length === 0) return results;
    const changes = await changesOf(writes);
    const change = async () => {
      // The embedder and the locks have taken some time, in which a newer attempt of the run may have replaced the caller.
      check?.();
      await items.change(tenant, changes, { now: clock.now(), durable: true, ...(fence && { fence }) });
    };
    const lockOf = ({ namespace, key }: ItemChange) => JSON.stringify([tenant, ...namespace, key]);
    const [only] = changes;
    if (permission === undefined || only === undefined) await locks.runShared(changes.map(lockOf), change);
    else {
      await locks.run(lockOf(only), async () => {
        await checkWrite(tenant, permission, only);
        await change();
      });
    }
    return results;
  }

  return { batch: batch as Store["batch"] };
}

/** An item as clients see it. `refreshed`: the time at which the item's lifetime was restarted; undefined if it was not. */
function shown(record: ItemRecord, refreshed: number | undefined): Item {
  const { namespace, key, value, created_at, updated_at, ttl, expires_at } = record;
  const item = { namespace, key, value, created_at, updated_at };
  if (ttl === null || expires_at === null) return item;
  return { ...item, ttl: ttl / MINUTE, expires_at: refreshed === undefined ? expires_at : refreshed + ttl };
}
