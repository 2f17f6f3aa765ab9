import type { CronRecord } from "../model/cron.ts";
import type { CronBook, CronChange, CronKey, CronSlot } from "../ports/cron-book.ts";
import type { Committer } from "./committer.ts";
import { seal, unseal } from "./envelope.ts";
import { cronKey, cronPrefix, parseSlot, SLOTS, slotKey, within } from "./keys.ts";
import type { Kv, Op } from "./kv.ts";
import { MARK } from "./records.ts";

/** The crons over a store of keys and values. */
export class KvCrons implements CronBook {
  readonly #kv: Kv;
  readonly #committer: Committer;
  /** Changes on their way to storage, by the cron; null: it is being deleted. */
  readonly #changing = new Map<
    string,
    { readonly cron: CronRecord | null; readonly stored: Promise<void> }
  >();

  constructor(kv: Kv, committer: Committer) {
    this.#kv = kv;
    this.#committer = committer;
  }

  find({ tenant, cron }: CronKey): CronRecord | undefined {
    const bytes = this.#kv.getSync(cronKey(tenant, cron));
    return bytes && read(bytes, tenant, cron);
  }

  async *list(tenant: string): AsyncGenerator<CronRecord> {
    for await (const [at, bytes] of this.#kv.entries({ ...within(cronPrefix(tenant)), reverse: true })) {
      yield read(bytes, tenant, at);
    }
  }

  async next(limit: number): Promise<readonly CronSlot[]> {
    const found: CronSlot[] = [];
    if (limit < 1) return found;
    for await (const [mark] of this.#kv.entries({ ...SLOTS, limit })) found.push(parseSlot(mark));
    return found;
  }

  async change(key: CronKey, change: CronChange): Promise<CronRecord | undefined> {
    const { refusal } = this.#committer;
    if (refusal !== undefined) throw refusal;
    const name = cronKey(key.tenant, key.cron);
    const changing = this.#changing.get(name);
    const before = changing === undefined ? this.find(key) : (changing.cron ?? undefined);
    const after = change(before);
    if (after === undefined) {
      // What is answered may be on its way: who looks again at once would find the disk as it was.
      await changing?.stored;
      return before;
    }
    const ops: Op[] = [];
    if (before !== undefined && before.next !== null) {
      ops.push({ key: slotKey(before.next, key.tenant, key.cron), value: null });
    }
    ops.push({ key: name, value: after === null ? null : seal(after) });
    if (after !== null && after.next !== null) {
      ops.push({ key: slotKey(after.next, key.tenant, key.cron), value: MARK });
    }
    const stored = new Promise<void>((resolve, reject) => {
      this.#committer.submit({ ops, durable: true, stored: resolve, failed: reject });
    });
    const mine = { cron: after, stored };
    this.#changing.set(name, mine);
    try {
      await stored;
    } finally {
      if (this.#changing.get(name) === mine) this.#changing.delete(name);
    }
    return after ?? undefined;
  }
}

function read(bytes: Buffer, tenant: string, name: string): CronRecord {
  return unseal(bytes, { tenant, thread: "" }, `cron ${name}`) as CronRecord;
}
