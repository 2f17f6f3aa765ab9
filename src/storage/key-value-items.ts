import type { ItemKey, Namespace } from "../model/store-item.ts";
import type { JsonObject } from "../model/json.ts";
import { threadMapKey } from "../model/thread.ts";
import type {
  Expiring,
  ItemChange,
  ItemHead,
  ItemRecord,
  StoreItems,
  ItemVectors,
  ItemWrite,
  ThreadFence,
} from "../ports/store-items.ts";
import type { Committer } from "./committer.ts";
import { damagedError, encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";
import { fencedError } from "./fence-check.ts";
import type { ThreadHeads } from "./thread-heads.ts";
import {
  ITEM_EXPIRIES_RANGE,
  itemExpiryKey,
  itemRowKey,
  type ItemKeyKind,
  itemNamespaceRange,
  exactItemNamespaceRange,
  parseItemExpiryKey,
  parseItemKey,
} from "./keys.ts";
import { allEventually, runSteps, awaitValue, type Eventually, type Steps } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation, ScanRange } from "../ports/key-value-store.ts";
import { PRESENT_MARK } from "./stored-records.ts";
import { createRecordRowConverter } from "./record-row-conversion.ts";
import type { WriteOrder } from "./write-order.ts";

type Stored = Omit<ItemHead, "namespace" | "key">;
const rows = createRecordRowConverter<Stored>()(["created_at", "updated_at", "ttl", "expires_at", "bytes"]);

/** Changes of items that are in flight, by item key; null: the item is being deleted. */
type Changes = Map<string, { readonly head: Stored | null }>;

/**
 * The items of the long-term store (LangGraph's store), in a key-value store. The record, the value and the vectors of an item have
 * separate keys. So a search first reads only the records, and then only the values that it returns or needs for a filter.
 */
export class KeyValueItems implements StoreItems {
  readonly #kv: KeyValueStore;
  readonly #committer: Committer;
  readonly #heads: ThreadHeads;
  readonly #order: WriteOrder;
  readonly #changing: Changes = new Map();

  constructor(kv: KeyValueStore, committer: Committer, heads: ThreadHeads, order: WriteOrder) {
    this.#kv = kv;
    this.#committer = committer;
    this.#heads = heads;
    this.#order = order;
  }

  find(tenant: string, place: ItemKey): Eventually<ItemRecord | undefined> {
    return runSteps(this.#find(tenant, place));
  }

  *#find(tenant: string, place: ItemKey): Steps<ItemRecord | undefined> {
    const readHead = () => this.#kv.get(itemRowKey(tenant, "s", place));
    for (;;) {
      const head = yield* awaitValue(readHead());
      if (head === undefined) return undefined;
      const reading = this.#kv.get(itemRowKey(tenant, "sv", place));
      const bytes = yield* awaitValue(reading);
      // A value that was read asynchronously may belong to another version of the item than the record. If the record has changed
      // meanwhile, both are read again.
      if (reading instanceof Promise && (yield* awaitValue(readHead()))?.equals(head) !== true) continue;
      if (bytes === undefined) throw damagedError({ tenant, thread: "" }, `${itemLabel(place)} has no value`);
      const value = decodeWithChecksum(
        bytes,
        { tenant, thread: "" },
        `the value of ${itemLabel(place)}`,
      ) as JsonObject;
      const { namespace, key } = place;
      return { namespace, key, ...decodeItemHead(head, tenant, place), value };
    }
  }

  async *heads(tenant: string, prefix: Namespace): AsyncGenerator<ItemHead> {
    for await (const [at, bytes] of this.#kv.entries(itemNamespaceRange(tenant, "s", prefix))) {
      const { namespace, key } = itemPlaceOf(at);
      yield { namespace, key, ...decodeItemHead(bytes, tenant, { namespace, key }) };
    }
  }

  async *vectors(tenant: string, prefix: Namespace): AsyncGenerator<ItemVectors> {
    for await (const [at, bytes] of this.#kv.entries(itemNamespaceRange(tenant, "sx", prefix))) {
      const { namespace, key } = itemPlaceOf(at);
      const what = `the vectors of ${itemLabel({ namespace, key })}`;
      const packed = decodeWithChecksum(bytes, { tenant, thread: "" }, what) as readonly Uint8Array[];
      yield { namespace, key, vectors: packed.map(floats) };
    }
  }

  async *namespaces(
    tenant: string,
    { prefix, depth, now }: { readonly prefix: Namespace; readonly depth: number; readonly now: number },
  ): AsyncGenerator<Namespace> {
    let yielded: Namespace | undefined;
    const { lt } = itemNamespaceRange(tenant, "s", prefix);
    for (let { gte } = itemNamespaceRange(tenant, "s", prefix); ;) {
      const found = await this.#firstAlive(tenant, { gte, lt }, now);
      if (found === undefined) return;
      const namespace = found.slice(0, depth);
      // Skips a namespace that, cut to `depth` labels, is equal to the previous one.
      if (yielded === undefined || !isSame(yielded, namespace)) yield namespace;
      yielded = namespace;
      // Skips the other items of this namespace. If the namespace was cut, skips the items of all namespaces that begin with the cut one.
      gte = (
        found.length > depth
          ? itemNamespaceRange(tenant, "s", namespace)
          : exactItemNamespaceRange(tenant, "s", found)
      ).lt;
    }
  }

  /** The namespace of the first unexpired item in a range. */
  async #firstAlive(tenant: string, range: ScanRange, now: number): Promise<Namespace | undefined> {
    // Usually the first item has not expired, so only one is read. If it has expired, many others may have expired too, and the whole range
    // is read.
    for (const limit of [1, undefined]) {
      let seen = 0;
      for await (const [at, bytes] of this.#kv.entries({ ...range, ...(limit && { limit }) })) {
        seen++;
        const place = itemPlaceOf(at);
        if (isAlive(decodeItemHead(bytes, tenant, place), now)) return place.namespace;
      }
      if (seen === 0) return undefined;
    }
    return undefined;
  }

  async expiring(limit: number): Promise<readonly Expiring[]> {
    const found: Expiring[] = [];
    if (limit < 1) return found;
    for await (const [at] of this.#kv.entries({ ...ITEM_EXPIRIES_RANGE, limit })) {
      const { tenant, due, namespace, key } = parseItemExpiryKey(at);
      found.push({ tenant, namespace, key, expires_at: due });
    }
    return found;
  }

  async change(tenant: string, changes: readonly ItemChange[], write: ItemWrite): Promise<void> {
    const refusal = this.#committer.refuse();
    if (refusal !== undefined) throw refusal;
    const records = changes.map((change) => itemRowKey(tenant, "s", change));
    // With the thread among the records, no append can change its epoch between the check of the fence and the write.
    if (write.fence !== undefined) records.push(threadMapKey(write.fence.thread));
    const submitted = this.#order.run(records, () => runSteps(this.#submit(tenant, changes, write)));
    const { mine, stored } = submitted instanceof Promise ? await submitted : submitted;
    try {
      await stored;
    } finally {
      for (const [at, one] of mine) if (this.#changing.get(at) === one) this.#changing.delete(at);
    }
  }

  *#submit(tenant: string, changes: readonly ItemChange[], write: ItemWrite) {
    if (write.fence !== undefined) yield* this.#judge(write.fence);
    const stored = yield* this.#readHeads(tenant, changes);
    const ops: WriteOperation[] = [];
    const mine: Changes = new Map();
    for (const change of changes) this.#apply(tenant, change, write.now, ops, mine, stored);
    if (ops.length === 0) return { mine, stored: Promise.resolve() };
    for (const [at, one] of mine) this.#changing.set(at, one);
    return { mine, stored: this.#committer.store(ops, write.durable) };
  }

  /**
   * Refuses the write if the thread does not exist, or has another epoch than the fence, because a newer attempt has replaced the writer.
   * The thread gets no {@link ThreadHead}, which only writes to the thread need.
   */
  *#judge({ thread, epoch }: ThreadFence): Steps<void> {
    const { epoch: now, seq } =
      this.#heads.peek(thread) ?? (yield* awaitValue(this.#heads.thread(thread))) ?? NOTHING;
    if (seq === 0 || now !== epoch) throw fencedError({ key: thread, epoch: now }, epoch);
  }

  /** Reads the stored rows (records without values) of the items that have no change in flight. */
  *#readHeads(
    tenant: string,
    changes: readonly ItemChange[],
  ): Steps<ReadonlyMap<string, Stored | undefined>> {
    const found = new Map<string, Stored | undefined>();
    for (;;) {
      // Repeated after each wait, because a change in flight may meanwhile have been stored or have failed.
      const missing = new Map(changes.map((change) => [itemRowKey(tenant, "s", change), change] as const));
      for (const at of missing.keys()) if (found.has(at) || this.#changing.has(at)) missing.delete(at);
      if (missing.size === 0) return found;
      const read = yield* awaitValue(allEventually(Array.from(missing.keys(), (at) => this.#kv.get(at))));
      for (const [i, [at, change]] of [...missing].entries()) {
        const bytes = read[i];
        found.set(at, bytes && decodeItemHead(bytes, tenant, change));
      }
    }
  }

  #apply(
    tenant: string,
    change: ItemChange,
    now: number,
    ops: WriteOperation[],
    mine: Changes,
    stored: ReadonlyMap<string, Stored | undefined>,
  ): void {
    const at = itemRowKey(tenant, "s", change);
    const changing = mine.get(at) ?? this.#changing.get(at);
    const before = changing === undefined ? stored.get(at) : (changing.head ?? undefined);
    const head = after(change, before, now);
    if (change.kind === "expire")
      ops.push({ key: itemExpiryKey(change.expires_at, tenant, change), value: null });
    if (head === undefined) return;
    const put = (room: ItemKeyKind, value: Buffer | null) =>
      ops.push({ key: itemRowKey(tenant, room, change), value });
    const { kind } = change;
    if (head === null) {
      for (const room of ["s", "sv", "sx"] as const) put(room, null);
    } else if (kind === "put") {
      const value = encodeWithChecksum(change.value);
      const stored = { ...head, bytes: value.length };
      put("s", encodeWithChecksum(rows.row(stored)));
      put("sv", value);
      put("sx", change.vectors.length === 0 ? null : encodeWithChecksum(change.vectors.map(bytesOf)));
      mine.set(at, { head: stored });
    } else put("s", encodeWithChecksum(rows.row(head)));
    if (kind !== "put") mine.set(at, { head });
    const [was, is] = [before?.expires_at ?? null, head?.expires_at ?? null];
    if (was === is) return;
    if (was !== null) ops.push({ key: itemExpiryKey(was, tenant, change), value: null });
    if (is !== null) ops.push({ key: itemExpiryKey(is, tenant, change), value: PRESENT_MARK });
  }
}

const NOTHING = { epoch: 0, seq: 0 };

/** The record of an item after a change. Null: the item is deleted. Undefined: nothing changes. */
function after(change: ItemChange, before: Stored | undefined, now: number): Stored | null | undefined {
  switch (change.kind) {
    case "put": {
      const { ttl } = change;
      const created_at = before !== undefined && isAlive(before, now) ? before.created_at : now;
      return { created_at, updated_at: now, ttl, expires_at: ttl === null ? null : now + ttl, bytes: 0 };
    }
    case "delete":
      return before === undefined ? undefined : null;
    case "refresh":
      if (before === undefined || before.ttl === null || !isAlive(before, now)) return undefined;
      return { ...before, expires_at: now + before.ttl };
    case "expire":
      return before === undefined || isAlive(before, now) ? undefined : null;
  }
}

const isAlive = ({ expires_at }: Stored, now: number): boolean => expires_at === null || expires_at > now;

export function decodeItemHead(bytes: Buffer, tenant: string, place: ItemKey): Stored {
  return rows.record(decodeWithChecksum(bytes, { tenant, thread: "" }, itemLabel(place)));
}

function itemPlaceOf(at: string): ItemKey {
  const place = parseItemKey(at);
  if (place === undefined) throw new TypeError(`${at} is no item`);
  return place;
}

export function itemLabel({ namespace, key }: ItemKey): string {
  return `item ${JSON.stringify(key)} of ${JSON.stringify(namespace)}`;
}

const isSame = (a: Namespace, b: Namespace): boolean =>
  a.length === b.length && a.every((label, i) => label === b[i]);

const bytesOf = (vector: Float32Array): Uint8Array =>
  new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);

/** Converts bytes to floats. Copies the bytes, because a `Float32Array` needs them aligned, and these may begin at any offset. */
const floats = (bytes: Uint8Array): Float32Array => new Float32Array(new Uint8Array(bytes).buffer);
