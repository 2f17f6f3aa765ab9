import { isTerminal, type RunRecord } from "../model/run.ts";
import { isPermitted, type ThreadKey } from "../model/thread.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { Journal } from "../ports/journal.ts";
import type { Logger } from "../ports/logger.ts";
import type { NoEventsReason, Reader } from "./run-reader.ts";
import type { ChunkSlice } from "./rendering.ts";
import type { NewRunWatch, RunListener } from "./new-run-watch.ts";

interface Deps {
  readonly key: ThreadKey;
  /** Reads the events after this event number of the thread; 0: from the first. */
  readonly after: number;
  readonly journal: Journal;
  readonly logger: Logger;
  readonly watch: NewRunWatch;
  /** Opens a reader of one run. `after`: the id of the last event that the client has; -1: none. */
  readonly follow: (run: RunRecord, after: number) => Reader;
  /** True: the reader also returns the end of each run, which has an event number of its own. */
  readonly withEnds: boolean;
}

/** The number of runs that are looked up at a time. It is small, because each run is read together with its input, which may be large. */
const RUNS_PER_READ = 8;

/**
 * Reads the runs of one thread one after the other, in the order in which they began. After the stored runs it waits for new ones. It
 * returns `end` only when it was closed.
 */
export class ThreadReader implements Reader, RunListener {
  readonly #deps: Deps;
  readonly #watch: NewRunWatch;
  #run: RunRecord | undefined;
  #reader: Reader | undefined;
  /** True when the events of the current run may be returned without a further check of the permission. */
  #isPermitted = false;
  #cursor: number;
  /** The first event number (`seq_base`) of the last run that was read or skipped. */
  #base = 0;
  #page: readonly RunRecord[] = [];
  #index = 0;
  /**
   * The version of the {@link NewRunWatch} up to which all new runs have been found. It begins more than one below the first version, so
   * that the first search reads the storage.
   */
  #upTo = -2;
  #waits = false;
  #closed = false;
  #listener: () => void = () => undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#watch = deps.watch;
    this.#cursor = Math.max(0, deps.after);
    this.#watch.join(this);
  }

  /** The run whose events `next` returned last. */
  get run(): RunRecord | undefined {
    return this.#run;
  }

  get isCut(): boolean {
    return this.#watch.broken;
  }

  /** The thread's event number of the last event that was read. */
  get cursor(): number {
    return this.#cursor;
  }

  onReady(listener: () => void): void {
    this.#listener = listener;
  }

  runsChanged(): void {
    if (!this.#waits && !this.#watch.broken && !this.#watch.over) return;
    this.#wake();
  }

  next(): Eventually<ChunkSlice | NoEventsReason> {
    for (;;) {
      if (this.#closed) return "end";
      if (this.#watch.broken) return "cut";
      if (this.#reader === undefined) {
        if (this.#watch.over) return "thread_deleted";
        const found = this.#seek();
        if (found instanceof Promise) {
          // If another run has begun during the search, the search is repeated.
          return found.then((is) => (is || this.#upTo !== this.#watch.version ? this.next() : this.#wait()));
        }
        if (!found) return this.#wait();
      }
      const reader = this.#reader as Reader | undefined;
      const got = reader?.next() ?? "end";
      if (got instanceof Promise) return got.then((now) => (isOver(now) ? this.#over() : this.#got(now)));
      if (!isOver(got)) return this.#got(got);
      this.#leave();
    }
  }

  rest(): void {
    this.#page = [];
    this.#index = 0;
    this.#reader?.rest();
  }

  rewind(id: number): void {
    this.#reader?.rewind(id);
    this.#cursor = this.#base + id;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#leave();
    this.rest();
    this.#watch.leave(this);
  }

  #wake(): void {
    this.#waits = false;
    try {
      this.#listener();
    } catch (cause) {
      // The error is only logged, so that it does not fail the run whose start has called this listener.
      this.#deps.logger.error("a thread's reader failed", { error: String(cause) });
    }
  }

  #wait(): NoEventsReason {
    if (this.#closed) return "end";
    if (this.#watch.over) return "thread_deleted";
    if (this.#watch.broken) return "cut";
    this.#waits = true;
    return "wait";
  }

  /**
   * Checks the permission when the first events of a run arrive, because the thread may have got another owner since the reader was made.
   */
  #got(got: ChunkSlice | NoEventsReason): Eventually<ChunkSlice | NoEventsReason> {
    if (this.#isPermitted || typeof got === "string") return this.#took(got);
    const { key, journal } = this.#deps;
    // Reads the thread only now, because only a run that has events is sure to have a stored thread.
    return andThen(journal.thread(key), (thread) => {
      if (this.#closed) return "end";
      // Skips the run. The promise prevents a stack overflow if thousands of runs are skipped.
      if (thread === undefined || !isPermitted(key, thread))
        return Promise.resolve().then(() => this.#over());
      this.#isPermitted = true;
      return this.#took(got);
    });
  }

  #took(got: ChunkSlice | NoEventsReason): ChunkSlice | NoEventsReason {
    if (typeof got !== "string" && this.#reader !== undefined)
      this.#cursor = this.#base + this.#reader.cursor;
    return got;
  }

  #over(): Eventually<ChunkSlice | NoEventsReason> {
    this.#leave();
    return this.next();
  }

  #leave(): void {
    this.#reader?.close();
    this.#reader = undefined;
  }

  /** Opens a reader of the next run. Returns false if no further run has begun yet. */
  #seek(): Eventually<boolean> {
    while (this.#index < this.#page.length) {
      const taken = this.#take(this.#page[this.#index++] as RunRecord);
      if (taken instanceof Promise) return taken.then((is) => is || this.#seek());
      if (taken) return true;
    }
    const watch = this.#watch;
    const { version } = watch;
    if (this.#upTo === version) return false;
    // Exactly one run has begun since the last search, and the watch knows it. So thousands of readers do not all search the storage for
    // it.
    if (this.#upTo === version - 1) return this.#takeLast();
    const { journal, key } = this.#deps;
    const from = Math.max(this.#cursor, this.#base);
    return andThen(journal.started(key, from, RUNS_PER_READ), (found) => {
      if (this.#closed) return false;
      this.#page = found.filter(({ seq_base }) => seq_base > this.#base);
      this.#index = 0;
      if (this.#page.length > 0) return this.#seek();
      // All runs are stored, perhaps except the one that began last, which the watch knows.
      return watch.version === version ? this.#takeLast() : this.#seek();
    });
  }

  #takeLast(): Eventually<boolean> {
    const { last, version } = this.#watch;
    this.#upTo = version;
    return last !== undefined && this.#take(last);
  }

  /** Opens a reader of a run. Returns false if none of its events has to be read. */
  #take(run: RunRecord): Eventually<boolean> {
    const { seq_base } = run;
    if (seq_base <= this.#base) return false;
    this.#base = seq_base;
    if (run.run_id === this.#watch.last?.run_id) this.#upTo = this.#watch.version;
    const next = this.#cursor + (this.#deps.withEnds ? 0 : 1);
    if (isTerminal(run.status) && seq_base + run.next_event <= next) return false;
    const after = Math.max(-1, this.#cursor - seq_base);
    this.#run = run;
    this.#isPermitted = this.#deps.key.permits === undefined;
    this.#reader = this.#deps.follow(run, after);
    this.#reader.onReady(() => this.#wake());
    return true;
  }
}

/**
 * True if the current run has no more events. `thread_deleted` also counts: the watch reports separately whether the thread was deleted.
 */
const isOver = (got: ChunkSlice | NoEventsReason): got is Exclude<NoEventsReason, "wait" | "cut"> =>
  got === "end" || got === "run_deleted" || got === "thread_deleted";
