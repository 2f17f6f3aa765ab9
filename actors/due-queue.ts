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

/** A kind of entry that threads have to start at a certain time: delayed runs, or timers. */
export interface DueSource {
  /** The name of the kind in log messages. */
  readonly name: string;
  /** The entries of all threads that are due first, at most `limit`. */
  read(limit: number): Promise<readonly KeyedTimer[]>;
  /**
   * Starts an entry. Resolves with false when the thread does not list the entry any more, but only after the write that
   * removed it is stored.
   */
  start(key: ThreadKey, entry: Timer): Promise<boolean>;
}

/** How many entries are read from the storage at a time. */
const ENTRIES_PER_READ = 64;
/** Milliseconds to wait before a failed read or start is repeated. */
const RETRY_PAUSE_MS = 1_000;
/** Milliseconds in which the deletion of a thread is usually stored. Until then, the storage still lists its entries. */
const DELETION_PAUSE_MS = 100;

/** Codes of errors that would occur again if the start were repeated. */
const PERMANENT: ReadonlySet<string> = new Set([
  "journal.damaged",
  "assistant.not_found",
  "graph.not_found",
  "resume.invalid",
  "validation.failed",
]);

/**
 * Starts delayed runs, or sends the events of machine timers, when they are due. Only the storage lists them all; this
 * class sets one timer, for the earliest entry. Its time does not follow changes of the wall clock ({@link SteadyTime}).
 */
export class DueQueue {
  readonly #deps: Deps;
  readonly #source: DueSource;
  readonly #time: SteadyTime;
  /**
   * Entries that cannot be started, such as those of a damaged thread. They are skipped, so that they do not delay the
   * others.
   */
  readonly #failed = new Set<string>();
  /** Entries that the storage listed in the last pass, but their threads did not. */
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
      // Waits until writes are accepted, because a start has to be stored.
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
    // Reads the clock once. Between two reads an entry may become due: it would count as neither due nor next.
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
      // During the pause, a thread that has failed is loaded again.
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
