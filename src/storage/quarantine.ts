import type { ThreadKey } from "../model/thread.ts";
import { damaged } from "./envelope.ts";
import {
  DELAYED,
  DUE,
  parseDelayed,
  parseDue,
  parseIndex,
  parseMark,
  splitThread,
  threadPrefix,
  within,
} from "./keys.ts";
import type { Entry, Kv, Op, Range } from "./kv.ts";
import type { KeyRange } from "./leveldb/table.ts";

/** What is told of whoever asks for something in quarantine. */
const WHY =
  'something that was stored has been lost, and this may be an older state of it; restore a backup, or accept the loss with "heddle repair --accept"';

/** What may be older than what was acknowledged, since a part of the database was lost. */
export class Quarantine {
  /** Prefixes of threads, and keys of no thread. */
  readonly #touched = new Set<string>();
  readonly #ranges: KeyRange[] = [];
  #isEverything = false;

  get isEmpty(): boolean {
    return !this.#isEverything && this.#touched.size === 0 && this.#ranges.length === 0;
  }

  /** Threads that are named, other keys, and ranges of keys in which more of both may lie. */
  get counts(): { readonly threads: number; readonly keys: number; readonly ranges: number } {
    let threads = 0;
    for (const touched of this.#touched) if (splitThread(touched) !== undefined) threads++;
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
    // `~` sorts behind whatever a key consists of.
    return this.#ranges.some(({ from, to }) => prefix <= to && `${prefix}~` >= from);
  }

  /** Of a key in the database. Indexes and marks belong to the thread that they name: they are made anew after damage. */
  hasKey(key: string): boolean {
    const thread = threadOf(key);
    if (thread !== undefined) return this.has(thread);
    if (key === "!format" || key.startsWith("!batch/")) return false;
    if (this.#isEverything || this.#touched.has(key)) return true;
    return this.#ranges.some(({ from, to }) => key >= from && key <= to);
  }

  /** Does the key lie in a part of a table that is damaged? */
  isInDamagedTable(key: string): boolean {
    return this.#ranges.some(({ from, to }) => key >= from && key <= to);
  }

  /** @throws ServiceError `journal.damaged` */
  refuse(key: string): void {
    if (this.hasKey(key)) throw refusalOf(key);
  }
}

function refusalOf(key: string): Error {
  const thread = threadOf(key);
  return damaged(thread ?? { tenant: key.slice(0, key.indexOf("/")), thread: "" }, WHY);
}

/** The thread whose key this is, or which an index or a mark names. */
function threadOf(key: string): ThreadKey | undefined {
  if (!key.startsWith("!")) return splitThread(key)?.key ?? parseIndex(key);
  if (key.startsWith(DUE.gte)) return parseDue(key).key;
  if (key.startsWith(DELAYED.gte)) return parseDelayed(key).key;
  return key.startsWith("!active/") || key.startsWith("!sweep/") ? parseMark(key).key : undefined;
}

/**
 * Keeps from readers what is in quarantine: asking for it throws `journal.damaged`, lists that name it among others leave it out. While
 * nothing is, it costs a look at a flag.
 */
export class GuardedKv implements Kv {
  readonly unguarded: Kv;
  readonly #quarantine: Quarantine;
  readonly probe?: () => Promise<void>;

  constructor(kv: Kv, quarantine: Quarantine) {
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

  batch(ops: readonly Op[], options: { readonly sync: boolean }): Promise<void> {
    return this.unguarded.batch(ops, options);
  }

  getSync(key: string): Buffer | undefined {
    if (!this.#quarantine.isEmpty) this.#quarantine.refuse(key);
    return this.unguarded.getSync(key);
  }

  entries(range: Range): AsyncIterable<Entry> {
    return this.#quarantine.isEmpty ? this.unguarded.entries(range) : this.#entries(range);
  }

  keys(range: Range): AsyncIterable<readonly string[]> {
    return this.#quarantine.isEmpty ? this.unguarded.keys(range) : this.#keys(range);
  }

  async *#entries(range: Range): AsyncGenerator<Entry> {
    this.#refuseThread(range);
    let { limit = Infinity } = range;
    for await (const entry of this.unguarded.entries(withoutLimit(range))) {
      if (limit <= 0) return;
      if (this.#quarantine.hasKey(entry[0])) continue;
      limit--;
      yield entry;
    }
  }

  async *#keys(range: Range): AsyncGenerator<readonly string[]> {
    this.#refuseThread(range);
    let { limit = Infinity } = range;
    for await (const page of this.unguarded.keys(withoutLimit(range))) {
      const kept = page.filter((key) => !this.#quarantine.hasKey(key)).slice(0, limit);
      limit -= kept.length;
      if (kept.length > 0) yield kept;
      if (limit <= 0) return;
    }
  }

  /** A range within one thread asks for that thread. */
  #refuseThread({ gte, lt }: Range): void {
    const thread = splitThread(gte)?.key;
    if (thread !== undefined && lt <= within(threadPrefix(thread)).lt) this.#quarantine.refuse(gte);
  }
}

/** All of it: some of what it has is left out, and does not count. */
function withoutLimit({ gte, lt, reverse = false }: Range): Range {
  return { gte, lt, reverse };
}
