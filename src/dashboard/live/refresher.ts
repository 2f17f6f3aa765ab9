import { isTransient } from "../request-errors.ts";
import { retryDelay } from "./retry-delay.ts";

/** Milliseconds: changes are gathered for this long before they are read. */
const GATHER_MS = 120;
/** Times the duration of a read: the shortest pause after it, so that a slow server is asked less often. */
const SHARE = 2;
/** Milliseconds: the longest pause before changes are read. */
const MAX_PAUSE_MS = 2_500;

interface RefresherOptions<T> {
  /** Reads. The signal ends a read whose result is not wanted any more. */
  readonly read: (signal: AbortSignal) => Promise<T>;
  /** Receives the result. Not called any more after `close`. */
  readonly take: (found: T) => void;
  /** Called when a read has failed. The read is repeated if that may help. Not called any more after `close`. */
  readonly onError: (cause: unknown) => void;
}

/**
 * Keeps what a page shows up to date: reads it at once, and again after each change that is reported. Never shows the
 * result of an older read after that of a newer one, and never misses a change: one that is reported during a read is
 * read afterwards, as it may have come too late for that read, and a read that fails is repeated.
 */
export class Refresher<T> {
  readonly #options: RefresherOptions<T>;
  #current: AbortController | null = null;
  /** True: a change was reported during the current read. */
  #isOutdated = false;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Milliseconds, as `performance.now()`: the time of the next read, if there is a timer. */
  #at = 0;
  /** Milliseconds, as `performance.now()`: no change is read before. */
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

  /** Ends the current read and begins no other until `resume`. */
  suspend(): void {
    this.#isSuspended = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#current?.abort();
    this.#current = null;
  }

  /** Reads again. */
  resume(): void {
    this.#isSuspended = false;
    this.request();
  }

  /** Reports a change. It is read soon, even while further changes follow. */
  request(): void {
    if (this.#isSuspended) return;
    if (this.#current !== null) this.#isOutdated = true;
    else this.#schedule(Math.max(GATHER_MS, this.#pauseUntil - performance.now()));
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
