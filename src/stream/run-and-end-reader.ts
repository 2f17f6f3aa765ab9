import { isTerminal, type RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { ReadPause, Reader } from "./run-reader.ts";
import { RenderData, type RenderDataDeps } from "./render-data.ts";
import { LogEntry } from "./log-tail.ts";
import { newReaderState, type ChunkSlice } from "./rendering.ts";

interface Deps extends RenderDataDeps {
  readonly key: ThreadKey;
  readonly run: RunRecord;
}

/** Reads one run, and then its end, as a segment without events that takes one event number. */
export class RunAndEndReader implements Reader {
  readonly #inner: Reader;
  readonly #deps: Deps;
  /** The event number of the end, when it has been returned. */
  #end: number | undefined;
  #closed = false;

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

  next(): Eventually<ChunkSlice | ReadPause> {
    if (this.#end !== undefined) return "end";
    return andThen(this.#inner.next(), (got) => (got === "end" && !this.#closed ? this.#ended() : got));
  }

  #ended(): Eventually<ChunkSlice | ReadPause> {
    const { journal, key, run } = this.#deps;
    return andThen(journal.sharedRun(key, run.run_id), (record) => {
      // Its log was broken before its end: there is nothing more to read, and no end to report.
      if (this.#closed || (record !== undefined && !isTerminal(record.status))) return "end";
      const first = Math.max(this.#inner.cursor + 1, record?.next_event ?? 0);
      this.#end = first;
      const entry = new LogEntry({ run_id: run.run_id, first, facts: [] }, first + 1);
      const memo = newReaderState();
      return {
        entry,
        after: first - 1,
        data: new RenderData(this.#deps, key, run),
        shared: false,
        memo,
        ended: { record },
      };
    });
  }
}
