import { isTerminal, type RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import { ResponseMemoryBudget } from "./response-memory-budget.ts";
import type { Logger } from "../ports/logger.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { EventSink, RunEventSinks } from "../ports/event-sink.ts";
import { defaultLogLimits, type LogDeps, type LogLimits, type StreamSync } from "./attempt-event-writer.ts";
import { RunLog, type LogOwner } from "./run-log.ts";
import { type Reader, RunReader } from "./run-reader.ts";
import { RenderDataLoader, type RenderDataDeps, SharedCheckpointCache } from "./render-data-loader.ts";
import { ThreadReader } from "./thread-reader.ts";
import { NewRunWatch } from "./new-run-watch.ts";
import { RunAndEndReader } from "./run-and-end-reader.ts";
import { ReleasingMap } from "../model/releasing-map.ts";

export interface RunLogRegistryDeps {
  readonly journal: Journal;
  readonly scheduler: Scheduler;
  /** Limits how many states are read at a time. */
  readonly memory?: ResponseMemoryBudget;
  /** Limits the time that the rendering of large states takes per turn of the event loop. */
  readonly budget?: TimeBudget;
  readonly logger: Logger;
  readonly sync?: StreamSync;
  readonly limits?: Partial<LogLimits>;
}

export interface FollowOptions {
  /**
   * The id of the last event that the reader already has; -1 if it has none. An id that the run has not reached is treated as -1: showing
   * all events again is better than a stream that ends without events.
   */
  readonly after: number;
}

/** The event logs of all runs. The registry gives writers to the actors of runs, and readers to everybody else. */
export interface RunLogRegistry extends RunEventSinks {
  /** Makes a reader of the events of one run, which may be pending, running or ended. The caller MUST close the reader. */
  follow(key: ThreadKey, run: RunRecord, options: FollowOptions): Reader;
  /**
   * Makes a reader of the events of all runs of a thread, including future runs. `after`: the thread's number of the last event that the
   * client has; 0: none. `withEnds`: the reader also returns the end of each run, which has an event number of its own. The caller MUST
   * close the reader.
   */
  followThread(key: ThreadKey, after: number, withEnds?: boolean): ThreadReader;
  /**
   * Like {@link followThread} with `withEnds`, but reads each run from its first event. It is for protocols whose events depend on all
   * earlier events of the run.
   */
  followWhole(key: ThreadKey, after: number): ThreadReader;
  /** Disconnects all readers, and removes all logs from memory. Called when the server stops. */
  close(): void;
  /** The numbers of logs in memory, of readers of these logs, and (`watches`) of threads whose new runs are being watched. */
  readonly counts: { readonly logs: number; readonly readers: number; readonly watches: number };
}

/** Milliseconds that an ended log stays in memory for readers that have not reached its end. */
const LINGER_MS = 60_000;

export function createRunLogRegistry(deps: RunLogRegistryDeps): RunLogRegistry {
  return new InMemoryRunLogRegistry(deps);
}

class InMemoryRunLogRegistry implements RunLogRegistry, LogOwner {
  readonly #deps: LogDeps;
  readonly #memory: ResponseMemoryBudget;
  readonly #shared: SharedCheckpointCache;
  readonly #logs = new ReleasingMap<string, RunLog>();
  readonly #watches = new Map<string, NewRunWatch>();
  /** The logs of threads that are being deleted, by thread. */
  readonly #deletions = new Map<string, Set<RunLog>>();
  /** The number of readers of each run, including runs that have ended and have no log in memory. */
  readonly #readers = new Map<string, number>();
  #closed = false;
  readonly #isClosed = () => this.#closed;

  constructor({
    journal,
    scheduler,
    memory = new ResponseMemoryBudget(scheduler),
    budget,
    logger,
    sync = "os",
    limits,
  }: RunLogRegistryDeps) {
    this.#memory = memory;
    this.#shared = new SharedCheckpointCache((tenant) =>
      budget === undefined ? new Promise((resolve) => scheduler.soon(resolve)) : budget.share(tenant).next(),
    );
    this.#deps = { journal, scheduler, logger, sync, limits: { ...defaultLogLimits, ...limits } };
  }

  get counts(): RunLogRegistry["counts"] {
    let readers = 0;
    for (const log of this.#logs.values()) readers += log.readers;
    return { logs: this.#logs.size, readers, watches: this.#watches.size };
  }

  open(key: ThreadKey, run: RunRecord, epoch: number, first: number): EventSink {
    const name = nameOf(key, run.run_id);
    let log = this.#logs.get(name);
    if (log === undefined || log.state === "ended") {
      if (log !== undefined) this.#drop(log);
      log = this.#make(name, key, run.run_id);
    }
    const sink = log.open(epoch, first);
    log.record = run;
    // Usually no thread is watched, so the check of the size avoids building the key.
    if (this.#watches.size > 0) this.#watches.get(threadOf(key))?.began(run);
    return sink;
  }

  dismiss(key: ThreadKey, run: string): void {
    this.#logs.get(nameOf(key, run))?.dismiss(0);
  }

  removing(key: ThreadKey, runs: readonly string[]): (isDeleted: boolean) => void {
    const name = threadOf(key);
    const logs = this.#deletions.get(name) ?? new Set();
    this.#deletions.set(name, logs);
    for (const run of runs) {
      const log = this.#logs.get(nameOf(key, run));
      if (log !== undefined) addToDeletion(logs, log);
    }
    return (isDeleted) => {
      if (this.#deletions.get(name) === logs) this.#deletions.delete(name);
      for (const log of logs) log.threadDeletion = isDeleted ? "deleted" : "none";
      logs.clear();
    };
  }

  removed(key: ThreadKey): void {
    const name = threadOf(key);
    this.#watches.get(name)?.end();
    // A new thread with the same id gets a new watch.
    this.#watches.delete(name);
  }

  follow(key: ThreadKey, run: RunRecord, options: FollowOptions): Reader {
    return this.#follow(key, run, options).reader;
  }

  /** Makes the reader of a run. Also returns the log of the run, if there is one in memory. */
  #follow(
    key: ThreadKey,
    run: RunRecord,
    { after }: FollowOptions,
  ): { readonly reader: RunReader; readonly log: RunLog | undefined } {
    const { journal } = this.#deps;
    const name = nameOf(key, run.run_id);
    let log = this.#logs.get(name);
    if (log === undefined && !isTerminal(run.status)) {
      log = this.#make(name, key, run.run_id);
      if (this.#closed) log.break();
      else this.#confirm(log);
    }
    const isId = Number.isSafeInteger(after) && after >= 0;
    // The log's next event id is used if it is known, because `run` may be outdated: the run may have started or ended since it was read.
    const start = isId && after < (log?.next ?? boundOf(run)) ? after : -1;
    const later = isId && start < 0 && log !== undefined && log.next === undefined ? after : undefined;
    const data = log === undefined ? this.#newData(key, run) : (log.data ??= this.#newData(key, run, log));
    const reader = new RunReader(journal, data, log, { start, later }, this.#isClosed, () =>
      this.#left(name),
    );
    this.#readers.set(name, (this.#readers.get(name) ?? 0) + 1);
    return { reader, log };
  }

  #renderDataDeps(): RenderDataDeps {
    return { journal: this.#deps.journal, memory: this.#memory, shared: this.#shared };
  }

  #newData(key: ThreadKey, run: RunRecord, log?: RunLog): RenderDataLoader {
    return new RenderDataLoader(this.#renderDataDeps(), key, run, log && ((id) => log.find(id)?.chunk));
  }

  isRead(key: ThreadKey, run: string): boolean {
    return this.#readers.has(nameOf(key, run)) || this.#watches.has(threadOf(key));
  }

  #left(name: string): void {
    const rest = (this.#readers.get(name) ?? 1) - 1;
    if (rest === 0) this.#readers.delete(name);
    else this.#readers.set(name, rest);
  }

  followThread(key: ThreadKey, after: number, withEnds = false): ThreadReader {
    const follow = (run: RunRecord, from: number) =>
      withEnds ? this.#followToEnd(key, run, from, false) : this.follow(key, run, { after: from });
    const { journal, logger } = this.#deps;
    return new ThreadReader({ key, after, journal, logger, watch: this.#watch(key), follow, withEnds });
  }

  followWhole(key: ThreadKey, after: number): ThreadReader {
    const { journal, logger } = this.#deps;
    const follow = (run: RunRecord) => this.#followToEnd(key, run, -1, true);
    return new ThreadReader({ key, after, journal, logger, watch: this.#watch(key), follow, withEnds: true });
  }

  #followToEnd(key: ThreadKey, run: RunRecord, after: number, failsWithThread: boolean): Reader {
    const { reader, log } = this.#follow(key, run, { after });
    return new RunAndEndReader(reader, {
      ...this.#renderDataDeps(),
      key,
      run,
      after,
      next: () => log?.next ?? 0,
      failsWithThread,
    });
  }

  #watch(key: ThreadKey): NewRunWatch {
    const name = threadOf(key);
    let watch = this.#watches.get(name);
    if (watch === undefined) {
      watch = new NewRunWatch(this.#running(key), () => this.#watches.delete(name));
      if (this.#closed) watch.break();
      else this.#watches.set(name, watch);
    }
    return watch;
  }

  /** The run of a thread that is being executed by an actor now; undefined if there is none. */
  #running({ tenant, thread }: ThreadKey): RunRecord | undefined {
    for (const { key, record } of this.#logs.values()) {
      if (record !== undefined && key.thread === thread && key.tenant === tenant) return record;
    }
    return undefined;
  }

  close(): void {
    this.#closed = true;
    for (const watch of this.#watches.values()) watch.break();
    this.#watches.clear();
    // `break` leaves an ended log in the map, so `#drop` removes it.
    for (const log of this.#logs.values()) {
      log.break();
      this.#drop(log);
    }
  }

  changed(log: RunLog): void {
    if (log.state === "broken") this.#drop(log);
    if (log.readers === 0 && log.state !== "live") this.#drop(log);
    else if (log.state === "ended")
      log.lingering ??= this.#deps.scheduler.after(LINGER_MS, () => this.#drop(log));
  }

  #make(name: string, key: ThreadKey, run: string): RunLog {
    const log = new RunLog(key, run, this.#deps, this);
    if (this.#closed) return log;
    this.#logs.set(name, log);
    const deletion = this.#deletions.size === 0 ? undefined : this.#deletions.get(threadOf(key));
    if (deletion !== undefined) addToDeletion(deletion, log);
    return log;
  }

  #drop(log: RunLog): void {
    const name = nameOf(log.key, log.run);
    if (this.#logs.get(name) === log) this.#logs.delete(name);
    log.lingering?.();
    log.lingering = undefined;
    if (log.state === "ended") log.forget();
  }

  /**
   * Ends a new log if its run has already ended: the caller may have read the run's record before that end. Without this check, the readers
   * of the log would wait forever, because no attempt ever writes to it.
   */
  #confirm(log: RunLog): void {
    const confirm = async () => {
      // The `await` lets the first reader join before `dismiss`, which removes a log that has no reader.
      const run = await this.#deps.journal.sharedRun(log.key, log.run);
      const thread = run === undefined ? await this.#deps.journal.thread(log.key) : null;
      if (thread === undefined && log.state === "waiting") log.threadDeletion = "deleted";
      if (run === undefined || isTerminal(run.status)) log.dismiss(run === undefined ? 0 : boundOf(run));
    };
    confirm().catch((cause: unknown) => {
      this.#deps.logger.warn("a run to be followed could not be read", {
        run: log.run,
        error: String(cause),
      });
      log.break();
    });
  }
}

/**
 * The key of a run in maps. The id of a run is unique only within its thread, and the id of a thread only within its
 * tenant.
 */
const nameOf = (key: ThreadKey, run: string) => `${key.tenant}\n${key.thread}\n${run}`;
const threadOf = (key: ThreadKey) => `${key.tenant}\n${key.thread}`;

function addToDeletion(logs: Set<RunLog>, log: RunLog): void {
  logs.add(log);
  log.threadDeletion = "pending";
}

/** A number above all event ids that the run may have used. */
function boundOf(run: RunRecord): number {
  return isTerminal(run.status) ? run.next_event : Math.max(run.next_event, run.event_mark);
}
