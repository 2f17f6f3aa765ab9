import { type EventChunk, type Fact, width } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Sink } from "../ports/sink.ts";
import type { RunSource } from "./source.ts";
import { Entry, Tail, type TailLimits } from "./tail.ts";
import { weigh } from "./weight.ts";

/**
 * When readers see a fact. `os`: once it would survive the end of the process. `memory`: as soon as its chunk is on its
 * way to storage; after a crash a reader may have seen what the log no longer has. `commit`: once it would survive a
 * power cut; the journal has no synced publish yet, so until then it is as `os`.
 */
export type StreamSync = "commit" | "os" | "memory";

export interface LogLimits {
  /** Facts in one chunk. A chunk is also what a reader takes in one piece. */
  readonly chunkFacts: number;
  /** Estimated bytes in one chunk. */
  readonly chunkWeight: number;
  /** What a log keeps in memory of what is stored. */
  readonly tail: TailLimits;
}

export const defaultLimits: LogLimits = {
  chunkFacts: 512,
  chunkWeight: 256 * 1024,
  tail: { weight: 1024 * 1024, facts: 4096 },
};

export interface LogDeps {
  readonly journal: Journal;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly sync: StreamSync;
  readonly limits: LogLimits;
}

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
export class Log {
  readonly key: ThreadKey;
  readonly run: string;
  /** What rendering knows of the run; made by the first reader, who brings the record. */
  source: RunSource | undefined;
  readonly #deps: LogDeps;
  readonly #owner: LogOwner;
  readonly #tail: Tail;
  #state: LogState = "waiting";
  #sink: LogSink | undefined;
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
    this.#sink = new LogSink(this, this.#deps, epoch, Math.max(first, this.#visible));
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
    this.#sink?.kill();
    this.#owner.changed(this);
    this.#wake();
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

/** The writing end for one attempt. */
class LogSink implements Sink {
  readonly #log: Log;
  readonly #deps: LogDeps;
  readonly #epoch: number;
  /** False once a newer attempt, or the end of the log, has cut it off. */
  #alive = true;
  /** False from `close` on: what is on its way is still followed to its end. */
  #open = true;
  #next: number;
  /** The open chunk. */
  #first: number;
  #facts: Fact[] = [];
  #states: Map<number, JsonObject> | undefined;
  #weight = 0;
  #scheduled = false;
  #inFlight = 0;
  /** Chunks that were handed over, in the order of the takes. */
  #taken: Entry[] = [];

  constructor(log: Log, deps: LogDeps, epoch: number, first: number) {
    this.#log = log;
    this.#deps = deps;
    this.#epoch = epoch;
    this.#next = first;
    this.#first = first;
  }

  get next(): number {
    return this.#next;
  }

  emit(fact: Fact, values?: JsonObject): number {
    if (!this.#open) return -1;
    const id = this.#next;
    const weight = weigh(fact, values);
    const { chunkFacts, chunkWeight } = this.#deps.limits;
    // A full chunk goes its way at once, also while another is in flight: the journal keeps the order of the calls.
    const full = this.#facts.length >= chunkFacts || this.#weight + weight > chunkWeight;
    if (full && this.#facts.length > 0) this.#publish();
    if (values !== undefined) (this.#states ??= new Map()).set(this.#facts.length, values);
    this.#facts.push(fact);
    this.#weight += weight;
    this.#next = id + width(fact);
    if (!this.#scheduled && this.#inFlight === 0) {
      this.#scheduled = true;
      this.#deps.scheduler.soon(this.#flush);
    }
    return id;
  }

  take(): EventChunk | undefined {
    if (this.#facts.length === 0) return undefined;
    const entry = this.#seal();
    this.#taken.push(entry);
    this.#log.expect(entry);
    return entry.chunk;
  }

  stored(chunk: EventChunk): void {
    const at = this.#taken.findIndex((entry) => entry.chunk === chunk);
    if (at < 0) return;
    const [entry] = this.#taken.splice(at, 1);
    if (this.#alive && entry !== undefined) this.#log.settle(entry);
  }

  lost(chunk: EventChunk): void {
    if (this.#alive && this.#taken.some((entry) => entry.chunk === chunk)) this.#log.break();
  }

  close(): void {
    if (!this.#open) return;
    // The record has said how many events the run has: what was emitted since belongs to no one.
    this.#drop();
    this.#open = false;
    this.#log.close();
  }

  abandon(): void {
    if (this.#alive) this.#log.break();
  }

  /** A newer attempt, or the end. */
  kill(): void {
    this.#alive = false;
    this.#open = false;
    this.#drop();
    this.#taken = [];
  }

  #drop(): void {
    this.#facts = [];
    this.#states = undefined;
    this.#weight = 0;
  }

  #seal(): Entry {
    const chunk: EventChunk = { run_id: this.#log.run, first: this.#first, facts: this.#facts };
    const entry = new Entry(chunk, this.#next, this.#weight, this.#states);
    this.#first = this.#next;
    this.#drop();
    return entry;
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    if (this.#facts.length > 0 && this.#inFlight === 0) this.#publish();
  };

  #publish(): void {
    const entry = this.#seal();
    this.#inFlight++;
    // Called before readers may see it: with `memory` they see it in this same turn.
    const stored = this.#deps.journal.publish(this.#log.key, this.#epoch, entry.chunk);
    this.#log.expect(entry);
    stored.then(
      () => {
        this.#inFlight--;
        if (!this.#alive) return;
        this.#log.settle(entry);
        if (this.#facts.length > 0 && this.#inFlight === 0) this.#publish();
      },
      (cause: unknown) => {
        this.#inFlight--;
        if (!this.#alive) return;
        this.#deps.logger.warn("a run's events could not be stored", {
          run: this.#log.run,
          error: String(cause),
        });
        this.#log.break();
      },
    );
  }
}
