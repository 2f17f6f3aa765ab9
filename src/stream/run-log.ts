import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { EventSink } from "../ports/event-sink.ts";
import { AttemptEventWriter, type LogDeps } from "./attempt-event-writer.ts";
import type { RenderDataLoader } from "./render-data-loader.ts";
import { type LogChunk, RecentLogChunks } from "./recent-log-chunks.ts";

/** A listener that waits for a log to change. */
export interface LogListener {
  ready(): void;
}

/** The part of the registry that a log notifies. */
export interface LogOwner {
  /** Called when the log has ended or is broken, and when its last reader has left. The registry checks whether the log is still needed. */
  changed(log: RunLog): void;
}

/**
 * The states of a log. `waiting`: no attempt of the run has started to write yet. `live`: an attempt is writing. `ended`: the log is
 * complete. `broken`: the attempt failed or the server stops, and readers have to connect again.
 */
export type LogState = "waiting" | "live" | "ended" | "broken";

/** Whether the run's thread is being deleted. `pending`: the deletion has started, and may still fail. */
type ThreadDeletion = "none" | "pending" | "deleted";

/** The part of a run's event log that is in memory: the chunks that are being stored, and the newest stored chunks. */
export class RunLog {
  readonly key: ThreadKey;
  readonly run: string;
  /** Loads the data for rendering the run's facts. It is created for the first reader, which has the run's record. */
  data: RenderDataLoader | undefined;
  /** The run's record while an attempt is live. It may not be stored yet. */
  record: RunRecord | undefined;
  /** Cancels the timer that removes the log some time after its end. */
  lingering: Cancel | undefined;
  readonly #deps: LogDeps;
  readonly #owner: LogOwner;
  readonly #tail: RecentLogChunks;
  #state: LogState = "waiting";
  #sink: AttemptEventWriter | undefined;
  /** The chunks that are being stored, in the order of their event ids. */
  #pending: LogChunk[] = [];
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
    this.#tail = new RecentLogChunks(deps.limits.tail);
  }

  get state(): LogState {
    return this.#state;
  }

  /**
   * The state of a deletion of the run's thread. While it is `pending`, readers that have reached the end wait for its result. If the
   * deletion succeeds, they report that the thread was deleted.
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
   * The id of the first event that can be read from memory. Infinity if no chunk of this log is visible yet; then readers read the storage.
   */
  get from(): number {
    return this.#shown ? (this.#tail.first ?? this.#visible) : Number.POSITIVE_INFINITY;
  }

  /** One more than the id of the last event that readers may see; Infinity until an attempt has started to write. */
  get visible(): number {
    return this.#visible;
  }

  /** The id of the next event. Undefined until an attempt has started to write, or until it is known that no attempt will. */
  get next(): number | undefined {
    return this.#sink?.next ?? this.#dismissed;
  }

  /** A number that increases with every change of the log that readers have to notice. */
  get version(): number {
    return this.#version;
  }

  find(id: number): LogChunk | undefined {
    return this.#tail.find(id);
  }

  open(epoch: number, first: number): EventSink {
    this.#sink?.kill();
    // The older attempt has chunks in flight, and it is unknown which of them will be stored. Writes take effect in order, so this is known
    // when the first chunk of the new attempt is stored. Until then, readers do not see that chunk.
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
    // An event id that readers may have seen is never used again. With `sync: "memory"`, the events that they have seen may not be stored.
    this.#sink = new AttemptEventWriter(this, this.#deps, epoch, Math.max(first, this.#visible));
    return this.#sink;
  }

  /** Ends a log that no attempt will write to. `next`: one more than the id of the run's last event. */
  dismiss(next: number): void {
    if (this.#state !== "waiting") return;
    this.#dismissed = next;
    this.#end();
  }

  /** Adds a chunk that is being stored. Readers see it when it and all chunks before it are stored, or immediately if `#early` is set. */
  expect(entry: LogChunk): void {
    this.#pending.push(entry);
    if (this.#early) {
      this.#show(entry);
      this.#wake();
    }
  }

  /** Marks a chunk as stored. Readers see it when all chunks before it are stored too. */
  settle(entry: LogChunk): void {
    entry.stored = true;
    let done = 0;
    for (; done < this.#pending.length; done++) {
      const head = this.#pending[done] as LogChunk;
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

  /** Ends the log when all its chunks are stored. */
  close(): void {
    this.#closing = true;
    if (this.#pending.length === 0) this.#end();
  }

  /** Ends the log before the end of the run, because the attempt has failed or the server stops. Readers are disconnected. */
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

  #show(entry: LogChunk): void {
    if (this.#shown && entry.chunk.first < this.#visible) return;
    // The chunks in memory have no gaps. So older chunks are removed if this chunk does not directly follow them.
    if (!this.#shown || entry.chunk.first !== this.#visible) this.#tail.clear();
    this.#shown = true;
    this.#visible = entry.end;
    this.#tail.push(entry);
  }

  #end(): void {
    this.#state = "ended";
    this.record = undefined;
    this.#sink?.kill();
    // Wakes the readers first. Those that have read everything leave, so the registry can usually remove the log at once.
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
        // An error of one reader is only logged, so that it does not affect the other readers or the writer.
        this.#deps.logger.error("a stream reader failed", { run: this.run, error: String(cause) });
      }
    }
  }
}
