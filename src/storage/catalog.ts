import {
  type AssistantFilter,
  type AssistantRecord,
  type AssistantVersion,
  matches,
} from "../model/assistant.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Catalog, CatalogChange, ThreadQuery } from "../ports/catalog.ts";
import type { Items } from "../ports/items.ts";
import type { Committer } from "./committer.ts";
import { seal, unseal } from "./envelope.ts";
import {
  assistantKey,
  assistantOrderKey,
  assistantOrderPrefix,
  indexKey,
  indexPrefix,
  lastSegment,
  versionKey,
  versionPrefix,
  within,
} from "./keys.ts";
import type { Kv, Op } from "./kv.ts";
import { MARK } from "./records.ts";

/** The catalog over a store of keys and values; the journal's appends keep its index of threads. */
export class KvCatalog implements Catalog {
  readonly #kv: Kv;
  readonly #committer: Committer;
  readonly items: Items;

  constructor(kv: Kv, committer: Committer, items: Items) {
    this.#kv = kv;
    this.#committer = committer;
    this.items = items;
  }

  assistant(tenant: string, id: string): AssistantRecord | undefined {
    const bytes = this.#kv.getSync(assistantKey(tenant, id));
    return bytes && (unseal(bytes, { tenant, thread: "" }, `assistant ${id}`) as AssistantRecord);
  }

  async *assistants(tenant: string, filter: AssistantFilter): AsyncGenerator<AssistantRecord> {
    for await (const [at] of this.#kv.entries({ ...within(assistantOrderPrefix(tenant)), reverse: true })) {
      const record = this.assistant(tenant, lastSegment(at));
      // A record that was put anew with another date stands in two places; one of them is right.
      if (record !== undefined && orderOf(tenant, record) === at && matches(record, filter)) yield record;
    }
  }

  async *versions(tenant: string, assistant: string): AsyncGenerator<AssistantVersion> {
    const range = { ...within(versionPrefix(tenant, assistant)), reverse: true };
    for await (const [at, bytes] of this.#kv.entries(range)) {
      yield unseal(bytes, { tenant, thread: "" }, at) as AssistantVersion;
    }
  }

  version(tenant: string, assistant: string, version: number): AssistantVersion | undefined {
    const at = versionKey(tenant, assistant, version);
    const bytes = this.#kv.getSync(at);
    return bytes && (unseal(bytes, { tenant, thread: "" }, at) as AssistantVersion);
  }

  transact(tenant: string, changes: readonly CatalogChange[]): Promise<void> {
    const deleted = changes.flatMap((change) => (change.kind === "assistant.delete" ? change.assistant : []));
    if (deleted.length === 0) return this.#store(tenant, changes, new Map());
    return this.#versionsOf(tenant, deleted).then((versions) => this.#store(tenant, changes, versions));
  }

  /** Where the versions of these assistants are. */
  async #versionsOf(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const found = new Map<string, string[]>();
    for (const id of ids) {
      const keys: string[] = [];
      for await (const [at] of this.#kv.entries(within(versionPrefix(tenant, id)))) keys.push(at);
      found.set(id, keys);
    }
    return found;
  }

  #store(
    tenant: string,
    changes: readonly CatalogChange[],
    versions: ReadonlyMap<string, readonly string[]>,
  ): Promise<void> {
    const { refusal } = this.#committer;
    if (refusal !== undefined) return Promise.reject(refusal);
    const ops: Op[] = [];
    try {
      for (const change of changes) this.#apply(tenant, change, versions, ops);
    } catch (cause) {
      return Promise.reject(cause);
    }
    if (ops.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#committer.submit({ ops, durable: true, stored: resolve, failed: reject });
    });
  }

  #apply(
    tenant: string,
    change: CatalogChange,
    versions: ReadonlyMap<string, readonly string[]>,
    ops: Op[],
  ): void {
    if (change.kind === "assistant.version") {
      const { assistant_id, version } = change.version;
      ops.push({ key: versionKey(tenant, assistant_id, version), value: seal(change.version) });
      return;
    }
    const id = change.kind === "assistant.put" ? change.assistant.assistant_id : change.assistant;
    const before = this.assistant(tenant, id);
    if (before !== undefined) ops.push({ key: orderOf(tenant, before), value: null });
    if (change.kind === "assistant.delete") {
      ops.push({ key: assistantKey(tenant, id), value: null });
      for (const key of versions.get(id) ?? []) ops.push({ key, value: null });
      return;
    }
    ops.push({ key: assistantKey(tenant, id), value: seal(change.assistant) });
    ops.push({ key: orderOf(tenant, change.assistant), value: MARK });
  }

  async threads(tenant: string, { limit, after }: ThreadQuery): Promise<readonly ThreadKey[]> {
    const found: ThreadKey[] = [];
    if (limit < 1) return found;
    const range = within(indexPrefix(tenant));
    // The first possible key behind `after`.
    const gte = after === undefined ? range.gte : `${indexKey({ tenant, thread: after })}!`;
    for await (const [at] of this.#kv.entries({ gte, lt: range.lt, limit })) {
      found.push({ tenant, thread: lastSegment(at) });
    }
    return found;
  }
}

function orderOf(tenant: string, { created_at, assistant_id }: AssistantRecord): string {
  return assistantOrderKey(tenant, Math.max(0, Math.trunc(created_at)), assistant_id);
}
