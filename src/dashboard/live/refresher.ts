import { isTransient } from "../api-errors.ts";
import { retryDelayMs } from "./retry-delay.ts";

/** Milliseconds between a reported change and the read, so that several changes in quick succession cause one read. */
const GATHER_MS = 120;
/** The pause after a read is this many times as long as the read, so that a slow server gets fewer requests. */
const PAUSE_FACTOR = 2;
/** The longest pause after a read, in milliseconds. */
const MAX_PAUSE_MS = 2_500;

interface RefresherOptions<T> {
  /** Reads the data. The signal is aborted when the result is no longer needed. */
  readonly read: (signal: AbortSignal) => Promise<T>;
  /** Receives the data that were read. Not called after `close`. */
  readonly take: (found: T) => void;
  /** Called when a read has failed. The read is repeated if the error may be temporary. Not called after `close`. */
  readonly onError: (cause: unknown) => void;
}

/**
 * Reads data at once, and again after each reported change. Only one read is in progress at a time, so older data never
 * replace newer data. A read that fails with a temporary error is repeated.
 */
export class Refresher<T> {
  readonly #options: RefresherOptions<T>;
  #current: AbortController | null = null;
  /** Whether a change was reported during the current read, so that another read must follow. */
  #isOutdated = false;
  /** The number of successive reads that failed with a temporary error. */
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the next read starts, in milliseconds of `performance.now()`; valid while there is a timer. */
  #at = 0;
  /** When the pause after the latest read ends, in milliseconds of `performance.now()`. */
  #pauseUntil = 0;
  #isSuspended = false;
  #closed = false;

  constructor(options: RefresherOptions<T>) {
    this.#options = options;
    void this.#read();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#current?.abort();
  }

  /** Aborts the current read, and starts no other one before `resume`. */
  suspend(): void {
    this.#isSuspended = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#current?.abort();
    this.#current = null;
  }

  /** Allows reads again, and starts one. */
  resume(): void {
    this.#isSuspended = false;
    this.request();
  }

  /** Reports a change, so that the data are read again soon. Further changes do not delay this read. */
  request(): void {
    if (this.#isSuspended) return;
    if (this.#current !== null) this.#isOutdated = true;
    else this.#schedule(Math.max(GATHER_MS, this.#pauseUntil - performance.now()));
  }

  /**
   * Reads the data again although no change was reported. Does nothing after a temporary error: such a read is repeated
   * anyway, at growing intervals.
   */
  poll(): void {
    if (this.#failures === 0) this.request();
  }

  #schedule(wait: number): void {
    const at = performance.now() + wait;
    if (this.#timer !== undefined && this.#at <= at) return;
    clearTimeout(this.#timer);
    this.#at = at;
    this.#timer = setTimeout(() => void this.#read(), wait);
  }

  async #read(): Promise<void> {
    this.#timer = undefined;
    const current = new AbortController();
    this.#current = current;
    this.#isOutdated = false;
    const began = performance.now();
    let isToRepeat = false;
    try {
      const found = await this.#options.read(current.signal);
      if (this.#closed || this.#current !== current) return;
      this.#options.take(found);
    } catch (cause) {
      if (this.#closed || this.#current !== current) return;
      isToRepeat = isTransient(cause);
      this.#options.onError(cause);
    }
    const now = performance.now();
    this.#current = null;
    this.#pauseUntil = now + Math.min((now - began) * PAUSE_FACTOR, MAX_PAUSE_MS);
    if (isToRepeat) this.#schedule(retryDelayMs(this.#failures++));
    else this.#failures = 0;
    if (this.#isOutdated) this.request();
  }
}
