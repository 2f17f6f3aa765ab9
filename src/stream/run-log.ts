import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Sink } from "../ports/sink.ts";
import { AttemptEventWriter, type LogDeps } from "./attempt-event-writer.ts";
import type { RenderDataLoader } from "./render-data.ts";
import { type TailChunk, LogTail } from "./log-tail.ts";

/** A listener that waits for a log to change. */
export interface LogListener {
  ready(): void;
}

/** The part of the hub that a log notifies. */
export interface LogOwner {
  /** Called when the log has ended, or its last reader has left. The hub checks whether the log is still needed. */
  changed(log: RunLog): void;
}

/**
 * `waiting`: no attempt was opened yet. `live`: an attempt is open. `ended`: no more facts will follow. `broken`: the attempt failed, and readers
 * have to connect again.
 */
export type LogState = "waiting" | "live" | "ended" | "broken";

/** `pending`: the run's thread is being deleted, which may still fail. */
type ThreadDeletion = "none" | "pending" | "deleted";

/** The part of a run's log that is in memory: the chunks that are being stored, and the newest stored chunks. */
export class RunLog {
  readonly key: ThreadKey;
  readonly run: string;
  /** The data for rendering the run's facts. The first reader creates it, because it has the run's record. */
  data: RenderDataLoader | undefined;
  /** The run's record while an attempt is live. It may not be stored yet. */
  record: RunRecord | undefined;
  /** Cancels the timer that removes the log after its end. */
  lingering: Cancel | undefined;
  readonly #deps: LogDeps;
  readonly #owner: LogOwner;
  readonly #tail: LogTail;
  #state: LogState = "waiting";
  #sink: AttemptEventWriter | undefined;
  /** The chunks that are being stored, in the order of their ids. */
  #pending: TailChunk[] = [];
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

  /**
   * The state of a deletion of the run's thread. While it is `pending`, readers that have reached the end wait. If the
   * deletion succeeds, they learn that the thread was deleted.
   */
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
   * The first event id that can be read from memory. Infinity: no event of this log is visible yet; then the last events of an older attempt may
   * still be about to be stored.
   */
  get from(): number {
    return this.#shown ? (this.#tail.first ?? this.#visible) : Number.POSITIVE_INFINITY;
  }

  /** One more than the id of the last visible event. */
  get visible(): number {
    return this.#visible;
  }

  /** The id of the next event. Undefined until an attempt was opened, or it is known that there will be none. */
  get next(): number | undefined {
    return this.#sink?.next ?? this.#dismissed;
  }

  /** Increases with every change that matters to a reader. */
  get version(): number {
    return this.#version;
  }

  find(id: number): TailChunk | undefined {
    return this.#tail.find(id);
  }

  open(epoch: number, first: number): Sink {
    this.#sink?.kill();
    // An older attempt has chunks in flight, which are not tracked any more. Writes take effect in order: once the
    // first chunk of this attempt is stored, the journal shows whether the older chunks were stored. So the first chunk
    // of this attempt becomes visible only when it is stored.
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
    // An id that readers may have seen must not be used again. With `sync: "memory"`, they may have seen ids that were not stored.
    this.#sink = new AttemptEventWriter(this, this.#deps, epoch, Math.max(first, this.#visible));
    return this.#sink;
  }

  /** Ends a log for which no attempt will be opened. `next`: one more than the id of the run's last event. */
  dismiss(next: number): void {
    if (this.#state !== "waiting") return;
    this.#dismissed = next;
    this.#end();
  }

  /** Adds a complete chunk. Usually readers see it when it and all chunks before it are stored. */
  expect(entry: TailChunk): void {
    this.#pending.push(entry);
    if (this.#early) {
      this.#show(entry);
      this.#wake();
    }
  }

  /** Marks a chunk as stored. Readers see it when all chunks before it are stored too. */
  settle(entry: TailChunk): void {
    entry.stored = true;
    let done = 0;
    for (; done < this.#pending.length; done++) {
      const head = this.#pending[done] as TailChunk;
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

  /** Ends the log, as soon as its chunks are stored: no more facts will follow. */
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

  /** Frees the memory of an ended log. Readers that have not reached the end read the rest from storage. */
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

  #show(entry: TailChunk): void {
    if (this.#shown && entry.chunk.first < this.#visible) return;
    // The tail must not have gaps: if this chunk does not follow directly, the earlier chunks are dropped.
    if (!this.#shown || entry.chunk.first !== this.#visible) this.#tail.clear();
    this.#shown = true;
    this.#visible = entry.end;
    this.#tail.push(entry);
  }

  #end(): void {
    this.#state = "ended";
    this.record = undefined;
    this.#sink?.kill();
    // Wakes the readers before the hub checks the log: readers that have read everything end now, and most logs then
    // have no readers.
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
        // An error of one reader must not affect the other readers or the writer.
        this.#deps.logger.error("a stream reader failed", { run: this.run, error: String(cause) });
      }
    }
  }
}
