import { ServiceError } from "../src/model/errors.ts";
import { threadMapKey, type ThreadKey } from "../src/model/thread.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Journal } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Scheduler } from "../src/ports/scheduler.ts";

/** Milliseconds to wait before the first reload of a thread that failed. */
const FIRST_DELAY_MS = 1_000;
/** The longest delay before a later reload, in milliseconds. */
const MAX_DELAY_MS = 30_000;
/** Milliseconds without a further failure after which the failures of a thread no longer count. */
const FORGET_MS = 300_000;

interface Deps {
  readonly journal: Pick<Journal, "whenWritable">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

interface Threads {
  isLive(key: ThreadKey): boolean;
  /** True when the server is stopping: then no thread is loaded any more. */
  isStopping(): boolean;
  wake(key: ThreadKey): unknown;
}

interface Reload {
  readonly key: ThreadKey;
  /** How often the thread has failed again after a reload by this class. Each such failure doubles the delay. */
  failures: number;
  /** True when this class has reloaded the thread, and the thread has not failed since. */
  isLoaded: boolean;
  /** Time of the last failure, in milliseconds of the monotonic clock. */
  at: number;
  isScheduled: boolean;
}

/**
 * Reloads threads that failed while they had runs. A reload waits until the storage accepts writes, and longer each
 * time that the thread fails again.
 */
export class ThreadReloads {
  readonly #deps: Deps;
  readonly #threads: Threads;
  /**
   * Reloads by thread, in the order of the threads' last failures (`at`). A reload stays here after it is done, so that
   * a later failure of its thread counts as a repeated failure.
   */
  readonly #reloads = new Map<string, Reload>();
  #ready: Reload[] = [];
  #isLoading = false;
  /**
   * Threads that failed because of the storage and are not loaded again yet. One log line reports all of them when they
   * fail, and one when they are loaded again.
   */
  readonly #failed = new Set<string>();
  /** The threads that have been in `#failed` since it was last empty. The log lines give their number. */
  readonly #everFailed = new Set<string>();

  constructor(deps: Deps, threads: Threads) {
    this.#deps = deps;
    this.#threads = threads;
  }

  /**
   * Logs that a thread has failed, and schedules a reload if it has runs (`hasRuns`). Called when the thread is no
   * longer live.
   */
  threadFailed(key: ThreadKey, cause: unknown, hasRuns: boolean): void {
    const { logger, scheduler } = this.#deps;
    const name = threadMapKey(key);
    const isOutage = cause instanceof ServiceError && cause.code === "storage.unavailable";
    if (!isOutage) {
      logger.error("a thread's actor was given up", {
        thread: key.thread,
        cause: cause instanceof Error ? cause.message : String(cause),
      });
    }
    if (!hasRuns || this.#threads.isStopping()) return;
    if (isOutage && !this.#failed.has(name)) {
      this.#failed.add(name);
      // The failures are logged in a later turn of the event loop, because many threads may fail at once, and
      // get one line together.
      if (this.#everFailed.size === 0) scheduler.soon(() => this.#logFailed());
      this.#everFailed.add(name);
    }
    this.#schedule(this.#recordFailure(name, key));
  }

  #recordFailure(name: string, key: ThreadKey): Reload {
    const at = this.#deps.clock.mono();
    for (const [other, { at: then, isScheduled }] of this.#reloads) {
      if (at - then < FORGET_MS) break;
      if (!isScheduled) this.#reloads.delete(other);
    }
    const known = this.#reloads.get(name);
    const reload = known ?? { key, failures: 0, at, isLoaded: false, isScheduled: false };
    reload.at = at;
    // Counts only reloads that this class has made, because requests may load the thread too.
    if (reload.isLoaded) reload.failures++;
    reload.isLoaded = false;
    this.#reloads.delete(name);
    this.#reloads.set(name, reload);
    return reload;
  }

  #schedule(reload: Reload): void {
    if (reload.isScheduled) return;
    reload.isScheduled = true;
    const ms = Math.min(FIRST_DELAY_MS * 2 ** reload.failures, MAX_DELAY_MS);
    const { journal, scheduler } = this.#deps;
    scheduler.after(ms, () => {
      const writable = journal.whenWritable();
      if (writable === undefined) this.#enqueue(reload);
      else void writable.then(() => this.#enqueue(reload));
    });
  }

  #enqueue(reload: Reload): void {
    this.#ready.push(reload);
    if (!this.#isLoading) void this.#loadAll();
  }

  /**
   * Loads one thread in each turn of the event loop, because there may be thousands of threads, and other work must not
   * wait for all of them.
   */
  async #loadAll(): Promise<void> {
    this.#isLoading = true;
    for (let reload = this.#ready.shift(); reload !== undefined; reload = this.#ready.shift()) {
      if (this.#threads.isStopping()) return;
      reload.isScheduled = false;
      // oxlint-disable-next-line no-await-in-loop -- loading thousands at once would hold up all other work
      if (await this.#load(reload)) this.#loaded(reload);
      else {
        // If the thread failed while it was being loaded, that failure is counted already, and `isLoaded` is false.
        if (reload.isLoaded) reload.failures++;
        reload.isLoaded = false;
        this.#schedule(reload);
      }
      // oxlint-disable-next-line no-await-in-loop -- other work gets a turn between two loads
      await new Promise<void>((resolve) => this.#deps.scheduler.soon(resolve));
    }
    this.#isLoading = false;
  }

  /** Loads a thread. Resolves with false when the load failed and has to be repeated. */
  async #load(reload: Reload): Promise<boolean> {
    const { key } = reload;
    if (this.#threads.isLive(key)) return true;
    // `isLoaded` is set before the load, because the thread may fail again before the promise resolves.
    reload.isLoaded = true;
    try {
      await this.#threads.wake(key);
      return true;
    } catch (cause) {
      return cause instanceof ServiceError && cause.code === "thread.not_found";
    }
  }

  #loaded({ key }: Reload): void {
    if (!this.#failed.delete(threadMapKey(key)) || this.#failed.size > 0) return;
    this.#deps.logger.info("threads are loaded again", { threads: this.#everFailed.size });
    this.#everFailed.clear();
  }

  #logFailed(): void {
    this.#deps.logger.warn(
      "threads were given up because the storage failed; they are loaded again when it stores writes",
      {
        threads: this.#everFailed.size,
      },
    );
  }
}
