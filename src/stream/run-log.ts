import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Sink } from "../ports/sink.ts";
import { AttemptSink, type LogDeps } from "./attempt-sink.ts";
import type { RenderData } from "./render-data.ts";
import { type LogEntry, LogTail } from "./log-tail.ts";

/** A listener that waits for a log to change. */
export interface LogListener {
  ready(): void;
}

/** Notifications of a log to the hub. */
export interface LogOwner {
  /** The log has ended, or its last reader has left: the hub checks whether it is still needed. */
  changed(log: RunLog): void;
}

/**
 * `waiting`: no attempt has been opened. `live`: an attempt is open. `ended`: no fact will follow. `broken`: the attempt failed, and its
 * readers have to connect again.
 */
export type LogState = "waiting" | "live" | "ended" | "broken";

/** `pending`: the run's thread is being deleted, which may still fail. */
type ThreadDeletion = "none" | "pending" | "deleted";

/** The log of one run in memory: chunks that are being stored, and the newest stored ones. */
export class RunLog {
  readonly key: ThreadKey;
  readonly run: string;
  /** The rendering context of the run; created by the first reader, which has the record. */
  data: RenderData | undefined;
  /** The run's record while an attempt is live: it may not be stored yet. */
  record: RunRecord | undefined;
  /** Cancels the timer that removes the log after its end. */
  lingering: Cancel | undefined;
  readonly #deps: LogDeps;
  readonly #owner: LogOwner;
  readonly #tail: LogTail;
  #state: LogState = "waiting";
  #sink: AttemptSink | undefined;
  /** Chunks that are being stored, in order of ids. */
  #pending: LogEntry[] = [];
  #closing = false;
  #dismissed: number | undefined;
  /** True when readers see chunks before they are stored. */
  #early: boolean;
  #shown = false;
  #visible = Number.POSITIVE_INFINITY;
  #waiters: LogListener[] = [];
  #readers = 0;
  #version = 0;
  #threadDeletion: ThreadDeletion = "none";

  constructor(key: ThreadKey, run: string, deps: LogDeps, owner: LogOwner) {
    this.key = key;
    this.run = run;
    this.#deps = deps;
    this.#owner = owner;
    this.#early = deps.sync === "memory";
    this.#tail = new LogTail(deps.limits.tail);
  }

  get state(): LogState {
    return this.#state;
  }

  /** At the end, readers wait while the deletion is `pending`; if it succeeds, they learn that the thread was deleted. */
  get threadDeletion(): ThreadDeletion {
    return this.#threadDeletion;
  }

  set threadDeletion(is: ThreadDeletion) {
    this.#threadDeletion = is;
    this.#wake();
  }

  get readers(): number {
    return this.#readers;
  }

  /**
   * The first id that memory can serve. Infinity: readers have not seen any event of this log yet, so events below its first may still be
   * stored (the last writes of an older attempt).
   */
  get from(): number {
    return this.#shown ? (this.#tail.first ?? this.#visible) : Number.POSITIVE_INFINITY;
  }

  /** The id that follows the last visible event. */
  get visible(): number {
    return this.#visible;
  }

  /** The id of the next event; undefined until an attempt has been opened, or it is known that there will be none. */
  get next(): number | undefined {
    return this.#sink?.next ?? this.#dismissed;
  }

  /** Increases with every change that matters to a reader. */
  get version(): number {
    return this.#version;
  }

  find(id: number): LogEntry | undefined {
    return this.#tail.find(id);
  }

  open(epoch: number, first: number): Sink {
    this.#sink?.kill();
    // Chunks that an older attempt has in flight are not tracked any more. The journal knows whether they were stored once the first chunk
    // of this attempt is stored (writes take effect in order), so that chunk becomes visible only then.
    if (this.#pending.length > 0) {
      for (const entry of this.#pending) entry.stored = true;
      this.#pending = [];
      this.#early = false;
    }
    this.#version++;
    if (this.#state === "waiting") {
      this.#visible = first;
      this.#shown = first === 0;
    }
    this.#state = "live";
    // An id that a reader may have seen (with `sync: "memory"`, before it was stored) is never used twice.
    this.#sink = new AttemptSink(this, this.#deps, epoch, Math.max(first, this.#visible));
    return this.#sink;
  }

  /** Ends a log for which no attempt will be opened. `next`: the id that follows the last event of the run. */
  dismiss(next: number): void {
    if (this.#state !== "waiting") return;
    this.#dismissed = next;
    this.#end();
  }

  /** Adds a complete chunk; readers see it when it and all chunks before it are stored. */
  expect(entry: LogEntry): void {
    this.#pending.push(entry);
    if (this.#early) {
      this.#show(entry);
      this.#wake();
    }
  }

  /** The chunk is stored. */
  settle(entry: LogEntry): void {
    entry.stored = true;
    let done = 0;
    for (; done < this.#pending.length; done++) {
      const head = this.#pending[done] as LogEntry;
      if (!head.stored) break;
      this.#show(head);
    }
    if (done === 0) return;
    if (done === this.#pending.length) this.#pending = [];
    else this.#pending.splice(0, done);
    if (this.#deps.sync === "memory") {
      this.#early = true;
      for (const next of this.#pending) this.#show(next);
      this.#tail.trim();
    }
    if (this.#closing && this.#pending.length === 0) this.#end();
    else this.#wake();
  }

  /** Ends the log: no fact will follow. */
  close(): void {
    this.#closing = true;
    if (this.#pending.length === 0) this.#end();
  }

  /** Breaks the log, because the attempt has failed. */
  break(): void {
    if (this.#state === "broken" || this.#state === "ended") return;
    this.#sink?.kill();
    this.#state = "broken";
    this.#pending = [];
    this.#tail.clear();
    this.#owner.changed(this);
    this.#wake();
  }

  /** Frees the memory of an ended log: readers that are behind read the rest from storage. */
  forget(): void {
    this.#tail.clear();
  }

  join(): void {
    this.#readers++;
  }

  leave(waiter: LogListener): void {
    this.#readers--;
    const at = this.#waiters.indexOf(waiter);
    if (at >= 0) this.#waiters.splice(at, 1);
    if (this.#readers === 0) this.#owner.changed(this);
  }

  /** Calls `waiter` once, at the next change. */
  wait(waiter: LogListener): void {
    this.#waiters.push(waiter);
  }

  #show(entry: LogEntry): void {
    if (this.#shown && entry.chunk.first < this.#visible) return;
    // Events between two attempts are only in storage, because the memory holds no gaps.
    if (!this.#shown || entry.chunk.first !== this.#visible) this.#tail.clear();
    this.#shown = true;
    this.#visible = entry.end;
    this.#tail.push(entry);
  }

  #end(): void {
    this.#state = "ended";
    this.record = undefined;
    this.#sink?.kill();
    // Readers that keep up end here; after that, most logs have no readers.
    this.#wake();
    this.#owner.changed(this);
  }

  #wake(): void {
    this.#version++;
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) {
      try {
        waiter.ready();
      } catch (cause) {
        // An error of one reader must not keep the event from the others, nor reach the writer.
        this.#deps.logger.error("a stream reader failed", { run: this.run, error: String(cause) });
      }
    }
  }
}
