import { ServiceError, threadNotFound } from "../src/model/errors.ts";
import { isTerminal, type CancelAction, type RunRecord } from "../src/model/run.ts";
import {
  newThread,
  threadName,
  type ThreadKey,
  type ThreadRecord,
  type ThreadStart,
} from "../src/model/thread.ts";
import { andThen, type Eventually } from "../src/ports/eventually.ts";
import type { Inspector, InspectScope } from "../src/ports/inspector.ts";
import { admit, cancel } from "./thread/admission.ts";
import { admitAll } from "./batch-admission.ts";
import { ripen } from "./thread/thread-delays.ts";
import { forget } from "./thread/run-rollback.ts";
import { Cell, type CellOwner } from "./thread/live-thread.ts";
import { threadActor } from "./thread/thread-actor.ts";
import { update } from "./thread/state-update.ts";
import { charts, type Charts } from "./statecharts.ts";
import { create } from "./thread-creation.ts";
import { Delays } from "./delayed-runs.ts";
import { figuresOf } from "./registry-metrics.ts";
import { Gate } from "./concurrency-limiter.ts";
import { Idle } from "./idle-threads.ts";
import { Inspection } from "./inspection/inspection.ts";
import { Live } from "./inspection/live-threads.ts";
import { Keeping } from "./thread-administration.ts";
import { leave } from "./park-runs.ts";
import { loadRuns, retake } from "./wake-thread.ts";
import { isShared, Making } from "./thread-locks.ts";
import { QueuedRuns } from "./queued-runs.ts";
import { endUnendedRun } from "./unended-run.ts";
import { recover } from "./recovery.ts";
import { type Figures, Tally } from "./run-counters.ts";
import { Temporaries } from "./temporary-threads.ts";
import { StartQueue } from "./start-queue.ts";
import { timersOf } from "./xstate-clock.ts";
import { Waiters } from "./run-end-callbacks.ts";
import type {
  RunDraft,
  RunEnd,
  SystemDeps,
  ThreadDraft,
  ThreadSystem,
  UpdateDraft,
} from "./thread-system.ts";
import { ReleasingMap } from "../src/model/releasing-map.ts";

/** The threads in memory, by name. A thread is absent, loading (requests wait for it) or live. */
export class Registry implements ThreadSystem, CellOwner {
  draining = false;
  readonly gate: Gate;
  readonly starts: StartQueue;
  readonly delays: Delays;
  readonly #deps: SystemDeps;
  readonly #cells = new ReleasingMap<string, Cell>();
  readonly live = new Live(this.#cells);
  readonly tally = new Tally();
  readonly threads: Keeping;
  readonly #waking = new Map<string, Promise<Cell>>();
  readonly #making = new Making();
  readonly #waiters = new Waiters();
  readonly #temporaries: Temporaries;
  readonly #idle: Idle<Cell>;
  readonly #charts: Charts;
  readonly #inspection = new Inspection();
  readonly #timers = timersOf(() => this.#deps.scheduler);
  /** Runs that have not started. */
  readonly #line: QueuedRuns;
  /** Threads whose runs have paused for the shutdown. */
  readonly #halted = new Set<Cell>();
  /** Unended runs whose client asked for an end with its connection. */
  readonly #cancelledOnDisconnect = new Set<string>();
  /** True when the shutdown has parked the runs in progress. */
  #hasLeft = false;
  #drained: (() => void) | null = null;

  constructor(deps: SystemDeps) {
    this.#deps = deps;
    this.threads = new Keeping(deps, {
      alone: (key, work) => this.#making.alone(threadName(key), work),
      refuseWhenDraining: () => this.#refuseWhenDraining(),
      wake: (key) => this.#wake(key),
      letGo: (cell) => this.#letGo(cell),
      settled: (key, run) => this.settled(key, run),
    });
    this.#line = new QueuedRuns(deps.limits);
    this.gate = new Gate(deps.limits.concurrent);
    this.starts = new StartQueue(deps.clock, deps.scheduler);
    this.delays = new Delays(deps, async (key, run) => ripen(await this.#wake(key), run));
    this.#charts = charts((name) => this.#cells.get(name), {
      grace: (callback) => void deps.scheduler.after(deps.limits.grace, callback),
    });
    this.#temporaries = new Temporaries(deps, (cell) => this.#letGo(cell));
    this.#idle = new Idle(deps.clock, deps.scheduler, deps.limits, (cell) => this.passivate(cell));
  }

  get counts() {
    return { live: this.#cells.size, busy: this.#cells.size - this.#idle.size };
  }

  get figures(): Figures {
    const now = { waking: this.#waking.size, queued: this.#line.size, waiting: this.gate.waiting };
    return figuresOf(this.tally, this.#cells, this.#idle, now);
  }

  // --- the API of the actor system ---

  async create(key: ThreadKey, draft: ThreadDraft): Promise<ThreadRecord> {
    return this.#making.alone(threadName(key), async () => {
      this.#refuseWhenDraining();
      return create(this.#deps, key, draft);
    });
  }

  admit(key: ThreadKey, draft: RunDraft): Promise<RunRecord> {
    const admitted = () => this.#admit(key, draft);
    const name = threadName(key);
    if (isShared(draft.create) || this.#making.isUnderWay(name)) return this.#making.alone(name, admitted);
    return admitted();
  }

  admitAll(...[runs, refused]: Parameters<ThreadSystem["admitAll"]>): Promise<readonly RunRecord[]> {
    return admitAll(runs, {
      refused,
      refuseWhenDraining: () => this.#refuseWhenDraining(),
      wake: (key, start) => this.#wake(key, start),
      letGo: (cell) => this.#letGo(cell),
    });
  }

  async #admit(key: ThreadKey, draft: RunDraft): Promise<RunRecord> {
    this.#refuseWhenDraining();
    const found = this.#wake(key, draft.create);
    const cell = found instanceof Promise ? await found : found;
    const isNew = cell.record.seq === 0;
    if (cell.record.temporary !== null && !isNew) throw threadNotFound(key.thread);
    try {
      return await admit(cell, draft);
    } catch (cause) {
      // The thread would have been created with this run: without it there is none.
      if (isNew && cell.record.seq === 0) this.#letGo(cell);
      throw cause;
    }
  }

  async update(key: ThreadKey, draft: UpdateDraft) {
    this.#refuseWhenDraining();
    return this.#onCell(key, (cell) => update(cell, draft));
  }

  async settled(key: ThreadKey, run: string): Promise<RunRecord | undefined> {
    return (await this.ended(key, run)).run;
  }

  ended(key: ThreadKey, run: string): Promise<RunEnd> {
    const cell = this.#cells.get(threadName(key));
    if (cell?.runs.has(run) || cell?.delayed.has(run)) return this.#waiters.wait(run);
    return Promise.resolve(
      andThen(this.#deps.journal.run(key, run), (record) => {
        if (record === undefined || isTerminal(record.status)) return { run: record };
        return this.#waiters.wait(run);
      }),
    );
  }

  async cancel(key: ThreadKey, run: string, action: CancelAction, reason?: string): Promise<void> {
    // The shutdown has stored the cancellation.
    if (this.#hasLeft && this.#cancelledOnDisconnect.has(run)) return;
    this.#refuseOnceLeft();
    const record = await this.#deps.journal.run(key, run);
    const live = this.#cells.get(threadName(key));
    if (record === undefined && live?.runs.has(run) !== true && live?.delayed.has(run) !== true) {
      throw new ServiceError("run.not_found", "Run not found");
    }
    if (record !== undefined && isTerminal(record.status)) return;
    await this.#onCell(key, (cell) => cancel(cell, run, action, reason ?? null));
  }

  cancelOnDisconnect(key: ThreadKey, run: string): void {
    const cell = this.#cells.get(threadName(key));
    if (cell?.runs.has(run) === true || cell?.delayed.has(run) === true) this.#cancelledOnDisconnect.add(run);
  }

  async forget(key: ThreadKey, run: string): Promise<void> {
    const record = await this.#deps.journal.run(key, run);
    if (record === undefined) throw new ServiceError("run.not_found", "Run not found");
    await this.#onCell(key, (cell) => forget(cell, record));
  }

  isRunning(key: ThreadKey, run: string): boolean {
    const cell = this.#cells.get(threadName(key));
    return cell?.attempt?.id === run && cell.attempt.actor !== undefined;
  }

  positionOf(key: ThreadKey, run: string): number | undefined {
    return this.gate.positionIn(this.#cells.get(threadName(key))?.record.queue ?? [], run);
  }

  async recover(): Promise<void> {
    await recover(this.#deps, this.#temporaries, (key) => this.#wake(key));
    await this.delays.look();
  }

  async endUnendedRun(found: Parameters<ThreadSystem["endUnendedRun"]>[0]) {
    return endUnendedRun(await this.#wake(found.key), found);
  }

  inspect(scope: InspectScope, inspector: Inspector): () => void {
    return this.#inspection.add(scope, inspector, this.#cells.values());
  }

  async drain(ms: number): Promise<void> {
    this.draining = true;
    this.gate.close();
    this.delays.stop();
    await new Promise<void>((resolve) => {
      const cancel = this.#deps.scheduler.after(ms, resolve);
      this.#drained = () => {
        cancel();
        resolve();
      };
      this.#checkDrained();
    });
    this.#hasLeft = true;
    await leave([...this.#cells.values()], this.#cancelledOnDisconnect);
    this.#idle.stop();
  }

  #refuseWhenDraining(): void {
    if (this.draining) throw new ServiceError("server.draining", "The server is stopping; try again soon");
  }

  /** The storage is about to close: no thread is loaded any more. */
  #refuseOnceLeft(): void {
    if (this.#hasLeft) this.#refuseWhenDraining();
  }

  #checkDrained(): void {
    // Threads that wait for a slot get none any more.
    const isOver = () => this.counts.busy <= this.#halted.size + this.gate.waiting;
    if (!this.draining || !isOver()) return;
    // A paused run may have been cancelled since: its end has to be stored.
    for (const cell of this.#halted) if (cell.attempt?.isHalted !== true) this.#halted.delete(cell);
    if (isOver()) this.#drained?.();
  }

  // --- notifications from live threads ---

  queued({ tenant }: ThreadKey, run: string, isTaken = false): void {
    if (!isTaken) this.#line.checkRoom(tenant);
    this.#line.add(run, tenant);
  }

  begun(run: string): void {
    this.#line.delete(run);
  }

  concluded(cell: Cell, run: string, end: RunEnd, isRead = false): void {
    this.#line.delete(run);
    this.gate.leave(run);
    if (!this.#hasLeft) this.#cancelledOnDisconnect.delete(run);
    this.rested(cell);
    this.#temporaries.concluded(cell, end, isRead);
    this.#waiters.tell(run, end);
    this.#halted.delete(cell);
    this.#checkDrained();
  }

  rested(cell: Cell): void {
    this.#idle.note(cell);
  }

  halted(cell: Cell): void {
    this.#halted.add(cell);
    this.#checkDrained();
  }

  broken(cell: Cell, cause: unknown): void {
    this.#letGo(cell);
    for (const run of cell.runs.keys()) {
      this.#line.delete(run);
      this.gate.leave(run);
    }
    this.#deps.logger.error("a thread's actor was given up", {
      thread: cell.key.thread,
      cause: cause instanceof Error ? cause.message : String(cause),
    });
    cell.actor?.send({ type: "GIVE.UP" });
    cell.actor?.stop();
    this.#halted.delete(cell);
    this.#checkDrained();
    if (!this.draining && cell.runs.size > 0) {
      const isMoot = () => this.draining || this.#cells.has(threadName(cell.key));
      retake(this.#deps.scheduler, () => this.#wake(cell.key), isMoot);
    }
  }

  // --- loading threads, and removing them from memory ---

  /**
   * Works on a live thread. Where that is removed from memory while the work reads, as when the thread is deleted or
   * pruned, the work starts again on the one that is loaded next.
   * @throws ServiceError `thread.not_found`
   */
  async #onCell<T>(key: ThreadKey, work: (cell: Cell) => Promise<T>): Promise<T> {
    const name = threadName(key);
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one cell after the other
      const cell = await (this.#making.isUnderWay(name)
        ? this.#making.alone(name, async () => this.#wake(key))
        : this.#wake(key));
      try {
        // oxlint-disable-next-line no-await-in-loop
        return await work(cell);
      } catch (cause) {
        if (cell.alive || cell.isBroken) throw cause;
        this.#refuseWhenDraining();
      }
    }
  }

  /**
   * Loads a thread. `start`: creates it where it does not exist. @throws ServiceError `thread.not_found` without
   * `start`
   */
  #wake(key: ThreadKey, start?: ThreadStart): Eventually<Cell> {
    this.#refuseOnceLeft();
    const name = threadName(key);
    const live = this.#cells.get(name) ?? this.#waking.get(name);
    if (live !== undefined) return live;
    const cell = andThen(this.#deps.journal.thread(key), (stored) => {
      if (stored === undefined && start === undefined) throw threadNotFound(key.thread);
      const record = stored ?? newThread(key.thread, this.#deps.clock.now(), start);
      const made = new Cell(key, record, this.#deps, this);
      return andThen(
        loadRuns(made, (run) => this.#line.add(run, key.tenant)),
        () => this.#live(made),
      );
    });
    if (cell instanceof Promise) {
      this.#waking.set(name, cell);
      const forget = () => this.#waking.delete(name);
      cell.then(forget, forget);
    }
    return cell;
  }

  #live(cell: Cell): Cell {
    this.#refuseOnceLeft();
    const name = threadName(cell.key);
    const actor = threadActor(this.#charts.thread, cell, name, this.#timers);
    actor.subscribe({ error: (cause) => cell.giveUp(cause) });
    cell.actor = actor;
    this.#cells.set(name, cell);
    this.tally.woken++;
    this.#inspection.met(cell, actor);
    actor.start();
    this.rested(cell);
    return cell;
  }

  passivate(cell: Cell): boolean {
    if (cell.inFlight > 0 || cell.runs.size > 0) return false;
    this.#letGo(cell);
    return true;
  }

  #letGo(cell: Cell): void {
    const name = threadName(cell.key);
    if (this.#cells.get(name) === cell) this.#cells.delete(name);
    this.#idle.drop(cell);
    if (cell.alive) cell.actor?.stop();
    cell.alive = false;
    this.#deps.journal.release(cell.key);
  }
}
