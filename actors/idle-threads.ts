import { memorySizeOf } from "../src/model/memory-size.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";
import type { SystemLimits } from "./thread-system-interface.ts";

/** The entry of an idle thread in the linked list of {@link IdleThreads}. */
export interface IdleEntry<C> {
  readonly liveThread: C;
  readonly since: number;
  /** The bytes of the thread's state. Known at once if the state is large; otherwise 0 until the state is measured. */
  bytes: number;
  isMeasured: boolean;
  before: IdleEntry<C> | null;
  after: IdleEntry<C> | null;
}

/** The properties of a thread in memory that {@link IdleThreads} needs. */
interface MaybeIdle<C> {
  readonly alive: boolean;
  readonly runs: { readonly size: number };
  /** The number of requests that are about to use the thread. */
  readonly claims: number;
  /** The thread's state; null if it is not in memory. */
  readonly values: object | null;
  /** The bytes of the state if it is in memory and known to be large; else 0. */
  readonly largeStateBytes: number;
  idleEntry: IdleEntry<C> | null;
}

/**
 * Milliseconds until the states of threads that became idle are measured. The delay leaves the CPU to runs that are in
 * progress when the threads become idle.
 */
const MEASURE_DELAY_MS = 500;

/**
 * Idle threads in memory, the longest idle first. They are removed from memory when their idle time is over, when their states take too
 * much memory, or when there are too many of them. One timer serves all threads, because a timer for each would cost more than the thread.
 */
export class IdleThreads<C extends MaybeIdle<C>> {
  // A linked list, not a `Map`: removing the first entries of a `Map` leaves gaps at its start, which every search for the new first entry
  // has to skip.
  #oldest: IdleEntry<C> | null = null;
  #youngest: IdleEntry<C> | null = null;
  #size = 0;
  /** The sum of `bytes` of all entries. */
  #bytes = 0;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #limits: SystemLimits;
  readonly #passivate: (liveThread: C) => boolean;
  #timer: Cancel | null = null;
  #measureTimer: Cancel | null = null;
  #passivated = 0;

  constructor(
    clock: Clock,
    scheduler: Scheduler,
    limits: SystemLimits,
    passivate: (liveThread: C) => boolean,
  ) {
    this.#clock = clock;
    this.#scheduler = scheduler;
    this.#limits = limits;
    this.#passivate = passivate;
  }

  get size(): number {
    return this.#size;
  }

  /** The number of threads that this list has removed from memory since the start. */
  get passivated(): number {
    return this.#passivated;
  }

  /** Updates the list for a thread that may have become idle or busy. */
  update(liveThread: C): void {
    this.remove(liveThread);
    if (!liveThread.alive || liveThread.runs.size > 0 || liveThread.claims > 0) return;
    this.#add(liveThread);
    if (liveThread.largeStateBytes > 0) this.#removeTooLarge();
    const oldest = this.#oldest?.liveThread;
    // Does not remove the thread that was just added: it may be about to get a request.
    if (this.#size > this.#limits.maxIdle && oldest !== liveThread) this.#removeFromMemory(oldest);
    if (this.#timer === null) this.#sweepAfter(this.#limits.idle);
    this.#measureTimer ??= this.#scheduler.after(MEASURE_DELAY_MS, () => this.#measure());
  }

  remove(liveThread: C): void {
    const entry = liveThread.idleEntry;
    if (entry === null) return;
    const { before, after } = entry;
    if (before === null) this.#oldest = after;
    else before.after = after;
    if (after === null) this.#youngest = before;
    else after.before = before;
    liveThread.idleEntry = null;
    // Clears the links: a link from an entry in the old generation of the heap would keep all later entries alive.
    entry.before = null;
    entry.after = null;
    this.#size--;
    this.#bytes -= entry.bytes;
  }

  stop(): void {
    this.#timer?.();
    this.#timer = null;
    this.#measureTimer?.();
    this.#measureTimer = null;
  }

  #add(liveThread: C): void {
    const before = this.#youngest;
    const entry: IdleEntry<C> = {
      liveThread,
      since: this.#clock.mono(),
      bytes: liveThread.largeStateBytes,
      isMeasured: false,
      before,
      after: null,
    };
    if (before === null) this.#oldest = entry;
    else before.after = entry;
    this.#youngest = entry;
    liveThread.idleEntry = entry;
    this.#size++;
    this.#bytes += entry.bytes;
  }

  #removeFromMemory(liveThread: C | undefined): void {
    if (liveThread === undefined || !this.#passivate(liveThread)) return;
    this.remove(liveThread);
    this.#passivated++;
  }

  /** Measures the states of threads that became idle since the last measurement. */
  #measure(): void {
    this.#measureTimer = null;
    for (let entry = this.#youngest; entry !== null && !entry.isMeasured; entry = entry.before) {
      entry.isMeasured = true;
      if (entry.bytes > 0) continue;
      entry.bytes = memorySizeOf(entry.liveThread.values);
      this.#bytes += entry.bytes;
    }
    this.#removeTooLarge();
  }

  /** While the states of all idle threads are too large, removes the thread that has been idle longest. Keeps the last one. */
  #removeTooLarge(): void {
    for (let entry = this.#oldest; entry !== null && entry.after !== null && this.#isTooLarge();) {
      const { liveThread, after } = entry;
      this.#removeFromMemory(liveThread);
      entry = after;
    }
  }

  #isTooLarge(): boolean {
    return this.#bytes > this.#limits.maxIdleBytes;
  }

  /**
   * Sets the timer of the next sweep. Cancels an earlier timer, because `update` may have set one while a sweep moved a
   * thread to the end of the list.
   */
  #sweepAfter(ms: number): void {
    this.#timer?.();
    this.#timer = this.#scheduler.after(ms, () => this.#sweep());
  }

  #sweep(): void {
    this.#timer = null;
    const now = this.#clock.mono();
    for (let entry = this.#oldest; entry !== null; entry = this.#oldest) {
      const { liveThread, since } = entry;
      const rested = now - since;
      if (rested < this.#limits.idle) {
        // The remaining time is rounded up to whole milliseconds. A fraction of a millisecond could be lost
        // when it is added to the clock's value, and the timer would fire again and again.
        const left = Math.ceil(this.#limits.idle - rested);
        return this.#sweepAfter(left);
      }
      this.#removeFromMemory(liveThread);
      // If a write in flight has kept the thread in memory, the thread goes to the end of the list and is checked again later.
      if (liveThread.idleEntry === entry) this.update(liveThread);
    }
  }
}
