import { ServiceError } from "../src/model/errors.ts";
import { type ThreadKey, threadMapKey } from "../src/model/thread.ts";
import type { Timer } from "../src/model/machine-timer.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Journal, TimerOfThread } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";
import { MonotonicEpochClock } from "../src/ports/monotonic-epoch-clock.ts";

interface Deps {
  readonly journal: Pick<Journal, "whenWritable">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** Lists and starts entries of threads that are due at a certain time: delayed runs, or timers of machines. */
export interface DueEntrySource {
  /** What an entry is called in log messages, such as "timer". */
  readonly name: string;
  /** Reads the entries that are due first, of all threads together; at most `limit`. */
  read(limit: number): Promise<readonly TimerOfThread[]>;
  /**
   * Starts an entry. Resolves with false if the entry's thread no longer lists it, once the write that removed the
   * entry from the list is stored.
   */
  start(key: ThreadKey, entry: Timer): Promise<boolean>;
}

/** The number of entries that are read from the storage at a time. Entries that are skipped are read in addition. */
const ENTRIES_PER_READ = 64;
/**
 * If more entries of one tenant are due than may be started, this many entries are read, to find entries of other
 * tenants. Reading them takes about 1 ms; starting {@link MAX_STARTING_PER_TENANT} entries takes 10 ms.
 */
const MAX_ENTRIES_PER_READ = 1_024;
/** The most entries that are being started at the same time. */
const MAX_STARTING = 128;
/**
 * The most entries of one tenant that are being started at the same time, so that entries of other tenants can start
 * too.
 */
const MAX_STARTING_PER_TENANT = 32;
/** Milliseconds to wait before a failed read or start is repeated. */
const RETRY_PAUSE_MS = 1_000;
/**
 * Milliseconds to wait until the deletion of a thread is stored. Until then, the storage still lists the thread's
 * entries.
 */
const DELETION_PAUSE_MS = 100;

/**
 * The result of starting an entry. `unlisted`: its thread does not list the entry. `retry`: the start failed, and is
 * tried again. `failed`: the entry cannot be started.
 */
type StartOutcome = "started" | "unlisted" | "retry" | "failed";

/** Errors that would occur again on a repeated start. */
const PERMANENT: ReadonlySet<string> = new Set([
  "journal.damaged",
  "assistant.not_found",
  "graph.not_found",
  "resume.invalid",
  "validation.failed",
]);

/**
 * Starts delayed runs, or sends the events of machine timers, when they are due. The entries stay in the storage; only
 * one timer is set, for the earliest of them. A change of the wall clock does not move this timer ({@link MonotonicEpochClock}).
 */
export class DueQueue {
  readonly #deps: Deps;
  readonly #source: DueEntrySource;
  readonly #time: MonotonicEpochClock;
  /**
   * Entries that cannot be started, such as those of a damaged thread. They are skipped, so that they do not delay
   * other entries.
   */
  readonly #failed = new Set<string>();
  /** The entries that are being started. The storage still lists them. */
  readonly #starting = new Set<string>();
  /** The number of entries that are being started, by tenant. */
  readonly #startingByTenant = new Map<string, number>();
  /** Entries that the storage listed as due, but that their threads no longer listed when a start was tried. */
  readonly #unlisted = new Set<string>();
  /** True when there are more entries due than are being started. */
  #isMoreDue = false;
  #timer: Cancel | null = null;
  #at = Number.POSITIVE_INFINITY;
  #looking = false;
  /** True when {@link startDue} was called during a lookup, so that another lookup has to follow. */
  #again = false;
  #stopped = false;

  constructor(deps: Deps, source: DueEntrySource) {
    this.#deps = deps;
    this.#source = source;
    this.#time = new MonotonicEpochClock(deps.clock);
  }

  get now(): number {
    return this.#time.now();
  }

  /** Reports that an entry is, or will be, due at this time (epoch milliseconds of {@link MonotonicEpochClock}). */
  schedule(due: number): void {
    if (this.#stopped || due >= this.#at) return;
    this.#timer?.();
    this.#at = due;
    this.#timer = this.#deps.scheduler.after(Math.max(0, due - this.now), () => void this.startDue());
  }

  /**
   * Reports the time of an entry whose thread was changed. If the entry could not be started, it is tried again, because the change may have
   * mended its thread.
   */
  scheduleAgain(entry: TimerOfThread): void {
    this.#failed.delete(nameOf(entry));
    this.schedule(entry.due);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.();
    this.#timer = null;
  }

  /** Looks up the entries that are due, starts them, and sets the timer for the next one. */
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
      // The storage may have been closed during the read.
      if (this.#stopped) return;
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
    // A copy, because starts change the set. If the storage lists an entry of the copy again although the entry's
    // thread does not, the start counts as failed: in the meantime, the thread has stored its latest changes.
    const unlisted = new Set(this.#unlisted);
    const skipped = this.#failed.size + this.#starting.size;
    // The clock is read only once. Otherwise an entry that becomes due between two reads would be neither started nor
    // scheduled.
    const { now } = this;
    this.#isMoreDue = false;
    let found = await this.#source.read(ENTRIES_PER_READ + skipped);
    this.#startDueOf(found, now, unlisted);
    if (this.#isMoreDue && this.#starting.size < MAX_STARTING) {
      found = await this.#source.read(MAX_ENTRIES_PER_READ + skipped);
      this.#startDueOf(found, now, unlisted);
    }
    const listed = new Set(found.map(nameOf));
    for (const name of unlisted) if (!listed.has(name)) this.#unlisted.delete(name);
    const next = found.find(({ due }) => due > now);
    if (next === undefined) this.#isMoreDue ||= found.length > skipped;
    else this.schedule(next.due);
  }

  /** Starts the due entries, as many as {@link MAX_STARTING} and {@link MAX_STARTING_PER_TENANT} allow. */
  #startDueOf(found: readonly TimerOfThread[], now: number, unlisted: ReadonlySet<string>): void {
    for (const entry of found) {
      if (entry.due > now) break;
      const name = nameOf(entry);
      if (this.#failed.has(name) || this.#starting.has(name)) continue;
      const ofTenant = this.#startingByTenant.get(entry.key.tenant) ?? 0;
      if (this.#starting.size >= MAX_STARTING || ofTenant >= MAX_STARTING_PER_TENANT) {
        this.#isMoreDue = true;
        continue;
      }
      this.#starting.add(name);
      this.#startingByTenant.set(entry.key.tenant, ofTenant + 1);
      void this.#startEntry(entry, unlisted.has(name));
    }
  }

  async #startEntry(entry: TimerOfThread, wasUnlisted: boolean): Promise<void> {
    const { tenant } = entry.key;
    const name = nameOf(entry);
    const outcome = await this.#start(entry);
    this.#unlisted.delete(name);
    if (outcome === "unlisted" && wasUnlisted) this.#fail(entry, "its thread does not list it");
    else if (outcome === "unlisted") this.#unlisted.add(name);
    this.#starting.delete(name);
    const ofTenant = (this.#startingByTenant.get(tenant) ?? 1) - 1;
    if (ofTenant > 0) this.#startingByTenant.set(tenant, ofTenant);
    else this.#startingByTenant.delete(tenant);
    if (this.#isMoreDue || outcome === "unlisted" || outcome === "retry") this.schedule(this.now);
  }

  async #start(entry: TimerOfThread): Promise<StartOutcome> {
    if (this.#stopped) return "started";
    const { key, id, due } = entry;
    try {
      return (await this.#source.start(key, { id, due })) ? "started" : "unlisted";
    } catch (cause) {
      const { logger } = this.#deps;
      const code = cause instanceof ServiceError ? cause.code : "";
      if (PERMANENT.has(code)) {
        this.#fail(entry, String(cause));
        return "failed";
      }
      if (code === "thread.not_found") {
        await this.#pause(DELETION_PAUSE_MS);
        return "unlisted";
      }
      // While the storage refuses writes, a warning for each entry would only repeat the storage's own log message.
      const isOutage = this.#deps.journal.whenWritable() !== undefined;
      logger[isOutage ? "debug" : "warn"](`a ${this.#source.name} could not be started; retrying`, {
        thread: key.thread,
        id,
        error: String(cause),
      });
      // During the pause, a thread that has failed is loaded again.
      await this.#pause(RETRY_PAUSE_MS);
      return "retry";
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#deps.scheduler.after(ms, resolve));
  }

  #fail(entry: TimerOfThread, error: string): void {
    this.#failed.add(nameOf(entry));
    const { key, id } = entry;
    this.#deps.logger.error(`a ${this.#source.name} cannot be started`, { thread: key.thread, id, error });
  }
}

const nameOf = ({ key, id, due }: TimerOfThread): string => `${threadMapKey(key)} ${due} ${id}`;
