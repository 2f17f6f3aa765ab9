import type { Scheduler } from "../ports/scheduler.ts";
import type { PendingWrite } from "./committer.ts";

export interface LargeWriteLimits {
  /** A write of this many bytes or more counts as large. */
  readonly large: number;
  /**
   * Bytes. While the large writes that are queued or in flight have this many bytes or more, no further large write is encoded. A single
   * write may have more.
   */
  readonly most: number;
}

/** The default limits. Storing 256 KiB takes some milliseconds, in the store and in the event loop. */
const LIMITS: LargeWriteLimits = { large: 256 * 1024, most: 8 * 1024 * 1024 };

interface QueuedWrite {
  readonly write: PendingWrite;
  readonly bytes: number;
  /** The number of ordinary (not large) writes that had been submitted to the committer before this write. */
  readonly ordinaryBefore: number;
}

/**
 * Queues large writes separately from ordinary ones, so that a write of a few hundred bytes does not wait for all large ones before it.
 * Writes of one thread keep their order: while a large write of a thread is queued here, the thread's later writes are queued here too.
 * Tenants take turns, one write each.
 *
 * The queue also limits the memory of large writes: callers wait for {@link LargeWriteQueue.waitForBudget} before they encode a large
 * write.
 */
export class LargeWriteQueue {
  readonly #scheduler: Scheduler;
  readonly #limits: LargeWriteLimits;
  /** The queued writes by tenant. The tenant whose turn it is comes first. */
  readonly #queues = new Map<string, QueuedWrite[]>();
  /** The number of writes in the queues, by thread. */
  readonly #threads = new Map<string, number>();
  /** Callers that wait for the budget, by tenant; the tenant whose turn it is comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /** The bytes of large writes that are queued or in flight. */
  #bytes = 0;
  #queuedBytes = 0;
  #isAdmitting = false;
  /** The tenant of the write that was taken last. */
  #lastTenant: string | undefined;

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
   * True if a write belongs in this queue: it is large, or an earlier write of its thread is queued here. A write that names no thread
   * never belongs here. `bytes`: the size of the write.
   */
  accepts({ thread }: PendingWrite, bytes: number): boolean {
    return (
      thread !== undefined &&
      (bytes >= this.#limits.large || (this.#threads.size > 0 && this.#threads.has(thread)))
    );
  }

  /** Queues a write that {@link accepts} has accepted. `ordinaryBefore`: the number of ordinary writes submitted before this write. */
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
   * Takes writes for one batch, up to `maxBytes` in total; the first write of the batch may be larger. A write stays queued until all
   * ordinary writes that were submitted before it are taken, because it must not overtake them. `ordinaryTaken`: the number of ordinary
   * writes that were taken so far.
   */
  take(ordinaryTaken: number, maxBytes: number): readonly PendingWrite[] {
    const writes: PendingWrite[] = [];
    let bytes = 0;
    for (;;) {
      const next = this.#nextEligible(ordinaryTaken);
      if (next === undefined || (writes.length > 0 && bytes + next.first.bytes > maxBytes)) return writes;
      this.#remove(next.tenant, next.queue);
      this.#lastTenant = next.tenant;
      writes.push(next.first.write);
      bytes += next.first.bytes;
    }
  }

  /** True if one of these writes belongs to another tenant than the large write that was taken last. */
  isOtherTenantIn(writes: readonly PendingWrite[]): boolean {
    const last = this.#lastTenant;
    if (last === undefined) return false;
    return writes.some(({ thread }) => thread !== undefined && tenantOf(thread) !== last);
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
    // Moves the tenant behind the other tenants, or removes it if it has no more queued writes.
    this.#queues.delete(tenant);
    if (queue.length > 0) this.#queues.set(tenant, queue);
  }

  /** Releases the budget of large writes that have been stored. */
  stored(bytes: number): void {
    this.#bytes -= bytes;
    this.#scheduleAdmission();
  }

  /** Called after a failed write. Returns the queued writes, which the caller refuses, and admits all callers that wait for the budget. */
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
   * Called before a write is encoded. `sizeOf` estimates the bytes of its content. Returns a promise to wait for if the write is large and
   * the budget is used up. Undefined: the write may be encoded at once.
   */
  waitForBudget<C>(tenant: string, content: C, sizeOf: (content: C) => number): Promise<void> | undefined {
    if (this.#bytes < this.#limits.most && this.#waiting.size === 0) return undefined;
    return sizeOf(content) < this.#limits.large ? undefined : this.#wait(tenant);
  }

  #wait(tenant: string): Promise<void> {
    return new Promise<void>((resolve) => {
      const waiting = this.#waiting.get(tenant);
      if (waiting === undefined) this.#waiting.set(tenant, [resolve]);
      else waiting.push(resolve);
      this.#scheduleAdmission();
    });
  }

  /**
   * Admits one caller in each turn of the event loop, so that other work can be done in between, and the bytes of the caller's write are
   * counted before the next caller is admitted. An encoding that waits for a read of the storage is not awaited, so several writes may be
   * encoded at once.
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

/** The tenant in a thread's key prefix, in its escaped form. */
const tenantOf = (thread: string): string => thread.slice(0, thread.indexOf("/"));
