import {
  type AssistantFilter,
  type AssistantRecord,
  type AssistantVersion,
  matchesAssistant,
} from "../model/assistant.ts";
import { matchesThread } from "../model/thread-search.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type {
  Catalog,
  CatalogChange,
  RunSearch,
  RunRecordPage,
  ThreadQuery,
  ThreadSearch,
  ThreadSelection,
  ThreadRecordPage,
} from "../ports/catalog.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import { andThen, runSteps, awaitValue, type Eventually, type Steps } from "../ports/eventually.ts";
import type { StoreItems } from "../ports/store-items.ts";
import type { Committer } from "./committer.ts";
import { encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";
import {
  assistantKey,
  assistantOrderKey,
  assistantOrderPrefix,
  THREAD_EXPIRIES_RANGE,
  threadRecordKey,
  threadIdKey,
  threadIdsPrefix,
  lastSegment,
  parseThreadExpiryKey,
  threadPrefix,
  assistantVersionKey,
  versionPrefix,
  prefixRange,
} from "./keys.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { PRESENT_MARK, threadRowConverter } from "./stored-records.ts";
import { type ThreadMatches, type PageRange, raceScans } from "./thread-scan-race.ts";
import { searchRuns } from "./run-search.ts";
import { SemaphorePerTenant } from "../ports/fair-semaphore.ts";
import { ThreadIndexScans, type ScanQuery } from "./thread-index-scans.ts";
import type { WriteOrder } from "./write-order.ts";

/**
 * How much a search reads after its page to count further matches, in units of cost: an index key costs 1, a record 5. So a search that
 * needs no records counts more matches.
 */
const READ_AHEAD_COST = 25;

/**
 * How many searches of one tenant may run at once. An iterator of LevelDB keeps its current block in memory, and index keys may share a
 * block with a value of 14 MB. With 120 searches at once, these blocks took 1.6 GB, and reading them kept Node's four pool threads busy for
 * seconds.
 */
const MAX_SEARCHES_PER_TENANT = 2;

/**
 * A {@link Catalog} (assistants, store items, and searches for threads and runs) in a key-value store. The index of threads is only read
 * here: each write to a thread updates it.
 */
export class KeyValueCatalog implements Catalog {
  readonly #kv: KeyValueStore;
  readonly #committer: Committer;
  readonly #order: WriteOrder;
  readonly #budget: TimeBudget;
  readonly #searches = new SemaphorePerTenant(MAX_SEARCHES_PER_TENANT);
  readonly items: StoreItems;

  constructor(
    kv: KeyValueStore,
    committer: Committer,
    order: WriteOrder,
    budget: TimeBudget,
    items: StoreItems,
  ) {
    this.#kv = kv;
    this.#committer = committer;
    this.#order = order;
    this.#budget = budget;
    this.items = items;
  }

  assistant(tenant: string, id: string): Eventually<AssistantRecord | undefined> {
    return andThen(
      this.#kv.get(assistantKey(tenant, id)),
      (bytes) =>
        bytes && (decodeWithChecksum(bytes, { tenant, thread: "" }, `assistant ${id}`) as AssistantRecord),
    );
  }

  async *assistants(tenant: string, filter: AssistantFilter): AsyncGenerator<AssistantRecord> {
    for await (const [at] of this.#kv.entries({
      ...prefixRange(assistantOrderPrefix(tenant)),
      reverse: true,
    })) {
      const record = await this.assistant(tenant, lastSegment(at));
      // Skips an outdated entry of the index: while the index was read, the assistant was stored with another date.
      if (record !== undefined && orderOf(tenant, record) === at && matchesAssistant(record, filter))
        yield record;
    }
  }

  async *versions(tenant: string, assistant: string): AsyncGenerator<AssistantVersion> {
    const range = { ...prefixRange(versionPrefix(tenant, assistant)), reverse: true };
    for await (const [at, bytes] of this.#kv.entries(range)) {
      yield decodeWithChecksum(bytes, { tenant, thread: "" }, at) as AssistantVersion;
    }
  }

  version(tenant: string, assistant: string, version: number): Eventually<AssistantVersion | undefined> {
    const at = assistantVersionKey(tenant, assistant, version);
    return andThen(
      this.#kv.get(at),
      (bytes) => bytes && (decodeWithChecksum(bytes, { tenant, thread: "" }, at) as AssistantVersion),
    );
  }

  transact(tenant: string, changes: readonly CatalogChange[]): Promise<void> {
    const deleted = changes.flatMap((change) => (change.kind === "assistant.delete" ? change.assistant : []));
    if (deleted.length === 0) return this.#store(tenant, changes, new Map());
    return this.#versionsOf(tenant, deleted).then((versions) => this.#store(tenant, changes, versions));
  }

  /** The keys of all versions of these assistants, by assistant. */
  async #versionsOf(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const found = new Map<string, string[]>();
    for (const id of ids) {
      const keys: string[] = [];
      for await (const [at] of this.#kv.entries(prefixRange(versionPrefix(tenant, id)))) keys.push(at);
      found.set(id, keys);
    }
    return found;
  }

  /** Stores changes. Changes of one assistant are stored in the order of the calls. */
  async #store(
    tenant: string,
    changes: readonly CatalogChange[],
    versions: ReadonlyMap<string, readonly string[]>,
  ): Promise<void> {
    const refusal = this.#committer.refuse();
    if (refusal !== undefined) throw refusal;
    const submitted = this.#order.run(
      changes.map((change) => assistantKey(tenant, assistantOf(change))),
      () =>
        andThen(runSteps(this.#opsOf(tenant, changes, versions)), (ops) => ({
          stored: ops.length === 0 ? Promise.resolve() : this.#committer.store(ops, true),
        })),
    );
    await (
      await submitted
    ).stored;
  }

  *#opsOf(
    tenant: string,
    changes: readonly CatalogChange[],
    versions: ReadonlyMap<string, readonly string[]>,
  ): Steps<readonly WriteOperation[]> {
    const ops: WriteOperation[] = [];
    for (const change of changes) yield* this.#apply(tenant, change, versions, ops);
    return ops;
  }

  *#apply(
    tenant: string,
    change: CatalogChange,
    versions: ReadonlyMap<string, readonly string[]>,
    ops: WriteOperation[],
  ): Steps<void> {
    if (change.kind === "assistant.version") {
      const { assistant_id, version } = change.version;
      ops.push({
        key: assistantVersionKey(tenant, assistant_id, version),
        value: encodeWithChecksum(change.version),
      });
      return;
    }
    const id = assistantOf(change);
    const before = yield* awaitValue(this.assistant(tenant, id));
    if (before !== undefined) ops.push({ key: orderOf(tenant, before), value: null });
    if (change.kind === "assistant.delete") {
      ops.push({ key: assistantKey(tenant, id), value: null });
      for (const key of versions.get(id) ?? []) ops.push({ key, value: null });
      return;
    }
    ops.push({ key: assistantKey(tenant, id), value: encodeWithChecksum(change.assistant) });
    ops.push({ key: orderOf(tenant, change.assistant), value: PRESENT_MARK });
  }

  async threads(tenant: string, { limit, after }: ThreadQuery): Promise<readonly ThreadKey[]> {
    const found: ThreadKey[] = [];
    if (limit < 1) return found;
    const range = prefixRange(threadIdsPrefix(tenant));
    // The range begins after the key of `after`.
    const gte = after === undefined ? range.gte : `${threadIdKey({ tenant, thread: after })}!`;
    for await (const [at] of this.#kv.entries({ gte, lt: range.lt, limit })) {
      found.push({ tenant, thread: lastSegment(at) });
    }
    return found;
  }

  async searchThreads(tenant: string, search: ThreadSearch): Promise<ThreadRecordPage> {
    const { limit, offset, sort_by, sort_order, ...selection } = search;
    const page = { limit, offset, ahead: READ_AHEAD_COST };
    const found = await this.#find(tenant, selection, { sort_by, reverse: sort_order === "desc" }, page);
    const { threads, total, isAll } = found;
    const more = !isAll || total > offset + limit;
    return { threads, total: more ? Math.max(total, offset + limit + 1) : total, more };
  }

  async countThreads(tenant: string, selection: ThreadSelection): Promise<number> {
    const page = { limit: 0, offset: 0, ahead: Number.POSITIVE_INFINITY };
    const { total } = await this.#find(tenant, selection, { sort_by: "thread_id", reverse: false }, page);
    return total;
  }

  #find(
    tenant: string,
    selection: ThreadSelection,
    order: Pick<ScanQuery, "sort_by" | "reverse">,
    page: PageRange,
  ): Promise<ThreadMatches> {
    return this.#searches.run(tenant, () => this.#scan(tenant, selection, order, page));
  }

  #scan(
    tenant: string,
    { keep, ...filter }: ThreadSelection,
    order: Pick<ScanQuery, "sort_by" | "reverse">,
    page: PageRange,
  ): Promise<ThreadMatches> {
    const wanted: ScanQuery = { filter, isPartial: keep !== undefined, ...order };
    const read = (thread: string) => this.#thread({ tenant, thread });
    const find = (thread: string): Eventually<ThreadRecord | undefined> =>
      andThen(read(thread), (record) => {
        if (record === undefined || !matchesThread(record, filter)) return undefined;
        if (keep === undefined) return record;
        return andThen(keep(record), (fits) => (fits ? record : undefined));
      });
    const scans = new ThreadIndexScans(this.#kv, tenant, read, wanted).plan(wanted);
    return raceScans(scans, wanted, page, find, this.#budget.share(tenant));
  }

  /** Reads a thread's record without the record cache, because a search would evict the records that are in use. */
  #thread(key: ThreadKey): Eventually<ThreadRecord | undefined> {
    return andThen(
      this.#kv.get(threadRecordKey(threadPrefix(key))),
      (bytes) => bytes && threadRowConverter.record(decodeWithChecksum(bytes, key, "its record")),
    );
  }

  searchRuns(tenant: string, search: RunSearch): Promise<RunRecordPage> {
    return this.#searches.run(tenant, () => searchRuns(this.#kv, tenant, search, this.#budget.share(tenant)));
  }

  async dueThreads(now: number, limit: number): Promise<readonly ThreadKey[]> {
    const found: ThreadKey[] = [];
    if (limit < 1) return found;
    for await (const [at] of this.#kv.entries({ ...THREAD_EXPIRIES_RANGE, limit })) {
      const { due, key } = parseThreadExpiryKey(at);
      if (due > now) break;
      found.push(key);
    }
    return found;
  }
}

function assistantOf(change: CatalogChange): string {
  switch (change.kind) {
    case "assistant.put":
      return change.assistant.assistant_id;
    case "assistant.version":
      return change.version.assistant_id;
    case "assistant.delete":
      return change.assistant;
  }
}

function orderOf(tenant: string, { created_at, assistant_id }: AssistantRecord): string {
  return assistantOrderKey(tenant, Math.max(0, Math.trunc(created_at)), assistant_id);
}
