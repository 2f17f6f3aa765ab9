import { threadDeleted, toPlainError } from "../model/errors.ts";
import { isTerminal, type RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { NoEventsReason, Reader } from "./run-reader.ts";
import { RenderDataLoader, type RenderDataDeps } from "./render-data-loader.ts";
import { LogChunk } from "./recent-log-chunks.ts";
import { newReaderState, type ChunkSlice } from "./rendering.ts";

interface Deps extends RenderDataDeps {
  readonly key: ThreadKey;
  readonly run: RunRecord;
  /** The number of the last event that the client has, which may be the end of the run; -1 if it has none. */
  readonly after: number;
  /** Returns one more than the id of the run's last event if that is known in memory; otherwise 0. */
  readonly next: () => number;
  /**
   * True: if the thread is deleted, the reader reports that the run has failed. It is for a protocol that has no event for a deletion:
   * without this report, its clients would wait forever for the end of the run.
   */
  readonly failsWithThread: boolean;
}

/** Reads the events of one run, and then its end: a slice without events, which takes one event number. */
export class RunAndEndReader implements Reader {
  readonly #inner: Reader;
  readonly #deps: Deps;
  /** The event number of the end, once it has been returned. */
  #end: number | undefined;
  /** True when events have been returned. */
  #hasRead = false;
  #closed = false;
  /** What `next` returns after it has returned the end of the run. */
  #afterEnd: NoEventsReason = "end";

  constructor(inner: Reader, deps: Deps) {
    this.#inner = inner;
    this.#deps = deps;
  }

  get isCut(): boolean {
    return this.#inner.isCut;
  }

  get cursor(): number {
    return this.#end ?? this.#inner.cursor;
  }

  onReady(listener: () => void): void {
    this.#inner.onReady(listener);
  }

  rest(): void {
    this.#inner.rest();
  }

  rewind(id: number): void {
    this.#end = undefined;
    this.#inner.rewind(id);
  }

  close(): void {
    this.#closed = true;
    this.#inner.close();
  }

  next(): Eventually<ChunkSlice | NoEventsReason> {
    if (this.#end !== undefined) return this.#afterEnd;
    return andThen(this.#inner.next(), (got) => {
      if (typeof got !== "string") this.#hasRead = true;
      if (this.#closed) return got;
      if (got === "thread_deleted" && this.#deps.failsWithThread) return this.#failed();
      return got === "end" ? this.#ended() : got;
    });
  }

  #failed(): ChunkSlice | NoEventsReason {
    const { run, next } = this.#deps;
    this.#afterEnd = "thread_deleted";
    const first = Math.max(this.#hasRead ? this.#inner.cursor + 1 : 0, next());
    const failed: RunRecord = { ...run, status: "error", error: toPlainError(threadDeleted()) };
    return this.#endAt(first, failed);
  }

  #ended(): Eventually<ChunkSlice | NoEventsReason> {
    const { journal, key, run, next } = this.#deps;
    return andThen(journal.sharedRun(key, run.run_id), (record) => {
      // The run has not ended. The log has ended for another reason, such as a shutdown.
      if (this.#closed || (record !== undefined && !isTerminal(record.status))) return "end";
      const first = Math.max(this.#hasRead ? this.#inner.cursor + 1 : 0, record?.next_event ?? next());
      return this.#endAt(first, record);
    });
  }

  #endAt(first: number, record: RunRecord | undefined): ChunkSlice | NoEventsReason {
    const { key, run, after } = this.#deps;
    // There is no end to report: the client has it, or the run was rolled back before any event was read.
    if (first <= after || first === 0) return this.#afterEnd;
    this.#end = first;
    const entry = new LogChunk({ run_id: run.run_id, first, facts: [] }, first + 1);
    const memo = newReaderState();
    return {
      entry,
      after: first - 1,
      data: new RenderDataLoader(this.#deps, key, run),
      shared: false,
      memo,
      ended: { record },
    };
  }
}
