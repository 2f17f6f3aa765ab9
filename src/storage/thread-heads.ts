import type { RunKwargs } from "../model/run.ts";
import { hasWork, threadMapKey, type ThreadKey, type ThreadRecord } from "../model/thread.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import { threadRecordKey, threadPrefix } from "./keys.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { RecordCache } from "./record-cache.ts";
import { threadRowConverter } from "./stored-records.ts";
import type { ChannelRefs } from "./channel-ref-codec.ts";
import { ReleasingMap } from "../model/releasing-map.ts";
import { SmallMap } from "../model/small-map.ts";

/** The state that a thread has when all writes in flight are stored. Its next append is based on this state. */
export interface ThreadHead {
  readonly key: ThreadKey;
  readonly name: string;
  /** The prefix of the thread's keys. */
  readonly prefix: string;
  epoch: number;
  seq: number;
  /** The order number that the next admitted run gets. */
  next_run: number;
  /** True if the thread is listed under `!active/`, which lists the threads that have unfinished runs or are temporary. */
  active: boolean;
  /** The thread's record after the last append; undefined when the thread does not exist. */
  thread: ThreadRecord | undefined;
  /**
   * The cached latest checkpoints, by namespace. The references of a namespace's next checkpoint are derived from those of its latest
   * checkpoint.
   */
  readonly latest: SmallMap<string, { readonly id: string; readonly refs: ChannelRefs }>;
  /**
   * The end indexes of the list spans that were written last, by the key prefix of the span. Other end indexes are read from the store. For
   * spans, see `Spans` in `channel-values.ts`.
   */
  readonly spanEnds: SmallMap<string, number>;
  /** The stored kwargs of unfinished runs. While a run still has the same kwargs object, its kwargs are not written again. */
  readonly kwargs: SmallMap<string, RunKwargs>;
  /**
   * By run: one more than the id of its last event. Only for unfinished runs, and only if events of the run were written since this object
   * was made.
   */
  readonly ends: SmallMap<string, number>;
  /** The operations of the writes in flight, oldest first. If the thread is being deleted, the deletion is the last. */
  readonly inFlight: (readonly WriteOperation[])[];
  /** The last append in flight: resolves when it is stored, rejects if it fails. */
  tail: Promise<void> | undefined;
  released: boolean;
  /** False when this state is outdated because of a failed write, a deletion or a pruning. */
  isValid: boolean;
}

/** The maximum number of span ends that are remembered for one thread. */
const MAX_SPAN_ENDS = 256;

/** The {@link ThreadHead} of each thread that is being written to, and the cache of thread records. */
export class ThreadHeads {
  readonly #kv: KeyValueStore;
  readonly #heads = new ReleasingMap<string, ThreadHead>();
  readonly #records = new RecordCache();
  /** The latest read in progress of each record. */
  readonly #reads = new Map<string, { isCurrent: boolean }>();

  constructor(kv: KeyValueStore) {
    this.#kv = kv;
  }

  /**
   * The {@link ThreadHead} on which a write is based. MUST NOT be called again for the same thread before the result
   * has resolved.
   */
  get(key: ThreadKey): Eventually<ThreadHead> {
    const name = threadMapKey(key);
    const known = this.#heads.get(name);
    if (known !== undefined) {
      known.released = false;
      return known;
    }
    return andThen(this.thread(key), (thread) => this.#add(key, name, thread));
  }

  #add(key: ThreadKey, name: string, thread: ThreadRecord | undefined): ThreadHead {
    const head: ThreadHead = {
      key,
      name,
      prefix: threadPrefix(key),
      epoch: thread?.epoch ?? 0,
      seq: thread?.seq ?? 0,
      next_run: thread?.next_run ?? 0,
      active: thread !== undefined && isUnsettled(thread),
      thread,
      latest: new SmallMap(),
      spanEnds: new SmallMap(),
      kwargs: new SmallMap(),
      ends: new SmallMap(),
      inFlight: [],
      tail: undefined,
      released: false,
      isValid: true,
    };
    this.#heads.set(name, head);
    return head;
  }

  /** The thread's record as stored. */
  thread(key: ThreadKey): Eventually<ThreadRecord | undefined> {
    const name = threadMapKey(key);
    // The cache is used only if no append is in flight. During an append, the store may be newer than the cache, and data to which the
    // cached record refers may be deleted.
    const settled = (this.#heads.get(name)?.inFlight.length ?? 0) === 0;
    const recent = settled ? this.#records.get(name) : undefined;
    if (recent !== undefined) return recent;
    const found = this.#kv.get(threadRecordKey(threadPrefix(key)));
    const read = settled && found instanceof Promise ? this.#watch(name, found) : { isCurrent: settled };
    return andThen(found, (bytes) => {
      if (bytes === undefined) return undefined;
      const thread = threadRowConverter.record(decodeWithChecksum(bytes, key, "its record"));
      if (read.isCurrent) this.#records.set(name, thread, bytes.length);
      return thread;
    });
  }

  /** Registers a read that takes time. If the record changes meanwhile, the result may be outdated, and is not cached. */
  #watch(name: string, found: Promise<unknown>): { readonly isCurrent: boolean } {
    this.#overtake(name);
    const read = { isCurrent: true };
    this.#reads.set(name, read);
    const end = () => {
      if (this.#reads.get(name) === read) this.#reads.delete(name);
    };
    found.then(end, end);
    return read;
  }

  /** Marks the read in progress as outdated, because the record changes or a newer read of it begins. */
  #overtake(name: string): void {
    const read = this.#reads.get(name);
    if (read === undefined) return;
    read.isCurrent = false;
    this.#reads.delete(name);
  }

  /** Records an append in flight. {@link appendStored} follows, unless the append fails. */
  appendSubmitted(head: ThreadHead, ops: readonly WriteOperation[]): void {
    if (this.#reads.size > 0) this.#overtake(head.name);
    head.inFlight.push(ops);
  }

  peek(key: ThreadKey): ThreadHead | undefined {
    return this.#heads.get(threadMapKey(key));
  }

  release(key: ThreadKey): void {
    const head = this.peek(key);
    if (head === undefined) return;
    head.released = true;
    this.#drop(head);
  }

  /** Caches the record that an append has stored. `size`: the bytes of the record. */
  appendStored(head: ThreadHead, thread: ThreadRecord, size: number): void {
    this.#records.set(head.name, thread, size);
    head.inFlight.shift();
    if (head.inFlight.length > 0) return;
    head.tail = undefined;
    if (head.spanEnds.size > MAX_SPAN_ENDS) head.spanEnds.clear();
    if (head.released) this.#drop(head);
  }

  /** Records the deletion of the thread as a write in flight. {@link forget} follows. */
  deletionSubmitted(head: ThreadHead, ops: readonly WriteOperation[]): void {
    this.#records.delete(head.name);
    this.#overtake(head.name);
    head.inFlight.push(ops);
  }

  /**
   * Drops the thread's state from memory, because the thread is deleted or changed by something other than an append.
   */
  forget(head: ThreadHead): void {
    head.isValid = false;
    this.#records.delete(head.name);
    this.#overtake(head.name);
    if (this.#heads.get(head.name) === head) this.#heads.delete(head.name);
  }

  /** Drops all cached records, because some of them were quarantined. */
  forgetRecords(): void {
    this.#records.clear();
    for (const name of this.#reads.keys()) this.#overtake(name);
  }

  /** Drops all threads' states and records from memory. Called after a failed write, when it is unknown what the store has. */
  clear(): void {
    for (const head of this.#heads.values()) head.isValid = false;
    this.#heads.clear();
    this.forgetRecords();
  }

  #drop(head: ThreadHead): void {
    // `head` may have been dropped before, and the thread may have another head by now.
    if (head.inFlight.length === 0 && this.#heads.get(head.name) === head) this.#heads.delete(head.name);
  }
}

/** True if the server must read the thread when it starts. Always true for a temporary thread, which has to be deleted. */
export function isUnsettled(thread: ThreadRecord): boolean {
  return hasWork(thread) || thread.temporary !== null;
}
