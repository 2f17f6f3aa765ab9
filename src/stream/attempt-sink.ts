import { type EventChunk, type Fact, width } from "../model/run-event.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Sink } from "../ports/sink.ts";
import { Entry, type LiveState, type TailLimits } from "./log-tail.ts";
import { weigh } from "./memory-size.ts";

/**
 * When readers see a fact. `os`: once it would survive the end of the process. `memory`: as soon as its chunk is on its
 * way to storage; after a crash a reader may have seen what the log no longer has.
 */
export type StreamSync = "os" | "memory";

export interface LogLimits {
  /** Facts in one chunk. A chunk is also what a reader takes in one piece. */
  readonly chunkFacts: number;
  /** Estimated bytes in one chunk. */
  readonly chunkWeight: number;
  /** What a log keeps in memory of what is stored. */
  readonly tail: TailLimits;
}

export const defaultLimits: LogLimits = {
  chunkFacts: 256,
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

/** Where an attempt puts its chunks: the log of its run. */
export interface Chunks {
  readonly key: ThreadKey;
  readonly run: string;
  readonly readers: number;
  /** A chunk is on its way to storage. Called in the order of ids. */
  expect(entry: Entry): void;
  /** It is stored. */
  settle(entry: Entry): void;
  /** No fact will follow. */
  close(): void;
  /** The attempt is given up. */
  break(): void;
}

/** The writing end for one attempt. */
export class AttemptSink implements Sink {
  readonly #log: Chunks;
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
  #states: Map<number, LiveState> | undefined;
  #weight = 0;
  #scheduled = false;
  #inFlight = 0;
  /** Chunks that were handed over, in the order of the takes. */
  #taken: Entry[] = [];

  constructor(log: Chunks, deps: LogDeps, epoch: number, first: number) {
    this.#log = log;
    this.#deps = deps;
    this.#epoch = epoch;
    this.#next = first;
    this.#first = first;
  }

  get next(): number {
    return this.#next;
  }

  get isRead(): boolean {
    return this.#log.readers > 0;
  }

  emit(fact: Fact, values?: JsonObject, head?: CheckpointHead): number {
    if (!this.#open) return -1;
    const id = this.#next;
    const weight = weigh(fact, values);
    const { chunkFacts, chunkWeight } = this.#deps.limits;
    // A full chunk goes its way at once, also while another is in flight: the journal keeps the order of the calls.
    const full = this.#facts.length >= chunkFacts || this.#weight + weight > chunkWeight;
    if (full && this.#facts.length > 0) this.#publish();
    if (values !== undefined) (this.#states ??= new Map()).set(this.#facts.length, { values, head });
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
