import type { ReadHeapUsage } from "../src/ports/heap-usage.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";

export interface RunMemoryLimits {
  /** A state or an input of this many bytes or more is large. Smaller states and inputs are not counted. */
  readonly largeState: number;
  /**
   * When the large states and inputs of runs in progress take this many bytes, further large runs wait. A run that
   * begins below the limit may exceed it.
   */
  readonly maxStateBytes: number;
}

/** The bytes of memory that a run needs for the states of its graphs, and for its input. */
export interface RunBytes {
  readonly state: number;
  readonly input: number;
}

/**
 * Milliseconds after which one more run may begin although the budget is used up. A node may start a run and wait for
 * its end, while the state of the node's own run fills the budget: without this exception, both runs would wait
 * forever.
 */
const ONE_MORE_INTERVAL_MS = 1_000;

/**
 * Decides, by the memory that the states and inputs of runs in progress take, whether one more run may begin. The runs
 * that wait for memory are in the {@link ConcurrencyLimiter}.
 */
export class RunMemoryBudget {
  readonly #scheduler: Scheduler;
  readonly #heap: ReadHeapUsage;
  readonly #limits: RunMemoryLimits;
  /** Runs in progress that are large, or that are expected to be large and are not measured yet. */
  readonly #runs = new Map<string, RunBytes>();
  #bytes = 0;
  #serveWaiting: () => void = () => undefined;
  #isServing = false;
  #isOneMoreAdmitted = false;
  #timer: Cancel | undefined;

  constructor(scheduler: Scheduler, heap: ReadHeapUsage, limits: RunMemoryLimits) {
    this.#scheduler = scheduler;
    this.#heap = heap;
    this.#limits = limits;
  }

  /**
   * Registers the function `serveWaiting`, which starts the waiting runs that {@link admits} now allows. The function
   * calls {@link waited} if some runs still wait for memory.
   */
  onSpace(serveWaiting: () => void): void {
    this.#serveWaiting = serveWaiting;
  }

  /** The bytes of the large states and inputs of runs in progress. */
  get bytes(): number {
    return this.#bytes;
  }

  isLarge(bytes: RunBytes): boolean {
    return bytesOf(bytes) >= this.#limits.largeState;
  }

  /** True when the budget is used up, so that large runs have to wait. */
  get isFull(): boolean {
    return this.#bytes >= this.#limits.maxStateBytes;
  }

  /** True when a run that needs this many bytes may begin. */
  admits(bytes: RunBytes): boolean {
    return !this.isFull || this.#isOneMoreAdmitted || !this.isLarge(bytes);
  }

  /** Counts a run that begins, if it is large. The caller MUST call `release` when the run ends. */
  reserve(run: string, bytes: RunBytes): void {
    if (!this.isLarge(bytes)) return;
    this.#isOneMoreAdmitted = false;
    this.#set(run, bytes);
  }

  /** Sets the bytes that the states of a run in progress take at present. */
  setState(run: string, state: number): void {
    const before = this.#runs.get(run);
    if (before === undefined && state < this.#limits.largeState) return;
    const input = before?.input ?? 0;
    const wasFull = this.isFull;
    this.#set(run, { state, input });
    if (wasFull && !this.isFull) this.#serveSoon();
  }

  /** Stops counting a run. Returns true if the run was counted: then there may be memory for other runs. */
  release(run: string): boolean {
    const before = this.#runs.get(run);
    if (before === undefined) return false;
    this.#runs.delete(run);
    this.#bytes -= bytesOf(before);
    return true;
  }

  /** Starts the timer after which one more run may begin. Called when a run waits for memory. */
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

  /**
   * Serves the waiting runs in a later turn of the event loop, because in this turn the state of another thread is
   * being changed.
   */
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
    // `used` includes garbage that is not collected yet, and a process in which all runs wait allocates too little to
    // trigger a collection. So the counted bytes are compared too.
    return used < limit / 2 || this.#bytes < limit / 4;
  }
}

/**
 * The bytes that count for a run: the larger of state and input, not their sum. The input either becomes part of the
 * state, in the same memory, or is dropped.
 */
const bytesOf = ({ state, input }: RunBytes): number => Math.max(state, input);
