import type { Scheduler } from "../ports/scheduler.ts";
import type { PendingWrite } from "./committer.ts";

export interface LargeWriteLimits {
  /** Bytes: a write of this size or more counts as large. */
  readonly large: number;
  /** Bytes of large writes, queued or in flight: at this size no further one is encoded. A single write may exceed it. */
  readonly most: number;
}

/** From a quarter of a megabyte on, a write takes the store and the event loop some milliseconds: it counts as large. */
const LIMITS: LargeWriteLimits = { large: 256 * 1024, most: 8 * 1024 * 1024 };

interface QueuedWrite {
  readonly write: PendingWrite;
  readonly bytes: number;
  /** The number of ordinary writes submitted before it. */
  readonly ordinaryBefore: number;
}

/**
 * Queues large writes apart from ordinary ones, so that a write of a few hundred bytes does not wait for all large ones before it. Writes
 * of one thread keep their order, so a thread's later writes join its large one here. Tenants take turns, one write each.
 *
 * Also bounds the memory of large writes: {@link waitForBudget} is called before one is encoded.
 */
export class LargeWriteQueue {
  readonly #scheduler: Scheduler;
  readonly #limits: LargeWriteLimits;
  /** By tenant; the tenant whose turn it is comes first. */
  readonly #queues = new Map<string, QueuedWrite[]>();
  /** The number of writes in the queues, by thread. */
  readonly #threads = new Map<string, number>();
  /** Callers that wait for the budget, by tenant; the tenant whose turn it is comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /** Bytes queued or in flight. */
  #bytes = 0;
  #queuedBytes = 0;
  #isAdmitting = false;

  constructor(scheduler: Scheduler, limits: LargeWriteLimits = LIMITS) {
    this.#scheduler = scheduler;
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#threads.size === 0;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  get isWaitedFor(): boolean {
    return this.#waiting.size > 0;
  }

  /**
   * Whether a write must go through this queue. A write that names no thread never does: it stays among the ordinary ones. `bytes`: its
   * size.
   */
  accepts({ thread }: PendingWrite, bytes: number): boolean {
    return (
      thread !== undefined &&
      (bytes >= this.#limits.large || (this.#threads.size > 0 && this.#threads.has(thread)))
    );
  }

  /** Queues a write that is {@link accepts | accepted}. `ordinaryBefore`: the number of ordinary writes submitted before it. */
  add(write: PendingWrite, bytes: number, ordinaryBefore: number): void {
    const thread = write.thread as string;
    const queued = { write, bytes, ordinaryBefore };
    const queue = this.#queues.get(tenantOf(thread));
    if (queue === undefined) this.#queues.set(tenantOf(thread), [queued]);
    else queue.push(queued);
    this.#threads.set(thread, (this.#threads.get(thread) ?? 0) + 1);
    this.#queuedBytes += bytes;
    this.#bytes += bytes;
  }

  /**
   * Takes the writes of a batch: at least one, and more up to `maxBytes`. Empty if none may be taken yet, because a write does not overtake
   * the ordinary writes submitted before it. `ordinaryTaken`: the number of ordinary writes taken so far.
   */
  take(ordinaryTaken: number, maxBytes: number): readonly PendingWrite[] {
    const writes: PendingWrite[] = [];
    let bytes = 0;
    for (;;) {
      const next = this.#nextEligible(ordinaryTaken);
      if (next === undefined || (writes.length > 0 && bytes + next.first.bytes > maxBytes)) return writes;
      this.#remove(next.tenant, next.queue);
      writes.push(next.first.write);
      bytes += next.first.bytes;
    }
  }

  /** Whether one of these writes belongs to a tenant other than that of the next large write. */
  isOtherTenantIn(writes: readonly PendingWrite[]): boolean {
    for (const tenant of this.#queues.keys()) {
      return writes.some(({ thread }) => thread !== undefined && tenantOf(thread) !== tenant);
    }
    return false;
  }

  #nextEligible(ordinaryTaken: number) {
    for (const [tenant, queue] of this.#queues) {
      const [first] = queue;
      if (first !== undefined && first.ordinaryBefore <= ordinaryTaken) return { tenant, queue, first };
    }
    return undefined;
  }

  #remove(tenant: string, queue: QueuedWrite[]): void {
    const { write, bytes } = queue.shift() as QueuedWrite;
    const thread = write.thread as string;
    const left = (this.#threads.get(thread) ?? 0) - 1;
    if (left > 0) this.#threads.set(thread, left);
    else this.#threads.delete(thread);
    this.#queuedBytes -= bytes;
    // The tenant goes behind the others.
    this.#queues.delete(tenant);
    if (queue.length > 0) this.#queues.set(tenant, queue);
  }

  /** Called when large writes are stored. */
  stored(bytes: number): void {
    this.#bytes -= bytes;
    this.#scheduleAdmission();
  }

  /** After a failed write: returns the queued writes, to be refused, and releases all callers that wait. */
  clear(): readonly PendingWrite[] {
    const writes = [...this.#queues.values()].flatMap((queue) => queue.map(({ write }) => write));
    this.#queues.clear();
    this.#threads.clear();
    this.#queuedBytes = 0;
    this.#bytes = 0;
    const waiting = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    for (const admitted of waiting) admitted();
    return writes;
  }

  /**
   * Called before a write is encoded; `sizeOf` estimates its bytes. Returns a promise when it is large and the budget is used up; undefined when
   * it may be encoded at once.
   */
  waitForBudget(tenant: string, sizeOf: () => number): Promise<void> | undefined {
    if (this.#bytes < this.#limits.most && this.#waiting.size === 0) return undefined;
    if (sizeOf() < this.#limits.large) return undefined;
    return new Promise<void>((resolve) => {
      const waiting = this.#waiting.get(tenant);
      if (waiting === undefined) this.#waiting.set(tenant, [resolve]);
      else waiting.push(resolve);
      this.#scheduleAdmission();
    });
  }

  /**
   * Admits one caller in each turn, so that the event loop can do other work in between. Its bytes are known when it is encoded; with a
   * storage that answers reads later, several may be encoded at once.
   */
  #scheduleAdmission(): void {
    if (this.#isAdmitting || this.#waiting.size === 0) return;
    this.#isAdmitting = true;
    this.#scheduler.soon(this.#admitOne);
  }

  readonly #admitOne = (): void => {
    this.#isAdmitting = false;
    if (this.#bytes >= this.#limits.most) return;
    for (const [tenant, waiting] of this.#waiting) {
      const admitted = waiting.shift();
      this.#waiting.delete(tenant);
      if (waiting.length > 0) this.#waiting.set(tenant, waiting);
      admitted?.();
      break;
    }
    this.#scheduleAdmission();
  };
}

/** The tenant in a thread's prefix, still escaped. */
const tenantOf = (thread: string): string => thread.slice(0, thread.indexOf("/"));
