import type { CronRecord } from "../model/cron.ts";
import type { CronStorage, CronUpdater, CronKey, PlannedCron } from "../ports/cron-storage.ts";
import type { Committer } from "./committer.ts";
import { encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";
import {
  cronRowKey,
  cronPrefix,
  parseCronSlotKey,
  CRON_SLOTS_RANGE,
  cronSlotKey,
  prefixRange,
} from "./keys.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { PRESENT_MARK } from "./stored-records.ts";
import type { WriteOrder } from "./write-order.ts";

/** A change in flight. */
interface Changing {
  /** The cron after the change; null: the cron is being deleted. */
  readonly cron: CronRecord | null;
  readonly stored: Promise<void>;
}

export class KeyValueCrons implements CronStorage {
  readonly #kv: KeyValueStore;
  readonly #committer: Committer;
  /** Changes in flight, by the cron's key. */
  readonly #changing = new Map<string, Changing>();
  readonly #order: WriteOrder;

  /** For each tenant, an index of its crons by thread. It is built by the tenant's first request for the crons of a thread. */
  readonly #byThread = new Map<string, ThreadCrons>();

  constructor(kv: KeyValueStore, committer: Committer, order: WriteOrder) {
    this.#kv = kv;
    this.#committer = committer;
    this.#order = order;
  }

  find({ tenant, cron }: CronKey): Eventually<CronRecord | undefined> {
    return andThen(this.#kv.get(cronRowKey(tenant, cron)), (bytes) => bytes && read(bytes, tenant, cron));
  }

  async *list(tenant: string): AsyncGenerator<CronRecord> {
    for await (const [at, bytes] of this.#kv.entries({ ...prefixRange(cronPrefix(tenant)), reverse: true })) {
      yield read(bytes, tenant, at);
    }
  }

  async ofThread(tenant: string, thread: string): Promise<readonly string[]> {
    let of = this.#byThread.get(tenant);
    if (of === undefined) {
      const made = new ThreadCrons();
      // Registered before it is filled, so that the index also gets the changes that are made meanwhile.
      this.#byThread.set(tenant, made);
      made.filled = this.#fill(made, tenant).catch((cause: unknown) => {
        this.#byThread.delete(tenant);
        throw cause;
      });
      of = made;
    }
    await of.filled;
    return of.of(thread);
  }

  async #fill(into: ThreadCrons, tenant: string): Promise<void> {
    for await (const { cron_id, thread_id } of this.list(tenant)) into.add(thread_id, cron_id);
  }

  async next(limit: number): Promise<readonly PlannedCron[]> {
    const found: PlannedCron[] = [];
    if (limit < 1) return found;
    for await (const [mark] of this.#kv.entries({ ...CRON_SLOTS_RANGE, limit }))
      found.push(parseCronSlotKey(mark));
    return found;
  }

  async change(key: CronKey, change: CronUpdater): Promise<CronRecord | undefined> {
    const refusal = this.#committer.refuse();
    if (refusal !== undefined) throw refusal;
    const name = cronRowKey(key.tenant, key.cron);
    const submitted = this.#order.run([name], () => {
      const changing = this.#changing.get(name);
      if (changing !== undefined)
        return this.#submit(key, name, changing.cron ?? undefined, change, changing);
      return andThen(this.find(key), (before) => this.#submit(key, name, before, change));
    });
    const { before, after, mine } = submitted instanceof Promise ? await submitted : submitted;
    try {
      // Waits even if this call changes nothing: the record that it has found may still be in flight, and the caller's next read must find
      // the same.
      await mine?.stored;
      if (after === null && before !== undefined) {
        this.#byThread.get(key.tenant)?.delete(before.thread_id, key.cron);
      }
    } finally {
      if (this.#changing.get(name) === mine) this.#changing.delete(name);
    }
    return (after === undefined ? before : after) ?? undefined;
  }

  /** Calls `change`, and submits its result if it changes the cron. `inFlight`: the previous change, if it is not stored yet. */
  #submit(
    key: CronKey,
    name: string,
    before: CronRecord | undefined,
    change: CronUpdater,
    inFlight?: Changing,
  ) {
    const after = change(before);
    if (after === undefined) return { before, after, mine: inFlight };
    const ops: WriteOperation[] = [];
    if (before !== undefined && before.next !== null) {
      ops.push({ key: cronSlotKey(before.next, key.tenant, key.cron), value: null });
    }
    ops.push({ key: name, value: after === null ? null : encodeWithChecksum(after) });
    if (after !== null && after.next !== null) {
      ops.push({ key: cronSlotKey(after.next, key.tenant, key.cron), value: PRESENT_MARK });
    }
    const mine = { cron: after, stored: this.#committer.store(ops, true) };
    this.#changing.set(name, mine);
    if (after !== null) this.#byThread.get(key.tenant)?.add(after.thread_id, key.cron);
    return { before, after, mine };
  }
}

/** The ids of one tenant's crons, by thread. The index may contain crons that were deleted, so callers read each cron. */
class ThreadCrons {
  filled: Promise<void> = Promise.resolve();
  readonly #ids = new Map<string, Set<string>>();

  add(thread: string | null, cron: string): void {
    if (thread === null) return;
    const known = this.#ids.get(thread);
    if (known === undefined) this.#ids.set(thread, new Set([cron]));
    else known.add(cron);
  }

  delete(thread: string | null, cron: string): void {
    if (thread === null) return;
    const known = this.#ids.get(thread);
    known?.delete(cron);
    if (known?.size === 0) this.#ids.delete(thread);
  }

  of(thread: string): readonly string[] {
    return [...(this.#ids.get(thread) ?? [])];
  }
}

function read(bytes: Buffer, tenant: string, name: string): CronRecord {
  return decodeWithChecksum(bytes, { tenant, thread: "" }, `cron ${name}`) as CronRecord;
}
