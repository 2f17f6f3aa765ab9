import type { ReadHeap } from "../src/ports/heap.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";

export interface RunMemoryLimits {
  /** Bytes from which on a state or an input is large. Small ones are not counted. */
  readonly largeState: number;
  /** Bytes of large states and inputs of runs in progress, from which on further ones wait. One run may exceed them. */
  readonly maxStateBytes: number;
}

/** Bytes in memory that a run needs: for the states of its graphs, and for its input. */
export interface RunBytes {
  readonly state: number;
  readonly input: number;
}

/** Milliseconds after which one more run may begin, although there is no memory for it. */
const ONE_MORE_INTERVAL_MS = 1_000;

/**
 * A budget for the memory of runs in progress: of their states, and of their inputs. It says whether one more run may begin. Runs that wait
 * for it are kept by the {@link ConcurrencyLimiter}.
 *
 * A node may start a run and wait for it while its own state fills the budget. So that the two do not wait for each other, one more run
 * begins every second while the heap has room.
 */
export class RunMemoryBudget {
  readonly #scheduler: Scheduler;
  readonly #heap: ReadHeap;
  readonly #limits: RunMemoryLimits;
  /** Runs in progress that are large, or were expected to be. */
  readonly #runs = new Map<string, RunBytes>();
  #bytes = 0;
  #serveWaiting: () => void = () => undefined;
  #isServing = false;
  #isOneMoreAdmitted = false;
  #timer: Cancel | undefined;

  constructor(scheduler: Scheduler, heap: ReadHeap, limits: RunMemoryLimits) {
    this.#scheduler = scheduler;
    this.#heap = heap;
    this.#limits = limits;
  }

  /**
   * `serveWaiting` starts the waiting runs that {@link admits} now allows. It calls {@link waited} if some still wait
   * for memory.
   */
  onSpace(serveWaiting: () => void): void {
    this.#serveWaiting = serveWaiting;
  }

  /** Bytes of the large states and inputs of runs in progress. */
  get bytes(): number {
    return this.#bytes;
  }

  isLarge(bytes: RunBytes): boolean {
    return bytesOf(bytes) >= this.#limits.largeState;
  }

  /** Whether large runs have to wait. */
  get isFull(): boolean {
    return this.#bytes >= this.#limits.maxStateBytes;
  }

  /** Whether a run that needs this many bytes may begin. */
  admits(bytes: RunBytes): boolean {
    return !this.isFull || this.#isOneMoreAdmitted || !this.isLarge(bytes);
  }

  /** Counts a run that begins. It MUST be released. */
  reserve(run: string, bytes: RunBytes): void {
    if (!this.isLarge(bytes)) return;
    this.#isOneMoreAdmitted = false;
    this.#set(run, bytes);
  }

  /** Sets the bytes that the states of a run in progress take by now. */
  setState(run: string, state: number): void {
    const before = this.#runs.get(run);
    if (before === undefined && state < this.#limits.largeState) return;
    const input = before?.input ?? 0;
    const wasFull = this.isFull;
    this.#set(run, { state, input });
    if (wasFull && !this.isFull) this.#serveSoon();
  }

  /** Counts a run no longer. Returns true if it was counted: then there may be memory for others. */
  release(run: string): boolean {
    const before = this.#runs.get(run);
    if (before === undefined) return false;
    this.#runs.delete(run);
    this.#bytes -= bytesOf(before);
    return true;
  }

  /** Called when a run waits for memory. */
  waited(): void {
    this.#timer ??= this.#scheduler.after(ONE_MORE_INTERVAL_MS, this.#admitOneMore);
  }

  stop(): void {
    this.#timer?.();
    this.#timer = undefined;
  }

  #set(run: string, bytes: RunBytes): void {
    this.release(run);
    if (!this.isLarge(bytes)) return;
    this.#runs.set(run, bytes);
    this.#bytes += bytesOf(bytes);
  }

  /** Deferred to a later turn, because the state of another thread is being changed in this one. */
  #serveSoon(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    this.#scheduler.soon(() => {
      this.#isServing = false;
      this.#serveWaiting();
    });
  }

  readonly #admitOneMore = (): void => {
    this.#timer = undefined;
    this.#isOneMoreAdmitted = this.#hasHeapRoom;
    this.#serveWaiting();
    this.#isOneMoreAdmitted = false;
  };

  get #hasHeapRoom(): boolean {
    const { used, limit } = this.#heap();
    // The heap figure includes garbage until it is collected, and a process in which all runs wait allocates too little
    // to trigger a collection.
    return used < limit / 2 || this.#bytes < limit / 4;
  }
}

/**
 * Only the larger of the two counts: an input becomes part of the state and shares its memory, or the state drops it.
 */
const bytesOf = ({ state, input }: RunBytes): number => Math.max(state, input);
