import {
  webhookHostOf,
  type Delivery,
  type DeliveryContent,
  type NewDelivery,
} from "../model/webhook-delivery.ts";
import { ServiceError } from "../model/errors.ts";
import type { DeliveryUpdater, DeliveryKey, DeliveryQuery, Outbox, OutboxEntry } from "../ports/outbox.ts";
import type { Committer } from "./committer.ts";
import { encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";
import {
  deliveryContentKey,
  DEAD_LETTERS_RANGE,
  deadLetterKey,
  deliveriesPrefix,
  deliveryRowKey,
  pendingDeliveriesPrefix,
  lastSegment,
  PENDING_DELIVERIES_RANGE,
  pendingDeliveryKey,
  parseDeliveryKey,
  prefixRange,
} from "./keys.ts";
import { andThen, runSteps, awaitValue, type Eventually, type Steps } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation, ScanRange } from "../ports/key-value-store.ts";
import { PRESENT_MARK } from "./stored-records.ts";
import type { WriteOrder } from "./write-order.ts";

const STATUSES = ["pending", "dead"] as const;

/** The outbox of webhook deliveries in a key-value store. The append that ends a run also stores the run's delivery. */
export class KeyValueOutbox implements Outbox {
  readonly #kv: KeyValueStore;
  readonly #committer: Committer;
  readonly #order: WriteOrder;
  /** Changes in flight, by delivery; null: the delivery is being deleted. */
  readonly #changing = new Map<string, { readonly delivery: Delivery | null }>();
  #listener: (target: string) => void = () => undefined;

  constructor(kv: KeyValueStore, committer: Committer, order: WriteOrder) {
    this.#kv = kv;
    this.#committer = committer;
    this.#order = order;
  }

  watch(listener: (target: string) => void): void {
    this.#listener = listener;
  }

  /**
   * Notifies the listener of new deliveries to the targets of these items. Called when the append that contains the deliveries is stored.
   */
  appendStored(items: readonly NewDelivery[]): void {
    for (const { delivery } of items) this.#listener(webhookHostOf(delivery.url));
  }

  async *targets(): AsyncGenerator<string> {
    let { gte } = PENDING_DELIVERIES_RANGE;
    for (;;) {
      const first = await this.#first({ ...PENDING_DELIVERIES_RANGE, gte });
      if (first === undefined) return;
      const { target } = parseDeliveryKey(first);
      yield target;
      gte = prefixRange(pendingDeliveriesPrefix(target)).lt;
    }
  }

  async #first(range: ScanRange): Promise<string | undefined> {
    for await (const [key] of this.#kv.entries({ ...range, limit: 1 })) return key;
    return undefined;
  }

  pending(target: string, limit: number): Promise<readonly OutboxEntry[]> {
    return this.#pending(prefixRange(pendingDeliveriesPrefix(target)), "pending", limit);
  }

  dead(limit: number): Promise<readonly OutboxEntry[]> {
    return this.#pending(DEAD_LETTERS_RANGE, "dead", limit);
  }

  async #pending(
    range: ScanRange,
    status: Delivery["status"],
    limit: number,
  ): Promise<readonly OutboxEntry[]> {
    const found: OutboxEntry[] = [];
    if (limit < 1) return found;
    for await (const [at] of this.#kv.entries({ ...range, limit })) {
      const key = parseDeliveryKey(at);
      const delivery = await this.#readable(key);
      // `#readable` returns a delivery with its change in flight. If that change has given it another status, the delivery is left out
      // here. When the change is stored, the caller reads the deliveries of this target again.
      if (delivery?.status === status) found.push({ tenant: key.tenant, id: key.id, delivery });
    }
    return found;
  }

  /** Reads a delivery. Undefined if the delivery is damaged, so that it does not block the other deliveries to its target. */
  async #readable(key: DeliveryKey): Promise<Delivery | undefined> {
    try {
      return await this.#now(key);
    } catch (cause) {
      if (cause instanceof ServiceError && cause.code === "journal.damaged") return undefined;
      throw cause;
    }
  }

  find(key: DeliveryKey): Eventually<Delivery | undefined> {
    return runSteps(this.#find(key));
  }

  *#find(key: DeliveryKey): Steps<Delivery | undefined> {
    // The first status is read again at the end, because a dead delivery may have become pending between the two reads.
    for (const status of [...STATUSES, STATUSES[0]]) {
      const bytes = yield* awaitValue(this.#kv.get(deliveryRowKey(key.tenant, status, key.id)));
      if (bytes !== undefined) return decodeDeliveryRow(bytes, key) as Delivery;
    }
    return undefined;
  }

  content(key: DeliveryKey): Eventually<DeliveryContent | undefined> {
    return andThen(
      this.#kv.get(deliveryContentKey(key.tenant, key.id)),
      (bytes) => bytes && (decodeDeliveryRow(bytes, key) as DeliveryContent),
    );
  }

  async count(most: number): Promise<{ readonly pending: number; readonly dead: number }> {
    const [pending, dead] = await Promise.all([
      this.#countIn(PENDING_DELIVERIES_RANGE, most),
      this.#countIn(DEAD_LETTERS_RANGE, most),
    ]);
    return { pending, dead };
  }

  async #countIn(range: ScanRange, limit: number): Promise<number> {
    let count = 0;
    for await (const _ of this.#kv.entries({ ...range, limit })) count++;
    return count;
  }

  async list(tenant: string, { status, limit, offset }: DeliveryQuery): Promise<readonly Delivery[]> {
    const found: Delivery[] = [];
    let skip = offset;
    for (const one of STATUSES) {
      if (found.length >= limit || (status !== undefined && one !== status)) continue;
      const range = { ...prefixRange(deliveriesPrefix(tenant, one)), reverse: true };
      for await (const [at, bytes] of this.#kv.entries(range)) {
        if (skip-- > 0) continue;
        found.push(decodeDeliveryRow(bytes, { tenant, id: lastSegment(at) }) as Delivery);
        if (found.length >= limit) break;
      }
    }
    return found;
  }

  async change(
    key: DeliveryKey,
    change: DeliveryUpdater,
    { durable }: { readonly durable: boolean },
  ): Promise<Delivery | undefined> {
    const refusal = this.#committer.refuse();
    if (refusal !== undefined) throw refusal;
    const name = deliveryName(key);
    const submitted = this.#order.run([name], () =>
      andThen(this.#now(key), (before) => {
        const after = before && change(before);
        if (before === undefined || after === undefined) return { before };
        const mine = { delivery: after };
        this.#changing.set(name, mine);
        const ops: WriteOperation[] = unmark(key, before);
        if (after === null) ops.push({ key: deliveryContentKey(key.tenant, key.id), value: null });
        else ops.push(...mark(key, after));
        return { mine, stored: this.#committer.store(ops, durable) };
      }),
    );
    const done = submitted instanceof Promise ? await submitted : submitted;
    if (done.mine === undefined) return done.before;
    try {
      await done.stored;
    } finally {
      if (this.#changing.get(name) === done.mine) this.#changing.delete(name);
    }
    const after = done.mine.delivery;
    if (after?.status === "pending") this.#listener(webhookHostOf(after.url));
    return after ?? undefined;
  }

  /** The delivery as it will be when all changes in flight are stored. */
  #now(key: DeliveryKey): Eventually<Delivery | undefined> {
    const changing = this.#changing.get(deliveryName(key));
    return changing === undefined ? this.find(key) : (changing.delivery ?? undefined);
  }
}

/** Adds the operations that store a new delivery to `ops`, the operations of an append. */
export function deliveryOps(ops: WriteOperation[], tenant: string, { delivery, content }: NewDelivery): void {
  const key = { tenant, id: delivery.id };
  ops.push(...mark(key, delivery), {
    key: deliveryContentKey(tenant, delivery.id),
    value: encodeWithChecksum(content),
  });
}

function mark({ tenant, id }: DeliveryKey, delivery: Delivery): WriteOperation[] {
  return [
    { key: deliveryRowKey(tenant, delivery.status, id), value: encodeWithChecksum(delivery) },
    { key: markKey({ tenant, id }, delivery), value: PRESENT_MARK },
  ];
}

function unmark(key: DeliveryKey, delivery: Delivery): WriteOperation[] {
  return [
    { key: deliveryRowKey(key.tenant, delivery.status, key.id), value: null },
    { key: markKey(key, delivery), value: null },
  ];
}

function markKey({ tenant, id }: DeliveryKey, { status, due, url }: Delivery): string {
  return status === "pending"
    ? pendingDeliveryKey(webhookHostOf(url), due, tenant, id)
    : deadLetterKey(due, tenant, id);
}

const deliveryName = ({ tenant, id }: DeliveryKey): string => deliveryContentKey(tenant, id);

function decodeDeliveryRow(bytes: Buffer, { tenant, id }: DeliveryKey): unknown {
  return decodeWithChecksum(bytes, { tenant, thread: "" }, `delivery ${id}`);
}
