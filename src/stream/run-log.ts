import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Sink } from "../ports/sink.ts";
import { AttemptSink, type Chunks, type LogDeps } from "./attempt-sink.ts";
import type { RunSource } from "./fact-context.ts";
import { type Entry, Tail } from "./log-tail.ts";

/** Someone who waits for a log to change. */
export interface Waiter {
  ready(): void;
}

/** What a log tells the hub that holds it. */
export interface LogOwner {
  /** It came to its end, or its last reader left: is it still needed? */
  changed(log: Log): void;
}

/**
 * `waiting`: no attempt has been opened. `live`: one is. `ended`: no fact will follow. `broken`: the attempt was given
 * up; its readers are to come again.
 */
export type LogState = "waiting" | "live" | "ended" | "broken";

/** The live log of one run: what is on its way to storage, and the newest of what is stored. */
export class Log implements Chunks {
  readonly key: ThreadKey;
  readonly run: string;
  /** What rendering knows of the run; made by the first reader, who brings the record. */
  source: RunSource | undefined;
  /** The run, while an attempt is live: storage may not have it yet. */
  record: RunRecord | undefined;
  /** Ends the time for which it is kept after its end. */
  lingering: Cancel | undefined;
  readonly #deps: LogDeps;
  readonly #owner: LogOwner;
  readonly #tail: Tail;
  #state: LogState = "waiting";
  #sink: AttemptSink | undefined;
  /** In order of ids: what is on its way to storage. */
  #pending: Entry[] = [];
  #closing = false;
  /** Chunks are seen before they are stored. */
  #early: boolean;
  #shown = false;
  #visible = Number.POSITIVE_INFINITY;
  #waiters: Waiter[] = [];
  #readers = 0;
  #version = 0;

  constructor(key: ThreadKey, run: string, deps: LogDeps, owner: LogOwner) {
    this.key = key;
    this.run = run;
    this.#deps = deps;
    this.#owner = owner;
    this.#early = deps.sync === "memory";
    this.#tail = new Tail(deps.limits.tail);
  }

  get state(): LogState {
    return this.#state;
  }

  get readers(): number {
    return this.#readers;
  }

  /**
   * The id from which on memory answers. Infinity: nothing has been shown yet by this log, so that what storage holds
   * below its first event may still grow (the last writes of an older attempt).
   */
  get from(): number {
    return this.#shown ? (this.#tail.first ?? this.#visible) : Number.POSITIVE_INFINITY;
  }

  /** The id that follows the last event that may be seen. */
  get visible(): number {
    return this.#visible;
  }

  /** The id that the next event takes; undefined before an attempt has been opened. */
  get next(): number | undefined {
    return this.#sink?.next;
  }

  /** Grows with every change that a reader may care about: what was read before is worth another look. */
  get version(): number {
    return this.#version;
  }

  find(id: number): Entry | undefined {
    return this.#tail.find(id);
  }

  open(epoch: number, first: number): Sink {
    this.#sink?.kill();
    // What an older attempt has in flight is not followed any more: whether it got stored is told by the journal once
    // the first chunk of this attempt is stored (writes take effect in order), which therefore is seen only then.
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
    // An id that a reader may have seen (with `sync: "memory"`, before it was stored) is never given twice.
    this.#sink = new AttemptSink(this, this.#deps, epoch, Math.max(first, this.#visible));
    return this.#sink;
  }

  /** No attempt will be opened. */
  dismiss(): void {
    if (this.#state === "waiting") this.#end();
  }

  /** Takes a chunk that has been sealed; it is seen once it and all before it are stored. */
  expect(entry: Entry): void {
    this.#pending.push(entry);
    if (this.#early) {
      this.#show(entry);
      this.#wake();
    }
  }

  settle(entry: Entry): void {
    entry.stored = true;
    let done = 0;
    for (; done < this.#pending.length; done++) {
      const head = this.#pending[done] as Entry;
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

  close(): void {
    this.#closing = true;
    if (this.#pending.length === 0) this.#end();
  }

  break(): void {
    if (this.#state === "broken" || this.#state === "ended") return;
    this.#sink?.kill();
    this.#state = "broken";
    this.#pending = [];
    this.#tail.clear();
    this.#owner.changed(this);
    this.#wake();
  }

  /** All is stored and the log is let go: readers that are behind read the rest from storage. */
  forget(): void {
    this.#tail.clear();
  }

  join(): void {
    this.#readers++;
  }

  leave(waiter: Waiter): void {
    this.#readers--;
    const at = this.#waiters.indexOf(waiter);
    if (at >= 0) this.#waiters.splice(at, 1);
    if (this.#readers === 0) this.#owner.changed(this);
  }

  /** Tells `waiter` once, at the next change. */
  wait(waiter: Waiter): void {
    this.#waiters.push(waiter);
  }

  #show(entry: Entry): void {
    if (this.#shown && entry.chunk.first < this.#visible) return;
    // Between the attempts lies what only storage knows; a tail has no gaps.
    if (!this.#shown || entry.chunk.first !== this.#visible) this.#tail.clear();
    this.#shown = true;
    this.#visible = entry.end;
    this.#tail.push(entry);
  }

  #end(): void {
    this.#state = "ended";
    this.record = undefined;
    this.#sink?.kill();
    // Readers that keep up end here and now; most logs are then held by no one.
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
        // One reader's fault must not keep the event from the others, nor reach the writer.
        this.#deps.logger.error("a stream reader failed", { run: this.run, error: String(cause) });
      }
    }
  }
}
