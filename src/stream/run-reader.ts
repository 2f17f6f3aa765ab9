import { type EventChunk, chunkEnd } from "../model/run-event.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import { MIN_CHUNKS_PER_TURN, type Journal } from "../ports/journal.ts";
import type { RunLog } from "./run-log.ts";
import type { RenderDataLoader } from "./render-data-loader.ts";
import { newReaderState, type ChunkSlice } from "./rendering.ts";
import { LogChunk, statesInChunk } from "./recent-log-chunks.ts";

/** What was deleted during a read: the thread, or the run. */
export type DeletedDuringRead = "thread_deleted" | "run_deleted";

/**
 * The reason why a read returned no events. `wait`: there are no further events yet; the `onReady` listener will be called. `end`: the run
 * has ended, and all its events have been read. `cut`: the log has ended early, for example because the server stops; the client has to
 * connect again with its last event id.
 */
export type NoEventsReason = "wait" | "end" | "cut" | DeletedDuringRead;

/** A reader of events. It has a cursor, moves at its own pace, and does not slow down the writer. */
export interface Reader {
  /**
   * Returns the next events, in order, each exactly once, and moves the cursor past them. Events that have expired are left out. MUST NOT be
   * called again before a returned promise has settled.
   * @throws ServiceError `journal.damaged` if the storage finds stored events damaged; the reader does not skip these
   */
  next(): Eventually<ChunkSlice | NoEventsReason>;
  /** Sets the listener. After `next` has returned `wait`, the listener is called when `next` should be called again. */
  onReady(listener: () => void): void;
  /** True when the log has ended early, for example because the server stops. A read that fails then is not an error. */
  readonly isCut: boolean;
  /** The id of the last event that was read; -1 before the first. */
  readonly cursor: number;
  /** Drops events that were read in advance, so that a paused reader keeps only its position in memory. */
  rest(): void;
  /** Moves the cursor back to event `id` of the run that was read last. Called when the events after it were not sent. */
  rewind(id: number): void;
  /** Closes the reader. Afterwards `next` returns `end`. */
  close(): void;
}

const MIN_CHUNKS_PER_READ = 4;
const MAX_CHUNKS_PER_READ = 256;
/** The approximate number of facts that are read in advance. */
const READ_AHEAD_FACTS = 1024;

export interface ReaderStart {
  /** The id of the last event that the client has; -1: start at the first event. */
  readonly start: number;
  /** An event id that replaces `start` if the run has reached it. The reader waits until the log knows its next event id. */
  readonly later: number | undefined;
}

/** Reads a run's events: from storage until it reaches the events in memory, and then from memory. */
export class RunReader implements Reader {
  readonly #journal: Journal;
  readonly #data: RenderDataLoader;
  /** The log in memory. Undefined: the run has ended, and all its events are in storage. */
  readonly #log: RunLog | undefined;
  #cursor: number;
  #later: number | undefined;
  #ahead: readonly EventChunk[] = [];
  #index = 0;
  /**
   * The number of chunks that are read at a time. It begins with {@link MIN_CHUNKS_PER_TURN}, so that the first read returns a short run
   * completely: the run may be deleted before a second read.
   */
  #limit = MIN_CHUNKS_PER_TURN;
  /** True when the log has not changed since the storage was read to its end. */
  #dry = false;
  #closed = false;
  readonly #memo = newReaderState();
  /** True while the reader waits for the log's next change. */
  #armed = false;
  #listener: () => void = () => undefined;

  readonly #closes: () => void;
  readonly #isStopping: () => boolean;

  /** `isStopping` returns true when the server is stopping. Then all reads return `cut`. */
  constructor(
    journal: Journal,
    data: RenderDataLoader,
    log: RunLog | undefined,
    { start, later }: ReaderStart,
    isStopping: () => boolean,
    closes: () => void,
  ) {
    this.#isStopping = isStopping;
    this.#closes = closes;
    this.#journal = journal;
    this.#data = data;
    this.#log = log;
    this.#cursor = start;
    this.#later = later;
    log?.join();
  }

  get isCut(): boolean {
    return this.#isStopping() || this.#log?.state === "broken";
  }

  get cursor(): number {
    return this.#cursor;
  }

  onReady(listener: () => void): void {
    this.#listener = listener;
  }

  ready(): void {
    this.#dry = false;
    this.#armed = false;
    this.#listener();
  }

  rest(): void {
    this.#ahead = [];
    this.#index = 0;
  }

  rewind(id: number): void {
    // If the event is in the chunk that was returned last, that chunk is still in memory and is returned again.
    const last = this.#ahead[this.#index - 1];
    if (last !== undefined && id >= last.first - 1) this.#index--;
    else this.rest();
    this.#cursor = id;
    this.#dry = false;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.rest();
    this.#log?.leave(this);
    this.#closes();
  }

  next(): Eventually<ChunkSlice | NoEventsReason> {
    const log = this.#log;
    for (;;) {
      if (this.#closed) return "end";
      if (this.isCut) return "cut";
      if (this.#later !== undefined) {
        if (log?.next === undefined) return log === undefined ? "end" : this.#wait(log);
        if (this.#later < log.next) this.#cursor = this.#later;
        this.#later = undefined;
      }
      const slice = this.#fromAhead();
      if (slice !== undefined) return slice;
      if (log !== undefined && this.#cursor + 1 >= log.from) {
        const entry = log.find(this.#cursor + 1);
        if (entry !== undefined) return this.#pass(entry);
        return log.state === "ended" ? this.#end(log) : this.#wait(log);
      }
      if (this.#dry) return log === undefined || log.state === "ended" ? this.#end(log) : this.#wait(log);
      const from = log?.from ?? Number.POSITIVE_INFINITY;
      const version = log?.version;
      const took = (chunks: readonly EventChunk[]): Eventually<DeletedDuringRead | undefined> => {
        const expected = log === undefined ? this.#data.run.next_event : log.from;
        const isMissing =
          chunks.length === 0 && expected < Number.POSITIVE_INFINITY && this.#cursor + 1 < expected;
        this.#took(chunks, from, version);
        return isMissing ? this.#findDeletion() : undefined;
      };
      const answer = this.#journal.events(this.#data.key, this.#data.run.run_id, this.#cursor, this.#limit);
      const taken = answer instanceof Promise ? answer.then(took) : took(answer);
      if (taken instanceof Promise) return taken.then((deletion) => deletion ?? this.next());
      if (taken !== undefined) return taken;
    }
  }

  /**
   * The result at the end of the run. It is `end`, unless the thread is being deleted: then the reader first waits for the result of the
   * deletion.
   */
  #end(log: RunLog | undefined): NoEventsReason {
    if (log === undefined || log.threadDeletion === "none") return "end";
    return log.threadDeletion === "deleted" ? "thread_deleted" : this.#wait(log);
  }

  /**
   * Finds out why expected events are not stored. Returns what was deleted: the thread or the run. Undefined: nothing was deleted, so the
   * events have expired.
   */
  #findDeletion(): Eventually<DeletedDuringRead | undefined> {
    const { key, run } = this.#data;
    return andThen(this.#journal.sharedRun(key, run.run_id), (record) => {
      if (record !== undefined) return undefined;
      return andThen(this.#journal.thread(key), (thread) => {
        if (thread === undefined) return "thread_deleted";
        // Only the run is missing. If it has a log in memory, it has just ended with a rollback, which is an ordinary end.
        return this.#log === undefined ? "run_deleted" : undefined;
      });
    });
  }

  #wait(log: RunLog): "wait" {
    // Registers the reader only once, even if `next` is called several times before the log changes.
    if (!this.#armed) log.wait(this);
    this.#armed = true;
    return "wait";
  }

  /**
   * Takes the chunks that were read from storage. `from` and `version` describe the log when the read began: the first event id in memory,
   * and the log's version.
   */
  #took(chunks: readonly EventChunk[], from: number, version: number | undefined): void {
    // Removes chunks that readers may not see yet: the storage may already return chunks whose write is in flight.
    const visible = this.#log?.visible ?? Number.POSITIVE_INFINITY;
    const seen = chunks.length > 0 && (chunks.at(-1) as EventChunk).first >= visible;
    const shown = seen ? chunks.filter((chunk) => chunk.first < visible) : chunks;
    if (shown.length === 0) {
      // The storage has no events between the cursor and the events in memory, so the reader continues with those in memory.
      if (from < Number.POSITIVE_INFINITY) this.#cursor = Math.max(this.#cursor, from - 1);
      else this.#dry = this.#log?.version === version;
      return;
    }
    let facts = 0;
    for (const chunk of shown) facts += chunk.facts.length;
    if (facts * 2 <= READ_AHEAD_FACTS) this.#limit = Math.min(MAX_CHUNKS_PER_READ, this.#limit * 2);
    else if (facts > READ_AHEAD_FACTS) this.#limit = Math.max(MIN_CHUNKS_PER_READ, this.#limit >> 1);
    this.#ahead = shown;
    this.#index = 0;
  }

  #fromAhead(): ChunkSlice | undefined {
    while (this.#index < this.#ahead.length) {
      const chunk = this.#ahead[this.#index++] as EventChunk;
      const end = chunkEnd(chunk);
      if (end > this.#cursor + 1) return this.#pass(new LogChunk(chunk, end, 0, statesInChunk(chunk)));
    }
    if (this.#index > 0) this.rest();
    return undefined;
  }

  #pass(entry: LogChunk): ChunkSlice {
    const after = this.#cursor;
    this.#cursor = entry.end - 1;
    const shared = this.#log !== undefined && this.#log.readers > 1;
    return { entry, after, data: this.#data, shared, memo: this.#memo };
  }
}
