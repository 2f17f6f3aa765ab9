import { type EventChunk, type Fact, eventCountOf } from "../model/run-event.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { Emission } from "../ports/engine-host.ts";
import type { Journal } from "../ports/journal.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Sink } from "../ports/event-sink.ts";
import type { RunLog } from "./run-log.ts";
import { TailChunk, type LiveState, type TailLimits } from "./log-tail.ts";
import { factSize } from "./fact-size.ts";

/**
 * When readers see a fact, which is an entry of a run's event log. `os`: when the fact would survive the end of the process. `memory`: when
 * the write of its chunk starts. If the process then crashes, readers may have seen facts that the log does not contain.
 */
export type StreamSync = "os" | "memory";

export interface LogLimits {
  /** The maximum number of facts in one chunk. Readers get a chunk as one piece. */
  readonly chunkFacts: number;
  /** The maximum size of one chunk, in estimated bytes. */
  readonly chunkWeight: number;
  /** Limits of the stored chunks that a log keeps in memory. */
  readonly tail: TailLimits;
}

export const defaultLogLimits: LogLimits = {
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

/** The writer of the facts of one attempt of a run. It collects facts into chunks, and stores the chunks. */
export class AttemptEventWriter implements Sink {
  readonly #log: RunLog;
  readonly #deps: LogDeps;
  readonly #epoch: number;
  /** False when a newer attempt has replaced this writer, or the log has ended. */
  #alive = true;
  /** False after `close`. Chunks in flight are still tracked until they are stored. */
  #open = true;
  #next: number;
  /** The id of the first event in the chunk that is being filled. */
  #first: number;
  #facts: Fact[] = [];
  #states: Map<number, LiveState> | undefined;
  #weight = 0;
  #scheduled = false;
  #inFlight = 0;
  /**
   * Chunks that the run's actor has taken to store them in its own append, oldest first. `waiting`: the callbacks of the chunks with states
   * that became full while `take` added facts. They are called when the taken chunk is stored, and let readers see those chunks.
   */
  #taken: { readonly entry: TailChunk; readonly waiting: readonly (() => void)[] }[] = [];
  /**
   * Set while `take` adds facts: the callbacks of the chunks with states that became full in the meantime. Readers do not see such a chunk
   * before its callback was called; see {@link Sink.take}.
   */
  #waiting: (() => void)[] | undefined;

  constructor(log: RunLog, deps: LogDeps, epoch: number, first: number) {
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
    const weight = factSize(fact, values);
    const { chunkFacts, chunkWeight } = this.#deps.limits;
    // A full chunk is written immediately, even if the write of an earlier chunk is in flight, because the journal keeps the order of the
    // writes.
    const full = this.#facts.length >= chunkFacts || this.#weight + weight > chunkWeight;
    if (full && this.#facts.length > 0) this.#publish();
    if (values !== undefined) (this.#states ??= new Map()).set(this.#facts.length, { values, head });
    this.#facts.push(fact);
    this.#weight += weight;
    this.#next = id + eventCountOf(fact);
    if (!this.#scheduled && this.#inFlight === 0) {
      this.#scheduled = true;
      this.#deps.scheduler.soon(this.#flush);
    }
    return id;
  }

  take(emissions: readonly Emission[] = []): EventChunk | undefined {
    const waiting: (() => void)[] = [];
    this.#waiting = waiting;
    for (const { fact, values, head } of emissions) this.emit(fact, values, head);
    this.#waiting = undefined;
    if (this.#facts.length === 0) return undefined;
    const entry = this.#seal();
    this.#taken.push({ entry, waiting });
    this.#log.expect(entry);
    return entry.chunk;
  }

  stored(chunk: EventChunk): void {
    const at = this.#taken.findIndex(({ entry }) => entry.chunk === chunk);
    if (at < 0) return;
    const [taken] = this.#taken.splice(at, 1);
    if (!this.#alive || taken === undefined) return;
    for (const go of taken.waiting) go();
    this.#log.settle(taken.entry);
  }

  close(): void {
    if (!this.#open) return;
    // Drops facts that are not in a chunk yet. Nobody needs them, because the run's record, which is stored already, has the final number
    // of events.
    this.#drop();
    this.#open = false;
    this.#log.close();
  }

  abandon(): void {
    if (this.#alive) this.#log.break();
  }

  /** Stops the writer, because a newer attempt has started or the log has ended. */
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

  #seal(): TailChunk {
    const chunk: EventChunk = { run_id: this.#log.run, first: this.#first, facts: this.#facts };
    const entry = new TailChunk(chunk, this.#next, this.#weight, this.#states);
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
    const waiting = entry.states && this.#waiting;
    const statesStored = waiting && new Promise<void>((resolve) => waiting.push(resolve));
    this.#inFlight++;
    // Starts the write before `expect`, because with `sync: "memory"` readers see the chunk as soon as `expect` is called.
    const stored = this.#deps.journal.publish(this.#log.key, this.#epoch, entry.chunk);
    this.#log.expect(entry);
    stored.then(
      () => {
        this.#inFlight--;
        if (!this.#alive) return;
        if (statesStored === undefined) this.#log.settle(entry);
        else void statesStored.then(() => this.#alive && this.#log.settle(entry));
        if (this.#facts.length > 0 && this.#inFlight === 0) this.#publish();
      },
      (cause: unknown) => {
        this.#inFlight--;
        if (!this.#alive) return;
        // A failure of the storage affects many runs and is logged elsewhere, so it is logged here only at the level `debug`.
        const isOutage = this.#deps.journal.whenWritable() !== undefined;
        this.#deps.logger[isOutage ? "debug" : "warn"]("a run's events could not be stored", {
          run: this.#log.run,
          error: String(cause),
        });
        this.#log.break();
      },
    );
  }
}
