import { type EventChunk, type Fact, eventCountOf } from "../model/run-event.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { Emission } from "../ports/engine-host.ts";
import type { Journal } from "../ports/journal.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { EventSink } from "../ports/event-sink.ts";
import type { RunLog } from "./run-log.ts";
import { LogChunk, type LiveState, type RecentChunkLimits } from "./recent-log-chunks.ts";
import { factSize } from "./fact-size.ts";

/**
 * When readers may see a new fact (an entry of a run's event log). `os`: when its chunk is written, so that it survives a crash of the
 * process. `memory`: as soon as the write starts, so that a crash may lose facts that readers have seen.
 */
export type StreamSync = "os" | "memory";

export interface LogLimits {
  /** The maximum number of facts in one chunk. Readers get a chunk as one piece. */
  readonly chunkFacts: number;
  /** The maximum size of one chunk, in estimated bytes. A single larger fact gets a chunk of its own. */
  readonly chunkWeight: number;
  /** Limits of the chunks that a log keeps in memory. */
  readonly tail: RecentChunkLimits;
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

/** Writes the facts of one attempt of a run: collects them into chunks, and stores the chunks. */
export class AttemptEventWriter implements EventSink {
  readonly #log: RunLog;
  readonly #deps: LogDeps;
  readonly #epoch: number;
  /** False after `kill`. The results of writes in flight are then ignored. */
  #alive = true;
  /** False after `close` or `kill`. Further facts are dropped. */
  #open = true;
  #next: number;
  /** The id of the first event in the chunk that is being filled. */
  #first: number;
  #facts: Fact[] = [];
  #states: Map<number, LiveState> | undefined;
  #weight = 0;
  #scheduled = false;
  #inFlight = 0;
  /** Chunks that `take` has returned and that are not stored yet, oldest first. `waiting`: callbacks to call when the chunk is stored. */
  #taken: { readonly entry: LogChunk; readonly waiting: readonly (() => void)[] }[] = [];
  /**
   * Set while `take` runs. For each chunk that becomes full meanwhile and refers to states, it contains a callback that shows the chunk to
   * readers. The callbacks are called when the caller of `take` has stored these states.
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
    // A full chunk does not wait for writes in flight, because the journal keeps the order of the writes.
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
    // All facts up to the end of the run are stored already. Facts that were added after the end are dropped.
    this.#drop();
    this.#open = false;
    this.#log.close();
  }

  abandon(): void {
    if (this.#alive) this.#log.break();
  }

  /** Stops the writer, because a newer attempt has started, or because the log has ended or is broken. */
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

  #seal(): LogChunk {
    const chunk: EventChunk = { run_id: this.#log.run, first: this.#first, facts: this.#facts };
    const entry = new LogChunk(chunk, this.#next, this.#weight, this.#states);
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
        // While the whole storage fails, the outage is logged elsewhere, so each run only logs at the level `debug`.
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
