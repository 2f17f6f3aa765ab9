import { isTransient } from "../api-errors.ts";
import { retryDelay } from "./retry-delay.ts";

/** Milliseconds between the first reported change and the read, so that changes in quick succession cause one read. */
const GATHER_MS = 120;
/**
 * The pause after a read, as a multiple of the read's duration, so that a slow server gets fewer requests.
 */
const SHARE = 2;
/** The longest pause after a read, in milliseconds. */
const MAX_PAUSE_MS = 2_500;

interface RefresherOptions<T> {
  /** Reads the data. The signal aborts a read whose result is no longer needed. */
  readonly read: (signal: AbortSignal) => Promise<T>;
  /** Receives the data. Not called after `close`. */
  readonly take: (found: T) => void;
  /** Called when a read has failed. The read is repeated if the error may be temporary. Not called after `close`. */
  readonly onError: (cause: unknown) => void;
}

/**
 * Keeps the data of a page up to date: reads it at once, and again after each reported change. There is only one read
 * at a time, so an older result never replaces a newer one. No change is missed: if one is reported during a read,
 * another read follows, and a read with a temporary error is repeated.
 */
export class Refresher<T> {
  readonly #options: RefresherOptions<T>;
  #current: AbortController | null = null;
  /** Whether a change was reported during the current read. */
  #isOutdated = false;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The time of the next read, as `performance.now()` gives it; valid while there is a timer. */
  #at = 0;
  /** The time before which reported changes are not read, as `performance.now()` gives it. */
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

  /** Aborts the current read. No other read starts before `resume`. */
  suspend(): void {
    this.#isSuspended = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#current?.abort();
    this.#current = null;
  }

  /** Allows reads again, and requests one. */
  resume(): void {
    this.#isSuspended = false;
    this.request();
  }

  /** Reports a change. The data is read soon, even while further changes follow. */
  request(): void {
    if (this.#isSuspended) return;
    if (this.#current !== null) this.#isOutdated = true;
    else this.#schedule(Math.max(GATHER_MS, this.#pauseUntil - performance.now()));
  }

  /**
   * Reads the data although no change was reported. After a temporary error it does nothing: a server that is down gets no
   * requests besides the attempts, which become rarer.
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
      this.#failures = 0;
      this.#options.take(found);
    } catch (cause) {
      if (this.#closed || this.#current !== current) return;
      isToRepeat = isTransient(cause);
      this.#options.onError(cause);
    }
    const now = performance.now();
    this.#current = null;
    this.#pauseUntil = now + Math.min((now - began) * SHARE, MAX_PAUSE_MS);
    if (isToRepeat) this.#schedule(retryDelay(this.#failures++));
    if (this.#isOutdated) this.request();
  }
}
