import { signal } from "@preact/signals";
import { getThreadCount, listThreads } from "../api/client.ts";
import type { ThreadListOrder, ThreadListFilter, ThreadRow } from "../api/records.ts";
import { isKeyMissing, errorMessage } from "../app/notices.ts";
import { ApiKeyRequired } from "../api-errors.ts";
import { retryDelayMs } from "./retry-delay.ts";
import { ThreadDescriptions } from "./thread-descriptions.ts";

/** The number of threads read by one request. */
export const THREADS_PER_REQUEST = 100;
/** The shortest pause after a read of the visible pages, in milliseconds. */
const POLL_INTERVAL_MS = 1_000;
/**
 * The pause after a read is at least this many times as long as the read, so that a slow server gets fewer requests.
 */
const PAUSE_FACTOR = 10;
const MAX_POLL_INTERVAL_MS = 10_000;
/**
 * Milliseconds between two counts of all matching threads. They need a separate request, because a search counts only a
 * little beyond its own page.
 */
const COUNT_INTERVAL_MS = 5_000;

/** The threads that match a filter, sorted by last change or creation. Only the visible pages are read, repeatedly. */
export class ThreadList {
  readonly total = signal<number | null>(null);
  readonly error = signal<string | null>(null);
  /** Rises with each change of the rows that {@link ThreadList.at} returns, or of their descriptions. */
  readonly version = signal(0);
  #pages = new Map<number, readonly ThreadRow[]>();
  #filter: ThreadListFilter = {};
  #order: ThreadListOrder = "latest";
  #seen: readonly [from: number, to: number] = [0, 0];
  #rows: readonly [from: number, to: number] = [0, 0];
  /** The descriptions of the rows, and of other threads that a search has read. */
  readonly descriptions = new ThreadDescriptions(() => this.version.value++);
  #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** The number of consecutive reads that have failed. */
  #failures = 0;
  /** When the next count may start, in milliseconds of `performance.now()`. */
  #countAt = 0;
  /** The result of the latest count; 0 before the first. */
  #counted = 0;

  constructor() {
    document.addEventListener("visibilitychange", this.#shown);
    this.#look();
  }

  readonly #shown = () => {
    if (!document.hidden) this.#look();
  };

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#shown);
    this.#abort.abort();
  }

  at(index: number): ThreadRow | undefined {
    return this.#pages.get(Math.floor(index / THREADS_PER_REQUEST))?.[index % THREADS_PER_REQUEST];
  }

  /** Returns whether a thread is in one of the pages that have been read. */
  has(id: string): boolean {
    return [...this.#pages.values()].some((rows) => rows.some(({ thread_id }) => thread_id === id));
  }

  /** Returns the description of a thread; empty if it has none or it has not been read yet. */
  aboutOf(row: ThreadRow): string {
    return this.descriptions.of(row);
  }

  filter(filter: ThreadListFilter, order: ThreadListOrder): void {
    if (JSON.stringify(filter) === JSON.stringify(this.#filter) && order === this.#order) return;
    this.#filter = filter;
    this.#order = order;
    this.#pages = new Map();
    this.#seen = [0, 0];
    this.#countAt = 0;
    this.#counted = 0;
    this.total.value = null;
    this.version.value++;
    this.#look();
  }

  /**
   * Sets the range of visible rows: the index of the first and of the last. Only the pages with these rows are read.
   */
  setVisible(from: number, to: number): void {
    const seen = [
      Math.floor(from / THREADS_PER_REQUEST),
      Math.floor(Math.max(from, to) / THREADS_PER_REQUEST),
    ] as const;
    const [first, last] = this.#seen;
    this.#seen = seen;
    this.#rows = [from, to];
    this.#tellDescriptions();
    if (first === seen[0] && last === seen[1]) return;
    if (!this.#pages.has(seen[0]) || !this.#pages.has(seen[1])) this.#look();
  }

  refresh(): void {
    this.#look();
  }

  #look(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
    if (this.#closed) return;
    this.#abort = new AbortController();
    void this.#read(this.#abort.signal);
  }

  async #read(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    try {
      void this.#count(this.#filter);
      const [first, last] = this.#seen;
      for (let page = first; page <= last; page++) {
        const { rows, total } = await listThreads(
          this.#filter,
          this.#order,
          page * THREADS_PER_REQUEST,
          THREADS_PER_REQUEST,
          signal,
        );
        this.#take(page, rows, total);
      }
      this.#tellDescriptions();
      this.error.value = null;
      this.#failures = 0;
    } catch (cause) {
      if (signal.aborted) return;
      if (cause instanceof ApiKeyRequired) {
        isKeyMissing.value = true;
        return;
      }
      this.error.value = errorMessage(cause);
      this.#failures++;
    }
    if (signal.aborted || document.hidden) return;
    const wait = Math.min(
      MAX_POLL_INTERVAL_MS,
      Math.max(
        POLL_INTERVAL_MS,
        (performance.now() - began) * PAUSE_FACTOR,
        this.#failures > 0 ? retryDelayMs(this.#failures) : 0,
      ),
    );
    this.#timer = setTimeout(() => this.#look(), wait);
  }

  #tellDescriptions(): void {
    const [from, to] = this.#rows;
    const rows = Array.from({ length: to - from + 1 }, (_, i) => this.at(from + i));
    this.descriptions.setVisibleRows(rows.filter((row) => row !== undefined));
  }

  /** Counts all matching threads, at the same time as the rows are read. */
  async #count(filter: ThreadListFilter): Promise<void> {
    const began = performance.now();
    if (filter.ids !== undefined || began < this.#countAt) return;
    this.#countAt = Number.POSITIVE_INFINITY;
    const counted = await getThreadCount(filter).catch(() => 0);
    if (filter !== this.#filter) return;
    this.#countAt =
      performance.now() + Math.max(COUNT_INTERVAL_MS, (performance.now() - began) * PAUSE_FACTOR);
    this.#counted = counted;
    if (counted > (this.total.peek() ?? Number.POSITIVE_INFINITY)) this.total.value = counted;
  }

  #take(page: number, rows: readonly ThreadRow[], total: number): void {
    const before = this.#pages.get(page);
    const isLast = rows.length < THREADS_PER_REQUEST && (rows.length > 0 || page === 0);
    const all = isLast ? page * THREADS_PER_REQUEST + rows.length : Math.max(total, this.#counted);
    if (all !== this.total.peek()) this.total.value = all;
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(rows)) return;
    this.#pages.set(page, rows);
    // Other pages may have changed, too. Pages far away from this one are dropped unless they are visible, and read
    // again when they become visible.
    const [first, last] = this.#seen;
    for (const other of this.#pages.keys()) {
      if (Math.abs(other - page) > 20 && (other < first || other > last)) this.#pages.delete(other);
    }
    this.version.value++;
  }
}
