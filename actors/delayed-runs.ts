import { ServiceError } from "../src/model/errors.ts";
import type { ThreadKey } from "../src/model/thread.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Due, Journal } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Cancel, Scheduler } from "../src/ports/scheduler.ts";
import { SteadyTime } from "../src/ports/steady-time.ts";

interface Deps {
  readonly journal: Pick<Journal, "delayed">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** Runs that are looked up at a time. */
const PAGE = 64;
/** Milliseconds before what failed is tried again. */
const PAUSE = 1_000;

/**
 * Runs that wait for their time. Which they are stands in the storage, however many: here is the one timer for the first of
 * them. Time goes on evenly, whatever becomes of the clock on the wall meanwhile.
 */
export class Delays {
  readonly #deps: Deps;
  /** Tells a thread that the time of its run has come. */
  readonly #ripen: (key: ThreadKey, run: string) => Promise<void>;
  readonly #time: SteadyTime;
  /** Runs that cannot be told, such as those of a damaged thread: they must not keep others. */
  readonly #lost = new Set<string>();
  /** Runs that were told at the last look. */
  #told = new Set<string>();
  #timer: Cancel | null = null;
  #at = Number.POSITIVE_INFINITY;
  #looking = false;
  /** The time has come for more while it was looking. */
  #again = false;
  #stopped = false;

  constructor(deps: Deps, ripen: (key: ThreadKey, run: string) => Promise<void>) {
    this.#deps = deps;
    this.#ripen = ripen;
    this.#time = new SteadyTime(deps.clock);
  }

  get now(): number {
    return this.#time.now();
  }

  /** There is, or will be, a run that is due at this time. */
  expect(due: number): void {
    if (this.#stopped || due >= this.#at) return;
    this.#timer?.();
    this.#at = due;
    this.#timer = this.#deps.scheduler.after(Math.max(0, due - this.now), () => void this.look());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.();
    this.#timer = null;
  }

  /** Sees to all that is due, and waits for the next. */
  async look(): Promise<void> {
    this.#timer?.();
    this.#timer = null;
    this.#at = Number.POSITIVE_INFINITY;
    if (this.#looking) this.#again = true;
    if (this.#looking || this.#stopped) return;
    this.#looking = true;
    this.#again = false;
    try {
      await this.#seeTo();
    } catch (cause) {
      this.#deps.logger.warn("delayed runs could not be read; it is tried again", { error: String(cause) });
      this.expect(this.now + PAUSE);
    } finally {
      this.#looking = false;
      if (this.#again) this.expect(this.now);
    }
  }

  async #seeTo(): Promise<void> {
    const found = await this.#deps.journal.delayed(PAGE + this.#lost.size);
    // Read once: between two reads the time of a run may come, and it would be neither due nor the next.
    const { now } = this;
    const due = found.filter(({ run, due: at }) => at <= now && !this.#lost.has(run));
    const told = this.#told;
    this.#told = new Set();
    // One that was told, and is listed all the same, is in the list alone.
    const tell = ({ key, run }: Due) =>
      told.has(run) ? this.#lose(key, run, "its thread does not know of it") : this.#tell(key, run);
    await Promise.all(due.map(tell));
    const next = found.find(({ due: at }) => at > now);
    if (due.length > 0) this.expect(this.now);
    else if (next !== undefined) this.expect(next.due);
  }

  async #tell(key: ThreadKey, run: string): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#ripen(key, run);
      this.#told.add(run);
    } catch (cause) {
      const { logger } = this.#deps;
      const code = cause instanceof ServiceError ? cause.code : "";
      if (code === "thread.not_found" || code === "journal.damaged") {
        return this.#lose(key, run, String(cause));
      }
      logger.warn("a delayed run could not be started; it is tried again", {
        thread: key.thread,
        run,
        error: String(cause),
      });
      // Its thread is taken up anew meanwhile.
      await new Promise<void>((resolve) => this.#deps.scheduler.after(PAUSE, resolve));
    }
  }

  #lose(key: ThreadKey, run: string, error: string): void {
    this.#lost.add(run);
    this.#deps.logger.error("a delayed run cannot be started", { thread: key.thread, run, error });
  }
}
