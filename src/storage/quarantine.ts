import type { ThreadKey } from "../model/thread.ts";
import { damagedError } from "./checksum-envelope.ts";
import {
  DELAYED_RANGE,
  ALL_KEYS,
  THREAD_EXPIRIES_RANGE,
  TIMERS_RANGE,
  parseTimerKey,
  parseDueRunKey,
  parseThreadExpiryKey,
  threadOfIndexKey,
  parseThreadMark,
  splitThreadKey,
  threadPrefix,
  prefixRange,
} from "./keys.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { KeyValueEntry, KeyValueStore, WriteOperation, ScanRange } from "../ports/key-value-store.ts";
import type { KeyRange } from "./leveldb/table-check.ts";

/** The explanation in errors for quarantined data. */
const WHY =
  'something that was stored has been lost, and this may be an older state of it; restore a backup, or accept the loss with "heddle repair --accept"';

/** The quarantined data: keys whose stored values may be outdated, because a part of the database was lost. */
export class QuarantinedData {
  /** The prefixes of the quarantined threads, and quarantined keys that belong to no thread. */
  readonly #touched = new Set<string>();
  readonly #ranges: KeyRange[] = [];
  #isEverything = false;

  get isEmpty(): boolean {
    return !this.#isEverything && this.#touched.size === 0 && this.#ranges.length === 0;
  }

  /**
   * The numbers of quarantined threads, other keys, and ranges of keys. A range may include further threads and keys. If all data is
   * quarantined, that counts as one range.
   */
  get counts(): { readonly threads: number; readonly keys: number; readonly ranges: number } {
    let threads = 0;
    for (const touched of this.#touched) if (splitThreadKey(touched) !== undefined) threads++;
    const ranges = this.#ranges.length + (this.#isEverything ? 1 : 0);
    return { threads, keys: this.#touched.size - threads, ranges };
  }

  add(touches: readonly string[], ranges: readonly KeyRange[], isEverything = false): void {
    for (const touched of touches) this.#touched.add(touched);
    this.#ranges.push(...ranges);
    this.#isEverything ||= isEverything;
  }

  has(key: ThreadKey): boolean {
    const prefix = threadPrefix(key);
    if (this.#isEverything || this.#touched.has(prefix)) return true;
    // `~` sorts after all characters of a key.
    return this.#ranges.some(({ from, to }) => prefix <= to && `${prefix}~` >= from);
  }

  /** True if a key of the database is quarantined. An index entry or mark is quarantined if its thread is. */
  hasKey(key: string): boolean {
    const thread = threadOfKey(key);
    if (thread !== undefined) return this.has(thread);
    if (key === "!format" || key.startsWith("!batch/")) return false;
    if (this.#isEverything || this.#touched.has(key)) return true;
    return this.#ranges.some(({ from, to }) => key >= from && key <= to);
  }

  /**
   * The quarantined threads: those that findings name, and all that have keys in a quarantined range. A thread may occur more than once.
   */
  async *threads(kv: KeyValueStore): AsyncGenerator<ThreadKey> {
    for (const touched of this.#touched) {
      const key = splitThreadKey(touched)?.key;
      if (key !== undefined) yield key;
    }
    if (!this.#isEverything && this.#ranges.length === 0) return;
    let prefix = "/";
    for await (const keys of kv.keys(ALL_KEYS)) {
      for (const at of keys) {
        // Skips the other keys of the same thread.
        if (at.startsWith(prefix)) continue;
        const key = threadOfKey(at);
        if (key === undefined) continue;
        prefix = threadPrefix(key);
        if (this.has(key)) yield key;
      }
    }
  }

  /** True if the key lies in a damaged part of a table. */
  isInDamagedTable(key: string): boolean {
    return this.#ranges.some(({ from, to }) => key >= from && key <= to);
  }

  /** @throws ServiceError `journal.damaged` */
  refuse(key: string): void {
    if (this.hasKey(key)) throw refusalOf(key);
  }
}

function refusalOf(key: string): Error {
  const thread = threadOfKey(key);
  return damagedError(thread ?? { tenant: key.slice(0, key.indexOf("/")), thread: "" }, WHY);
}

/** The thread to which a key belongs, or which an index entry or a mark names; undefined if the key belongs to no thread. */
export function threadOfKey(key: string): ThreadKey | undefined {
  if (!key.startsWith("!")) return splitThreadKey(key)?.key ?? threadOfIndexKey(key);
  if (key.startsWith(THREAD_EXPIRIES_RANGE.gte)) return parseThreadExpiryKey(key).key;
  if (key.startsWith(DELAYED_RANGE.gte)) return parseDueRunKey(key).key;
  if (key.startsWith(TIMERS_RANGE.gte)) return parseTimerKey(key).key;
  return key.startsWith("!active/") || key.startsWith("!sweep/") ? parseThreadMark(key).key : undefined;
}

/**
 * Hides quarantined data from readers. Reading a quarantined key, or a range of keys of a quarantined thread, throws `journal.damaged`.
 * Other ranges omit quarantined keys. While nothing is quarantined, reads pass straight through.
 */
export class QuarantiningKeyValueStore implements KeyValueStore {
  readonly unguarded: KeyValueStore;
  readonly #quarantine: QuarantinedData;
  readonly probe?: () => Promise<void>;

  constructor(kv: KeyValueStore, quarantine: QuarantinedData) {
    this.unguarded = kv;
    this.#quarantine = quarantine;
    if (kv.probe !== undefined) this.probe = () => (kv.probe as () => Promise<void>)();
  }

  open(): Promise<void> {
    return this.unguarded.open();
  }

  close(): Promise<void> {
    return this.unguarded.close();
  }

  batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    return this.unguarded.batch(ops, options);
  }

  get(key: string, isSlow?: boolean): Eventually<Buffer | undefined> {
    if (!this.#quarantine.isEmpty) this.#quarantine.refuse(key);
    return this.unguarded.get(key, isSlow);
  }

  entries(range: ScanRange): AsyncIterable<KeyValueEntry> {
    return this.#quarantine.isEmpty ? this.unguarded.entries(range) : this.#entries(range);
  }

  keys(range: ScanRange): AsyncIterable<readonly string[]> {
    return this.#quarantine.isEmpty ? this.unguarded.keys(range) : this.#keys(range);
  }

  async *#entries(range: ScanRange): AsyncGenerator<KeyValueEntry> {
    this.#refuseThread(range);
    let { limit = Infinity } = range;
    for await (const entry of this.unguarded.entries(withoutLimit(range))) {
      if (limit <= 0) return;
      if (this.#quarantine.hasKey(entry[0])) continue;
      limit--;
      yield entry;
    }
  }

  async *#keys(range: ScanRange): AsyncGenerator<readonly string[]> {
    this.#refuseThread(range);
    let { limit = Infinity } = range;
    for await (const page of this.unguarded.keys(withoutLimit(range))) {
      const kept = page.filter((key) => !this.#quarantine.hasKey(key)).slice(0, limit);
      limit -= kept.length;
      if (kept.length > 0) yield kept;
      if (limit <= 0) return;
    }
  }

  /**
   * Refuses to read a range of keys within a quarantined thread. Such a range is read only for a request that names the thread, and that
   * request gets an error. Other lists only omit quarantined data.
   */
  #refuseThread({ gte, lt }: ScanRange): void {
    const thread = splitThreadKey(gte)?.key;
    if (thread !== undefined && lt <= prefixRange(threadPrefix(thread)).lt) this.#quarantine.refuse(gte);
  }
}

/** The range without its limit. The limit is applied later, because omitted entries do not count. */
function withoutLimit({ gte, lt, reverse = false }: ScanRange): ScanRange {
  return { gte, lt, reverse };
}
