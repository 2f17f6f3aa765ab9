import type { RunKwargs } from "../model/run.ts";
import { hasWork, threadMapKey, type ThreadKey, type ThreadRecord } from "../model/thread.ts";
import { unseal } from "./envelope.ts";
import { headKey, threadPrefix } from "./keys.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { RecordCache } from "./record-cache.ts";
import { threadRows } from "./records.ts";
import type { ChannelRefs } from "./channel-refs.ts";
import { ReleasingMap } from "../model/releasing-map.ts";

/** The state that a thread's next append builds on: what is stored, and what is in flight. */
export interface ThreadHead {
  readonly key: ThreadKey;
  readonly name: string;
  /** The prefix of the thread's keys. */
  readonly prefix: string;
  epoch: number;
  seq: number;
  /** The order number of the next run; the runs below it are stored or in flight. */
  next_run: number;
  /** Whether the thread is marked as having work. */
  active: boolean;
  /** The thread's record after the last append; undefined when the thread does not exist. */
  thread: ThreadRecord | undefined;
  /** The latest checkpoint of each namespace, from which the next one is derived. */
  readonly latest: Map<string, { readonly id: string; readonly refs: ChannelRefs }>;
  /** The end of each span that was written, by the prefix of its keys; for other spans it is looked up. */
  readonly spanEnds: Map<string, number>;
  /** The stored kwargs of unfinished runs. The same object need not be written again. */
  readonly kwargs: Map<string, RunKwargs>;
  /** The id after the last event of each run, for runs that were written to. */
  readonly ends: Map<string, number>;
  /** The operations of writes in flight, oldest first; a deletion is the last. */
  readonly inFlight: (readonly WriteOperation[])[];
  /** Settles with the last write in flight. */
  tail: Promise<void> | undefined;
  released: boolean;
}

/** Ends of spans remembered at most. */
const TIPS = 256;

/** The heads of threads that are being written to, and the cache of thread records. */
export class WriteHeads {
  readonly #kv: KeyValueStore;
  readonly #heads = new ReleasingMap<string, ThreadHead>();
  readonly #records = new RecordCache();

  constructor(kv: KeyValueStore) {
    this.#kv = kv;
  }

  get(key: ThreadKey): ThreadHead {
    const name = threadMapKey(key);
    const known = this.#heads.get(name);
    if (known !== undefined) {
      known.released = false;
      return known;
    }
    const thread = this.thread(key);
    const head: ThreadHead = {
      key,
      name,
      prefix: threadPrefix(key),
      epoch: thread?.epoch ?? 0,
      seq: thread?.seq ?? 0,
      next_run: thread?.next_run ?? 0,
      active: thread !== undefined && isUnsettled(thread),
      thread,
      latest: new Map(),
      spanEnds: new Map(),
      kwargs: new Map(),
      ends: new Map(),
      inFlight: [],
      tail: undefined,
      released: false,
    };
    this.#heads.set(name, head);
    return head;
  }

  /** The thread's record as it is stored. */
  thread(key: ThreadKey): ThreadRecord | undefined {
    const name = threadMapKey(key);
    // With an append in flight, the store may be newer than the cache, and what the cached record refers to may be gone.
    const settled = (this.#heads.get(name)?.inFlight.length ?? 0) === 0;
    const recent = settled ? this.#records.get(name) : undefined;
    if (recent !== undefined) return recent;
    const bytes = this.#kv.getSync(headKey(threadPrefix(key)));
    if (bytes === undefined) return undefined;
    const thread = threadRows.record(unseal(bytes, key, "its record"));
    if (settled) this.#records.set(name, thread, bytes.length);
    return thread;
  }

  /** The head if it is in memory. */
  peek(key: ThreadKey): ThreadHead | undefined {
    return this.#heads.get(threadMapKey(key));
  }

  release(key: ThreadKey): void {
    const head = this.peek(key);
    if (head === undefined) return;
    head.released = true;
    this.#drop(head);
  }

  /** Called when an append of this thread is stored. `size`: bytes of its record. */
  appendStored(head: ThreadHead, thread: ThreadRecord, size: number): void {
    this.#records.set(head.name, thread, size);
    head.inFlight.shift();
    if (head.inFlight.length > 0) return;
    head.tail = undefined;
    if (head.spanEnds.size > TIPS) head.spanEnds.clear();
    if (head.released) this.#drop(head);
  }

  /** Called when the thread's deletion is in flight. Followed by {@link forget}. */
  deletionSubmitted(head: ThreadHead, ops: readonly WriteOperation[]): void {
    this.#records.delete(head.name);
    head.inFlight.push(ops);
  }

  /** Drops the head, because the thread is deleted, or changes in a way that the head does not know. */
  forget(head: ThreadHead): void {
    this.#records.delete(head.name);
    if (this.#heads.get(head.name) === head) this.#heads.delete(head.name);
  }

  /** Drops all cached records, because some of them were quarantined. */
  forgetRecords(): void {
    this.#records.clear();
  }

  /** Drops everything, because it is unknown what is stored. */
  clear(): void {
    this.#heads.clear();
    this.#records.clear();
  }

  #drop(head: ThreadHead): void {
    // Not if the head has been cleared and read anew.
    if (head.inFlight.length === 0 && this.#heads.get(head.name) === head) this.#heads.delete(head.name);
  }
}

/** Whether a start must look at the thread. A temporary thread at least has to be deleted. */
export function isUnsettled(thread: ThreadRecord): boolean {
  return hasWork(thread) || thread.temporary !== null;
}
