import type { CronRecord } from "../../model/cron.ts";
import { type ErrorCode, ServiceError, toPlainError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { RunRecord } from "../../model/run.ts";
import type { Journal } from "../../ports/journal.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CronStorage, PlannedCron } from "../../ports/cron-storage.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Cancel, Scheduler } from "../../ports/scheduler.ts";
import type { IdempotencyKey } from "../idempotency.ts";
import type { Runs } from "../runs.ts";
import { advancedCron, type Crons } from "./crons.ts";
import { cronRunRequest } from "./cron-run-request.ts";

interface Deps {
  readonly journal: Pick<Journal, "whenWritable">;
  readonly cronStorage: CronStorage;
  readonly crons: Pick<Crons, "watch" | "isUseless">;
  /**
   * Returns the functions that start runs, restricted to what the cron's user may do. `user` null: the cron has no user, and there is no
   * restriction.
   */
  readonly runsOf: (user: JsonObject | null) => Pick<Runs, "start" | "startAlone">;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

interface Fired extends Pick<CronRecord, "last_run"> {
  readonly isOver: boolean;
}

/** The number of slots that are read at a time. A slot is a time at which a cron fires. */
const SLOTS_PER_READ = 16;
const RETRY_PAUSE_MS = 1_000;
/**
 * The longest delay of the timer, in milliseconds. The wall clock may be changed during a delay, so it has to be read again from time to
 * time.
 */
const MAX_WAIT_MS = 30_000;

/**
 * Errors that say that a cron's thread or assistant is missing. After such an error, the cron is deleted. It is kept if the thread and the
 * assistant exist, and only the cron's user may not reach them.
 */
const OVER: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["thread.not_found", "assistant.not_found"]);
/** Temporary errors. After such an error, the run of the slot (a time at which the cron fires) is started again later. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "server.busy",
  "server.draining",
  "storage.unavailable",
  "journal.fenced",
  "journal.conflict",
]);

/**
 * Fires each cron at its slots (the times of its schedule), each slot once. The run is stored together with an idempotency key made from
 * the cron and the slot; then the cron moves on to its next slot. After a crash between these two steps, the key prevents a second run. Of
 * the slots that were missed while the server was down, only one fires.
 */
export class CronWorker {
  readonly #deps: Deps;
  #timer: Cancel | null = null;
  #working: Promise<void> = Promise.resolve();
  #isWorking = false;
  /** True while the worker waits until the storage accepts writes again. */
  #isWaiting = false;
  #again = false;
  #stopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  start(): void {
    this.#deps.crons.watch(() => this.#schedule());
    this.#schedule();
  }

  /** Stops firing crons. Resolves when the work in progress is done. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.();
    return this.#working;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer?.();
    this.#timer = null;
    this.#again = this.#isWorking;
    if (this.#isWorking || this.#isWaiting) return;
    const writable = this.#deps.journal.whenWritable();
    if (writable === undefined) {
      this.#working = this.#work();
      return;
    }
    // This wait is not part of `#working`: it may be long, and `stop` waits for `#working`.
    this.#isWaiting = true;
    void writable.then(() => {
      this.#isWaiting = false;
      this.#schedule();
    });
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    let wait: number | null = RETRY_PAUSE_MS;
    try {
      wait = await this.#fireAll();
    } catch (cause) {
      this.#deps.logger.warn("crons could not be read; retrying", { error: String(cause) });
    }
    this.#isWorking = false;
    if (this.#again) this.#schedule();
    else if (wait !== null && !this.#stopped) {
      this.#timer = this.#deps.scheduler.after(wait, () => this.#schedule());
    }
  }

  /**
   * Fires the due crons, at most {@link SLOTS_PER_READ} of them. Returns the milliseconds after which this
   * method must be called again; null when nothing is scheduled.
   */
  async #fireAll(): Promise<number | null> {
    const { cronStorage, clock } = this.#deps;
    const found = await cronStorage.next(SLOTS_PER_READ);
    const due = found.filter(({ slot }) => slot <= clock.now());
    const done = await Promise.all(due.map((slot) => this.#handle(slot)));
    if (done.includes(false)) return RETRY_PAUSE_MS;
    if (due.length > 0) return 0;
    const [first] = found;
    return first === undefined ? null : Math.min(MAX_WAIT_MS, Math.max(0, first.slot - clock.now()));
  }

  /** Fires one cron at one slot (a time of its schedule). Returns false when this must be tried again. */
  async #handle(at: PlannedCron): Promise<boolean> {
    const { cronStorage, clock, logger } = this.#deps;
    if (this.#stopped) return true;
    try {
      const cron = await cronStorage.find(at);
      // The cron was deleted or changed after the list of due crons was read.
      if (cron === undefined || cron.next !== at.slot) return true;
      const { isOver, ...fired } = await this.#fire(at, cron);
      await cronStorage.change(at, (now) => {
        if (now === undefined || isOver) return now === undefined ? undefined : null;
        return now.next === at.slot ? { ...advancedCron(now, at.slot, clock.now()), ...fired } : undefined;
      });
      return true;
    } catch (cause) {
      // During an outage of the storage, the error is logged only at the level `debug`, because it affects every cron and is logged
      // elsewhere.
      const isOutage = this.#deps.journal.whenWritable() !== undefined;
      const line = { cron: at.cron, error: String(cause) };
      logger[isOutage ? "debug" : "warn"]("a cron could not be fired; retrying", line);
      return false;
    }
  }

  /**
   * Starts the run of a slot (a time at which the cron fires). `isOver` in the result: the cron's runs can never start again, so the cron
   * is deleted.
   */
  async #fire(at: PlannedCron, cron: CronRecord): Promise<Fired> {
    const { clock, crons, logger } = this.#deps;
    // A missed slot is dropped if the cron's end time has passed since.
    if (cron.end_time !== null && clock.now() > cron.end_time && at.slot < clock.now() - RETRY_PAUSE_MS)
      return { isOver: false };
    try {
      await this.#start(at, cron);
      return { isOver: false };
    } catch (cause) {
      if (!(cause instanceof ServiceError) || PASSING.has(cause.code)) throw cause;
      const { code, message } = cause;
      // The run of this slot was started before. It has since ended and been deleted, so there is nothing to do.
      if (code === "request.gone") return { isOver: false };
      logger.warn("a cron's run could not be started", { cron: cron.cron_id, code, error: message });
      // The same error is thrown when the cron's user may not reach the thread or the assistant. In that case the cron is kept, because the
      // permissions may change again.
      const isOver = OVER.has(code) && (isNobodys(cron) || (await crons.isUseless(at.tenant, cron)));
      const error = toPlainError(cause);
      return { isOver, last_run: { run_id: null, status: "error", error, ended_at: clock.now() } };
    }
  }

  #start({ tenant, slot }: PlannedCron, cron: CronRecord): Promise<RunRecord> {
    const { cron_id, thread_id: thread, user = null } = cron;
    const runs = this.#deps.runsOf(user);
    // Copies the request if the cron has a user: the application's authorization code may change the request, and parts of the original
    // belong to the cron's record.
    const request = user === null ? cronRunRequest(cron) : structuredClone(cronRunRequest(cron));
    // The cron's id and the slot identify the request, so its content does not have to be compared. `neverExpires` keeps the key valid even
    // if the retry comes days later.
    const again: IdempotencyKey = { key: `cron ${cron_id} ${slot}`, content: "", neverExpires: true };
    if (thread !== null) return runs.start({ tenant, thread }, request, { again });
    return runs.startAlone(tenant, request, "background", { again });
  }
}

const isNobodys = ({ user }: CronRecord): boolean => (user ?? null) === null;
