import { ServiceError } from "../src/model/errors.ts";
import type { ThreadKey } from "../src/model/thread.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { KeyedDelayedRun, Journal } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";
import { SteadyTime } from "../src/ports/steady-time.ts";

interface Deps {
  readonly journal: Pick<Journal, "delayed" | "whenWritable">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** Runs: how many are read from the storage at a time. */
const RUNS_PER_READ = 64;
/** Milliseconds before a failed read or start is repeated. */
const RETRY_PAUSE_MS = 1_000;

/**
 * Starts delayed runs when they are due. The storage lists them, however many there are; this class keeps one timer,
 * for the earliest. It measures time by the monotonic clock, so changes of the wall clock do not matter.
 */
export class DelayedRuns {
  readonly #deps: Deps;
  /** Starts or queues the run of a thread that is due. */
  readonly #startRun: (key: ThreadKey, run: string) => Promise<void>;
  readonly #time: SteadyTime;
  /**
   * Runs that cannot be started, such as those of a damaged thread. They are skipped, so that they do not hold up
   * others.
   */
  readonly #failed = new Set<string>();
  /** Runs that were started by the last pass. */
  #started = new Set<string>();
  #timer: Cancel | null = null;
  #at = Number.POSITIVE_INFINITY;
  #looking = false;
  /** True when another pass is due after the current one. */
  #again = false;
  #stopped = false;

  constructor(deps: Deps, ripen: (key: ThreadKey, run: string) => Promise<void>) {
    this.#deps = deps;
    this.#startRun = ripen;
    this.#time = new SteadyTime(deps.clock);
  }

  get now(): number {
    return this.#time.now();
  }

  /** Reports that a run is, or will be, due at this time (milliseconds). */
  schedule(due: number): void {
    if (this.#stopped || due >= this.#at) return;
    this.#timer?.();
    this.#at = due;
    this.#timer = this.#deps.scheduler.after(Math.max(0, due - this.now), () => void this.startDueRuns());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.();
    this.#timer = null;
  }

  /** Starts all runs that are due, and sets the timer for the next one. */
  async startDueRuns(): Promise<void> {
    this.#timer?.();
    this.#timer = null;
    this.#at = Number.POSITIVE_INFINITY;
    if (this.#looking) this.#again = true;
    if (this.#looking || this.#stopped) return;
    this.#looking = true;
    this.#again = false;
    try {
      // A run cannot start before its start can be stored.
      await this.#deps.journal.whenWritable();
      if (!this.#stopped) await this.#startPage();
    } catch (cause) {
      this.#deps.logger.warn("delayed runs could not be read; retrying", { error: String(cause) });
      this.schedule(this.now + RETRY_PAUSE_MS);
    } finally {
      this.#looking = false;
      if (this.#again) this.schedule(this.now);
    }
  }

  async #startPage(): Promise<void> {
    const found = await this.#deps.journal.delayed(RUNS_PER_READ + this.#failed.size);
    // Read once: between two reads of the clock a run may become due, and would then be neither due nor the next.
    const { now } = this;
    const due = found.filter(({ run, due: at }) => at <= now && !this.#failed.has(run));
    const startedBefore = this.#started;
    this.#started = new Set();
    // The last pass has started the run, but it is still listed: its thread does not know it.
    const startDue = ({ key, run }: KeyedDelayedRun) =>
      startedBefore.has(run) ? this.#fail(key, run, "its thread does not list it") : this.#start(key, run);
    await Promise.all(due.map(startDue));
    const next = found.find(({ due: at }) => at > now);
    if (due.length > 0) this.schedule(this.now);
    else if (next !== undefined) this.schedule(next.due);
  }

  async #start(key: ThreadKey, run: string): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#startRun(key, run);
      this.#started.add(run);
    } catch (cause) {
      const { logger } = this.#deps;
      const code = cause instanceof ServiceError ? cause.code : "";
      if (code === "thread.not_found" || code === "journal.damaged") {
        return this.#fail(key, run, String(cause));
      }
      // A failed storage is logged once, not for each run.
      const isOutage = this.#deps.journal.whenWritable() !== undefined;
      logger[isOutage ? "debug" : "warn"]("a delayed run could not be started; retrying", {
        thread: key.thread,
        run,
        error: String(cause),
      });
      // The thread is loaded again meanwhile.
      await new Promise<void>((resolve) => this.#deps.scheduler.after(RETRY_PAUSE_MS, resolve));
    }
  }

  #fail(key: ThreadKey, run: string, error: string): void {
    this.#failed.add(run);
    this.#deps.logger.error("a delayed run cannot be started", { thread: key.thread, run, error });
  }
}
