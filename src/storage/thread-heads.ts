import type { RunKwargs } from "../model/run.ts";
import { hasWork, threadName, type ThreadKey, type ThreadRecord } from "../model/thread.ts";
import { unseal } from "./envelope.ts";
import { headKey, threadPrefix } from "./keys.ts";
import type { Kv, Op } from "./kv.ts";
import { Recent } from "./record-cache.ts";
import { threadRows } from "./records.ts";
import type { Refs } from "./value-refs.ts";
import { ReleasingMap } from "../model/releasing-map.ts";

/** A thread as its next append will find it: what is stored, and what is on its way. */
export interface Head {
  readonly key: ThreadKey;
  readonly name: string;
  /** What its keys begin with. */
  readonly prefix: string;
  epoch: number;
  seq: number;
  /** The place in the order of admission that the next run takes: one below it has been stored. */
  next_run: number;
  /** Is the thread marked as having work? */
  active: boolean;
  /** The thread after the last append; undefined for one that is to be made. */
  thread: ThreadRecord | undefined;
  /** The latest checkpoint of each namespace: what the next one is derived from. */
  readonly latest: Map<string, { readonly id: string; readonly refs: Refs }>;
  /** How far each span of a list has been written, by the prefix of its keys; what is not here has to be looked up. */
  readonly tips: Map<string, number>;
  /** What runs in work were created with, as stored: the same object again need not be written again. */
  readonly kwargs: Map<string, RunKwargs>;
  /** The id that follows the last event of each run written to since. */
  readonly ends: Map<string, number>;
  /** Appends on their way, oldest first; its deletion is the last. */
  readonly flights: (readonly Op[])[];
  /** Settles with the last of them. */
  tail: Promise<void> | undefined;
  released: boolean;
}

/** Tips remembered before they are looked up again. */
const TIPS = 256;

/** The heads of threads that are being written to. All others are read when they are needed. */
export class Heads {
  readonly #kv: Kv;
  readonly #heads = new ReleasingMap<string, Head>();
  readonly #recent = new Recent();

  constructor(kv: Kv) {
    this.#kv = kv;
  }

  get(key: ThreadKey): Head {
    const name = threadName(key);
    const known = this.#heads.get(name);
    if (known !== undefined) {
      known.released = false;
      return known;
    }
    const thread = this.thread(key);
    const head: Head = {
      key,
      name,
      prefix: threadPrefix(key),
      epoch: thread?.epoch ?? 0,
      seq: thread?.seq ?? 0,
      next_run: thread?.next_run ?? 0,
      active: thread !== undefined && isUnsettled(thread),
      thread,
      latest: new Map(),
      tips: new Map(),
      kwargs: new Map(),
      ends: new Map(),
      flights: [],
      tail: undefined,
      released: false,
    };
    this.#heads.set(name, head);
    return head;
  }

  /** The thread's record as it is stored. */
  thread(key: ThreadKey): ThreadRecord | undefined {
    const name = threadName(key);
    // With an append on its way the store may have it already: what the older record names may be gone.
    const settled = (this.#heads.get(name)?.flights.length ?? 0) === 0;
    const recent = settled ? this.#recent.get(name) : undefined;
    if (recent !== undefined) return recent;
    const bytes = this.#kv.getSync(headKey(threadPrefix(key)));
    if (bytes === undefined) return undefined;
    const thread = threadRows.record(unseal(bytes, key, "its record"));
    if (settled) this.#recent.set(name, thread, bytes.length);
    return thread;
  }

  /** The head if it is held. */
  peek(key: ThreadKey): Head | undefined {
    return this.#heads.get(threadName(key));
  }

  release(key: ThreadKey): void {
    const head = this.peek(key);
    if (head === undefined) return;
    head.released = true;
    this.#drop(head);
  }

  /** An append of this thread has been stored, with a record of so many bytes. */
  landed(head: Head, thread: ThreadRecord, size: number): void {
    this.#recent.set(head.name, thread, size);
    head.flights.shift();
    if (head.flights.length > 0) return;
    head.tail = undefined;
    if (head.tips.size > TIPS) head.tips.clear();
    if (head.released) this.#drop(head);
  }

  /** Its deletion is on its way. It ends with {@link forget}. */
  leaving(head: Head, ops: readonly Op[]): void {
    this.#recent.delete(head.name);
    head.flights.push(ops);
  }

  /** The thread is deleted, or what is remembered of it is about to change. */
  forget(head: Head): void {
    this.#recent.delete(head.name);
    if (this.#heads.get(head.name) === head) this.#heads.delete(head.name);
  }

  /** Records are read anew: some of them have come into quarantine. */
  forgetRecords(): void {
    this.#recent.clear();
  }

  /** Nobody knows any more what is stored. */
  clear(): void {
    this.#heads.clear();
    this.#recent.clear();
  }

  #drop(head: Head): void {
    // One that is cleared away and read anew is not the one that is let go.
    if (head.flights.length === 0 && this.#heads.get(head.name) === head) this.#heads.delete(head.name);
  }
}

/** Must a boot look at it? One that is temporary has to be deleted, at the least. */
export function isUnsettled(thread: ThreadRecord): boolean {
  return hasWork(thread) || thread.temporary !== null;
}
