import { ServiceError } from "../src/model/errors.ts";
import { type ThreadKey, threadMapKey } from "../src/model/thread.ts";
import type { Timer } from "../src/model/machine-timer.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Journal, KeyedTimer } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";
import { SteadyTime } from "../src/ports/steady-time.ts";

interface Deps {
  readonly journal: Pick<Journal, "whenWritable">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** What is due in a thread: a delayed run, by its id, or a timer. */
export interface DueSource {
  /** What it is, in log messages. */
  readonly name: string;
  /** What is due first, in all threads. */
  read(limit: number): Promise<readonly KeyedTimer[]>;
  /**
   * Starts it. Resolves with false when the thread does not list it any more, once the write that has removed it is
   * stored.
   */
  start(key: ThreadKey, entry: Timer): Promise<boolean>;
}

/** Entries that are read from the storage at a time. */
const ENTRIES_PER_READ = 64;
/** Milliseconds before a failed read or start is repeated. */
const RETRY_PAUSE_MS = 1_000;
/** Milliseconds in which the deletion of a thread is stored, as a rule: its entries are listed until then. */
const DELETION_PAUSE_MS = 100;

/** Errors that stay when the start is repeated. */
const PERMANENT: ReadonlySet<string> = new Set([
  "journal.damaged",
  "assistant.not_found",
  "graph.not_found",
  "resume.invalid",
  "validation.failed",
]);

/**
 * Starts delayed runs, or takes timers, when they are due. The storage lists them, however many there are; this class
 * keeps one timer, for the earliest. It measures time by the monotonic clock, so changes of the wall clock do not matter.
 */
export class DueQueue {
  readonly #deps: Deps;
  readonly #source: DueSource;
  readonly #time: SteadyTime;
  /**
   * Entries that cannot be started, such as those of a damaged thread. They are skipped, so that they do not hold up
   * others.
   */
  readonly #failed = new Set<string>();
  /** Entries that their threads did not list in the last pass. */
  #unlisted = new Set<string>();
  #timer: Cancel | null = null;
  #at = Number.POSITIVE_INFINITY;
  #looking = false;
  /** True when another pass is due after the current one. */
  #again = false;
  #stopped = false;

  constructor(deps: Deps, source: DueSource) {
    this.#deps = deps;
    this.#source = source;
    this.#time = new SteadyTime(deps.clock);
  }

  get now(): number {
    return this.#time.now();
  }

  /** Reports that an entry is, or will be, due at this time (milliseconds). */
  schedule(due: number): void {
    if (this.#stopped || due >= this.#at) return;
    this.#timer?.();
    this.#at = due;
    this.#timer = this.#deps.scheduler.after(Math.max(0, due - this.now), () => void this.startDue());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.();
    this.#timer = null;
  }

  /** Starts all entries that are due, and sets the timer for the next one. */
  async startDue(): Promise<void> {
    this.#timer?.();
    this.#timer = null;
    this.#at = Number.POSITIVE_INFINITY;
    if (this.#looking) this.#again = true;
    if (this.#looking || this.#stopped) return;
    this.#looking = true;
    this.#again = false;
    try {
      // Nothing can start before its start can be stored.
      await this.#deps.journal.whenWritable();
      if (!this.#stopped) await this.#startPage();
    } catch (cause) {
      this.#deps.logger.warn(`due ${this.#source.name}s could not be read; retrying`, {
        error: String(cause),
      });
      this.schedule(this.now + RETRY_PAUSE_MS);
    } finally {
      this.#looking = false;
      if (this.#again) this.schedule(this.now);
    }
  }

  async #startPage(): Promise<void> {
    const found = await this.#source.read(ENTRIES_PER_READ + this.#failed.size);
    // Read once: between two reads of the clock an entry may become due, and would then be neither due nor the next.
    const { now } = this;
    const due = found.filter((entry) => entry.due <= now && !this.#failed.has(nameOf(entry)));
    const before = this.#unlisted;
    this.#unlisted = new Set();
    await Promise.all(due.map((entry) => this.#start(entry)));
    for (const entry of due) {
      const name = nameOf(entry);
      if (before.has(name) && this.#unlisted.has(name)) this.#fail(entry, "its thread does not list it");
    }
    const next = found.find(({ due: at }) => at > now);
    if (due.length > 0) this.schedule(this.now);
    else if (next !== undefined) this.schedule(next.due);
  }

  async #start(entry: KeyedTimer): Promise<void> {
    if (this.#stopped) return;
    const { key, id, due } = entry;
    try {
      if (!(await this.#source.start(key, { id, due }))) this.#unlisted.add(nameOf(entry));
    } catch (cause) {
      const { logger } = this.#deps;
      const code = cause instanceof ServiceError ? cause.code : "";
      if (PERMANENT.has(code)) return this.#fail(entry, String(cause));
      if (code === "thread.not_found") {
        await this.#pause(DELETION_PAUSE_MS);
        this.#unlisted.add(nameOf(entry));
        return;
      }
      // A failed storage is logged once, not for each entry.
      const isOutage = this.#deps.journal.whenWritable() !== undefined;
      logger[isOutage ? "debug" : "warn"](`a ${this.#source.name} could not be started; retrying`, {
        thread: key.thread,
        id,
        error: String(cause),
      });
      // The thread is loaded again meanwhile.
      await this.#pause(RETRY_PAUSE_MS);
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#deps.scheduler.after(ms, resolve));
  }

  #fail(entry: KeyedTimer, error: string): void {
    this.#failed.add(nameOf(entry));
    const { key, id } = entry;
    this.#deps.logger.error(`a ${this.#source.name} cannot be started`, { thread: key.thread, id, error });
  }
}

const nameOf = ({ key, id, due }: KeyedTimer): string => `${threadMapKey(key)} ${due} ${id}`;
