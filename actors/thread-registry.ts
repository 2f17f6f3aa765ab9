import { ServiceError, threadNotFound } from "../src/model/errors.ts";
import { isTerminal, type CancelAction, type RunRecord } from "../src/model/run.ts";
import {
  assertPermitted,
  isPermitted,
  newThreadRecord,
  keyWithoutPermission,
  threadMapKey,
  type ThreadKey,
  type ThreadRecord,
  type NewThreadValues,
} from "../src/model/thread.ts";
import { nextTimer } from "../src/model/machine-timer.ts";
import { andThen, type Eventually } from "../src/ports/eventually.ts";
import type { Inspector, InspectScope } from "../src/ports/inspector.ts";
import { admitRun, cancelThreadRun } from "./thread/admission.ts";
import { admitAll } from "./batch-admission.ts";
import { startDelayedRun } from "./thread/delayed-run.ts";
import { deleteEndedRun } from "./thread/ended-run-deletion.ts";
import { LiveThread, type LiveThreadOwner } from "./thread/live-thread.ts";
import { runKwargsBytes } from "./thread/run-start.ts";
import { createThreadActor } from "./thread/create-thread-actor.ts";
import { updateThreadState } from "./thread/state-update.ts";
import { createStatecharts, type Statecharts } from "./create-statecharts.ts";
import { createThreadRecord } from "./create-thread-record.ts";
import { DueQueue } from "./due-queue.ts";
import { registryMetrics } from "./registry-metrics.ts";
import { ConcurrencyLimiter } from "./concurrency-limiter.ts";
import { RunMemoryBudget } from "./run-memory-budget.ts";
import { IdleThreads } from "./idle-threads.ts";
import { InspectorRegistry } from "./inspection/inspector-registry.ts";
import { InMemoryThreadList } from "./inspection/live-thread-list.ts";
import { ThreadAdministration } from "./thread-administration.ts";
import { parkRuns } from "./park-for-shutdown.ts";
import { loadUnendedRuns } from "./thread/load-unended-runs.ts";
import { ThreadReloads } from "./thread-reloads.ts";
import { isThreadIdShared, ThreadLocks } from "./thread-locks.ts";
import { QueuedRuns } from "./queue-capacity.ts";
import { restoreRunEnd } from "./restore-run-end.ts";
import { recoverThreads } from "./recover-threads.ts";
import { type ActorMetrics, RunTotals } from "./run-totals.ts";
import { TemporaryThreads } from "./temporary-threads.ts";
import { BeginQueue } from "./begin-queue.ts";
import { createXStateClock } from "./xstate-clock.ts";
import { RunEndCallbacks } from "./run-end-callbacks.ts";
import type {
  RunDraft,
  RunEnd,
  SystemDeps,
  AdmitTimerRun,
  ThreadDraft,
  ThreadSystem,
  UpdateDraft,
} from "./thread-system-interface.ts";
import { ReleasingMap } from "../src/model/releasing-map.ts";

/** The threads in memory, by key. A thread is absent, being loaded (requests wait for it) or live. */
export class ThreadRegistry implements ThreadSystem, LiveThreadOwner {
  draining = false;
  readonly limiter: ConcurrencyLimiter;
  readonly runningStates: RunMemoryBudget;
  readonly starts: BeginQueue;
  readonly delayedRuns: DueQueue;
  readonly #dueTimers: DueQueue;
  #admitTimerRun: AdmitTimerRun = () => Promise.resolve(false);
  #onRunEnd: (key: ThreadKey, run: RunRecord) => void = () => undefined;
  readonly #deps: SystemDeps;
  readonly #threads = new ReleasingMap<string, LiveThread>();
  readonly live = new InMemoryThreadList(this.#threads);
  readonly totals = new RunTotals();
  readonly threads: ThreadAdministration;
  readonly #waking = new Map<string, Promise<LiveThread>>();
  /** Writes that delete or prune threads which are not live, by thread key. These promises never reject. */
  readonly #rewrites = new ReleasingMap<string, Promise<void>>();
  readonly #locks = new ThreadLocks();
  readonly #endCallbacks = new RunEndCallbacks();
  readonly #temporaryThreads: TemporaryThreads;
  readonly #idleThreads: IdleThreads<LiveThread>;
  readonly #reloads: ThreadReloads;
  readonly #statecharts: Statecharts;
  readonly #inspection = new InspectorRegistry();
  readonly #timers = createXStateClock(() => this.#deps.scheduler);
  readonly #queuedRuns: QueuedRuns;
  /** Threads whose runs have paused because the server is stopping. */
  readonly #halted = new Set<LiveThread>();
  /** Threads that are being deleted, by thread key. The promise resolves with whether the thread was deleted. */
  readonly #deletions = new Map<string, Promise<boolean>>();
  /** Unended runs whose clients asked for the run to end with the connection. */
  readonly #cancelledOnDisconnect = new Set<string>();
  /** True when the shutdown has stored that the next start continues the runs in progress (see {@link parkRuns}). */
  #hasParked = false;
  #drained: (() => void) | null = null;

  constructor(deps: SystemDeps) {
    this.#deps = deps;
    this.threads = new ThreadAdministration(deps, {
      withLock: (key, work) => this.#locks.withLock(threadMapKey(key), work),
      refuseWhenDraining: () => this.#refuseWhenDraining(),
      wake: (key) => this.#wake(key),
      withoutActor: (liveThread, write) => this.#withoutActor(liveThread, write),
      settled: (key, run) => this.settled(key, run),
      scheduleTimer: (key, thread) => this.scheduleTimer(key, thread),
      endsWithThread: (key, isDeleted) => {
        const name = threadMapKey(key);
        this.#deletions.set(name, isDeleted);
        return () => this.#deletions.delete(name);
      },
    });
    this.#queuedRuns = new QueuedRuns(deps.limits);
    this.runningStates = new RunMemoryBudget(deps.scheduler, deps.heap, deps.limits);
    this.limiter = new ConcurrencyLimiter(deps.limits.concurrent, this.runningStates);
    this.starts = new BeginQueue(deps.clock, deps.scheduler);
    const { journal } = deps;
    this.delayedRuns = new DueQueue(deps, {
      name: "delayed run",
      read: async (limit) =>
        (await journal.delayedRuns(limit)).map(({ key, run: id, due }) => ({ key, id, due })),
      start: async (key, { id }) => startDelayedRun(await this.#wake(key), id),
    });
    this.#dueTimers = new DueQueue(deps, {
      name: "timer",
      read: (limit) => journal.timers(limit),
      start: async (key, timer) => {
        if (await this.#admitTimerRun(key, timer)) return true;
        await this.#threads.get(threadMapKey(key))?.lastWrite;
        return false;
      },
    });
    this.#statecharts = createStatecharts((name) => this.#threads.get(name), {
      grace: deps.limits.grace,
      interpret: deps.interpret,
    });
    this.#temporaryThreads = new TemporaryThreads(
      deps,
      (liveThread, write) => this.#withoutActor(liveThread, write),
      () => this.draining,
    );
    this.#reloads = new ThreadReloads(deps, {
      isLive: (key) => this.#threads.has(threadMapKey(key)),
      isStopping: () => this.draining,
      wake: (key) => this.#wake(key),
    });
    this.#idleThreads = new IdleThreads(deps.clock, deps.scheduler, deps.limits, (liveThread) =>
      this.passivate(liveThread),
    );
  }

  get counts() {
    return { live: this.#threads.size, busy: this.#threads.size - this.#idleThreads.size };
  }

  get figures(): ActorMetrics {
    const now = {
      waking: this.#waking.size,
      queued: this.#queuedRuns.size,
      waiting: this.limiter.waiting,
      stateBytes: this.runningStates.bytes,
    };
    return registryMetrics(this.totals, this.#threads, this.#idleThreads, now);
  }

  // --- the API of the actor system ---

  async create(key: ThreadKey, draft: ThreadDraft): Promise<ThreadRecord> {
    return this.#locks.withLock(threadMapKey(key), async () => {
      this.#refuseWhenDraining();
      const thread = await createThreadRecord(this.#deps, key, draft);
      this.scheduleTimer(key, thread);
      return thread;
    });
  }

  admit(key: ThreadKey, draft: RunDraft): Promise<RunRecord> {
    const admitted = () => this.#admit(key, draft);
    const name = threadMapKey(key);
    if (isThreadIdShared(draft.create) || this.#locks.isLocked(name))
      return this.#locks.withLock(name, admitted);
    return admitted();
  }

  admitAll(...[runs, refused]: Parameters<ThreadSystem["admitAll"]>): Promise<readonly RunRecord[]> {
    return admitAll(runs, {
      refused,
      refuseWhenDraining: () => this.#refuseWhenDraining(),
      wake: (key, start) => this.#wake(key, start),
      claim: (liveThread) => {
        liveThread.claims++;
        this.activityChanged(liveThread);
      },
      release: (liveThread) => {
        liveThread.claims--;
        this.activityChanged(liveThread);
        this.#checkDrained();
      },
      letGo: (liveThread) => this.#removeFromMemory(liveThread),
      starts: this.starts,
    });
  }

  async #admit(key: ThreadKey, draft: RunDraft): Promise<RunRecord> {
    this.#refuseWhenDraining();
    const found = this.#wake(key, draft.create);
    const liveThread = found instanceof Promise ? await found : found;
    const isNew = liveThread.record.seq === 0;
    if (!isNew && (liveThread.record.temporary !== null || !isPermitted(key, liveThread.record)))
      throw threadNotFound(key.thread);
    try {
      return await admitRun(liveThread, draft);
    } catch (cause) {
      // The thread was not created: the append that failed would have created it together with the run.
      if (isNew && liveThread.record.seq === 0) this.#removeFromMemory(liveThread);
      throw cause;
    }
  }

  async update(key: ThreadKey, draft: UpdateDraft) {
    this.#refuseWhenDraining();
    return this.#onLiveThread(key, (liveThread) => updateThreadState(liveThread, draft));
  }

  async settled(key: ThreadKey, run: string): Promise<RunRecord | undefined> {
    return (await this.ended(key, run)).run;
  }

  ended(key: ThreadKey, run: string): Promise<RunEnd> {
    const liveThread = this.#threads.get(threadMapKey(key));
    if (liveThread?.runs.has(run) || liveThread?.delayed.has(run)) return this.#endCallbacks.waitForEnd(run);
    const { journal } = this.#deps;
    return this.#endCallbacks.waitUnlessEnded(run, () =>
      andThen(journal.run(key, run), (record) => {
        // If the storage refuses writes, this request fails: the run cannot end before the storage accepts writes
        // again.
        const { refusal } = journal;
        if (refusal !== undefined && record !== undefined && !isTerminal(record.status)) throw refusal;
        return record;
      }),
    );
  }

  endWaits(): void {
    this.#endCallbacks.close(new ServiceError("server.draining", "The server is stopping"));
  }

  async cancel(key: ThreadKey, run: string, action: CancelAction, reason?: string): Promise<void> {
    // Nothing to do: the shutdown has already stored that this run ends.
    if (this.#hasParked && this.#cancelledOnDisconnect.has(run)) return;
    this.#refuseOnceParked();
    const record = await this.#deps.journal.run(key, run);
    const live = this.#threads.get(threadMapKey(key));
    if (record === undefined && live?.runs.has(run) !== true && live?.delayed.has(run) !== true) {
      throw new ServiceError("run.not_found", "Run not found");
    }
    if (record !== undefined && isTerminal(record.status)) return;
    await this.#onLiveThread(key, (liveThread) => cancelThreadRun(liveThread, run, action, reason ?? null));
  }

  cancelOnDisconnect(key: ThreadKey, run: string): void {
    const liveThread = this.#threads.get(threadMapKey(key));
    if (liveThread?.runs.has(run) === true || liveThread?.delayed.has(run) === true)
      this.#cancelledOnDisconnect.add(run);
  }

  async forget(key: ThreadKey, run: string): Promise<void> {
    const record = await this.#deps.journal.run(key, run);
    if (record === undefined) throw new ServiceError("run.not_found", "Run not found");
    await this.#onLiveThread(key, (liveThread) => deleteEndedRun(liveThread, record));
  }

  isRunning(key: ThreadKey, run: string): boolean {
    const liveThread = this.#threads.get(threadMapKey(key));
    return liveThread?.attempt?.id === run && liveThread.attempt.root.actor !== undefined;
  }

  keepTemporary(key: ThreadKey): () => void {
    return this.#temporaryThreads.keep(key);
  }

  positionOf(key: ThreadKey, run: string): number | undefined {
    return this.limiter.positionIn(this.#threads.get(threadMapKey(key))?.record.queue ?? [], run);
  }

  async recover(): Promise<void> {
    await recoverThreads(this.#deps, this.#temporaryThreads, (key) => this.#wake(key));
    await this.delayedRuns.startDue();
    await this.#dueTimers.startDue();
  }

  onTimer(admit: AdmitTimerRun): void {
    this.#admitTimerRun = admit;
  }

  onRunEnd(listener: (key: ThreadKey, run: RunRecord) => void): void {
    this.#onRunEnd = listener;
  }

  async restoreRunEnd(found: Parameters<ThreadSystem["restoreRunEnd"]>[0]) {
    return restoreRunEnd(await this.#wake(found.key), found);
  }

  inspect(scope: InspectScope, inspector: Inspector): () => void {
    return this.#inspection.add(scope, inspector, this.#threads.values());
  }

  async drain(ms: number): Promise<void> {
    this.draining = true;
    this.limiter.close();
    this.delayedRuns.stop();
    this.#dueTimers.stop();
    await new Promise<void>((resolve) => {
      const cancel = this.#deps.scheduler.after(ms, resolve);
      this.#drained = () => {
        cancel();
        resolve();
      };
      this.#checkDrained();
    });
    this.#hasParked = true;
    await parkRuns([...this.#threads.values()], this.#cancelledOnDisconnect);
    this.#idleThreads.stop();
  }

  #refuseWhenDraining(): void {
    if (this.draining) throw new ServiceError("server.draining", "The server is stopping; try again soon");
  }

  /**
   * Refuses to load a thread after {@link parkRuns}, because the storage is about to close.
   * @throws ServiceError `server.draining`
   */
  #refuseOnceParked(): void {
    if (this.#hasParked) this.#refuseWhenDraining();
  }

  #checkDrained(): void {
    // Draining is over when every busy thread has paused or waits for a slot, because no slots are given any more.
    const isOver = () => this.counts.busy <= this.#halted.size + this.limiter.waiting;
    if (!this.draining || !isOver()) return;
    // A paused run that was cancelled in the meantime no longer counts as paused, because its end still has to be
    // stored.
    for (const liveThread of this.#halted)
      if (liveThread.attempt?.isHalted !== true) this.#halted.delete(liveThread);
    if (isOver()) this.#drained?.();
  }

  // --- notifications from live threads ---

  scheduleTimer(key: ThreadKey, thread: ThreadRecord): void {
    const timer = nextTimer(thread);
    if (timer !== null) this.#dueTimers.scheduleAgain({ ...timer, key });
  }

  runQueued({ tenant }: ThreadKey, run: RunRecord, isTaken = false): void {
    const queued = { tenant, bytes: runKwargsBytes(run) };
    if (!isTaken) this.#queuedRuns.checkRoom(queued);
    this.#queuedRuns.add(run.run_id, queued);
  }

  queuedInputBytes(run: string): number | undefined {
    return this.#queuedRuns.inputBytes(run);
  }

  runStarted(run: string): void {
    this.#queuedRuns.delete(run);
  }

  runEnded(liveThread: LiveThread, run: string, end: RunEnd, isRead = false): void {
    this.#queuedRuns.delete(run);
    this.limiter.release(run);
    if (!this.#hasParked) this.#cancelledOnDisconnect.delete(run);
    this.activityChanged(liveThread);
    if (end.run !== undefined) this.#onRunEnd(liveThread.key, end.run);
    this.#temporaryThreads.runEnded(liveThread, run, end, isRead);
    this.#endCallbacks.notify(run, this.#withDeletion(liveThread, end));
    // If there still is an attempt, the run that ended was a queued one, and the run in progress stays paused.
    if (liveThread.attempt === null) this.#halted.delete(liveThread);
    this.#checkDrained();
  }

  #withDeletion({ key }: LiveThread, end: RunEnd): RunEnd {
    // Makes no map key in the common case that no thread is being deleted.
    const isThreadDeleted = this.#deletions.size === 0 ? undefined : this.#deletions.get(threadMapKey(key));
    return isThreadDeleted === undefined ? end : { ...end, isThreadDeleted };
  }

  activityChanged(liveThread: LiveThread): void {
    this.#idleThreads.update(liveThread);
  }

  runHalted(liveThread: LiveThread): void {
    this.#halted.add(liveThread);
    this.#checkDrained();
  }

  broken(liveThread: LiveThread, cause: unknown): void {
    this.#removeFromMemory(liveThread);
    for (const run of liveThread.runs.keys()) {
      this.#queuedRuns.delete(run);
      this.limiter.release(run);
    }
    if (cause instanceof ServiceError && cause.code === "storage.unavailable")
      for (const run of [...liveThread.runs.keys(), ...liveThread.delayed.keys()])
        this.#endCallbacks.fail(run, cause);
    liveThread.actor?.send({ type: "GIVE.UP" });
    liveThread.actor?.stop();
    this.#halted.delete(liveThread);
    this.#checkDrained();
    this.#reloads.threadFailed(liveThread.key, cause, liveThread.runs.size > 0);
  }

  // --- loading threads, and removing them from memory ---

  /**
   * Runs `work` on a live thread. If the thread is removed from memory while the work reads (for example because it is
   * deleted or pruned), the work starts again on the newly loaded thread.
   * @throws ServiceError `thread.not_found`
   */
  async #onLiveThread<T>(key: ThreadKey, work: (liveThread: LiveThread) => Promise<T>): Promise<T> {
    const name = threadMapKey(key);
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- retried on a newly loaded thread only after the work on the last one has failed
      const liveThread = await (this.#locks.isLocked(name)
        ? this.#locks.withLock(name, async () => this.#wake(key))
        : this.#wake(key));
      assertPermitted(key, liveThread.record);
      try {
        // oxlint-disable-next-line no-await-in-loop -- the thread must have left memory before it is loaded again
        return await work(liveThread);
      } catch (cause) {
        if (liveThread.alive || liveThread.isBroken) throw cause;
        this.#refuseWhenDraining();
      }
    }
  }

  /**
   * Loads a thread. With `start`, creates it if it does not exist.
   * @throws ServiceError `thread.not_found` without `start`
   */
  #wake(key: ThreadKey, start?: NewThreadValues): Eventually<LiveThread> {
    this.#refuseOnceParked();
    const name = threadMapKey(key);
    const live = this.#threads.get(name);
    if (live !== undefined) return live;
    const rewrite = this.#rewrites.size === 0 ? undefined : this.#rewrites.get(name);
    if (rewrite !== undefined) return rewrite.then(() => this.#wake(key, start));
    const waking = this.#waking.get(name);
    if (waking !== undefined) {
      if (start === undefined) return waking;
      // Another request is loading the thread already, perhaps without `start`. If that load fails because the thread
      // does not exist, this request creates the thread.
      return waking.catch((cause: unknown) => {
        if (cause instanceof ServiceError && cause.code === "thread.not_found") return this.#wake(key, start);
        throw cause;
      });
    }
    const liveThread = andThen(this.#deps.journal.thread(key), (stored) => {
      if (stored === undefined && start === undefined) throw threadNotFound(key.thread);
      const record = stored ?? newThreadRecord(key.thread, this.#deps.clock.now(), start);
      const made = new LiveThread(keyWithoutPermission(key), record, this.#deps, this);
      return andThen(
        loadUnendedRuns(made, (run) => this.runQueued(key, run, true)),
        () => this.#live(made),
      );
    });
    if (liveThread instanceof Promise) {
      this.#waking.set(name, liveThread);
      const forget = () => this.#waking.delete(name);
      liveThread.then(forget, forget);
    }
    return liveThread;
  }

  #live(liveThread: LiveThread): LiveThread {
    this.#refuseOnceParked();
    const name = threadMapKey(liveThread.key);
    const actor = createThreadActor(this.#statecharts.thread, liveThread, name, this.#timers);
    actor.subscribe({ error: (cause) => liveThread.discard(cause) });
    liveThread.actor = actor;
    this.#threads.set(name, liveThread);
    this.totals.woken++;
    this.#inspection.actorCreated(liveThread, actor);
    actor.start();
    this.activityChanged(liveThread);
    return liveThread;
  }

  passivate(liveThread: LiveThread): boolean {
    if (liveThread.inFlight > 0 || liveThread.runs.size > 0 || liveThread.claims > 0) return false;
    this.#removeFromMemory(liveThread);
    return true;
  }

  #removeFromMemory(liveThread: LiveThread): void {
    const name = threadMapKey(liveThread.key);
    if (this.#threads.get(name) === liveThread) this.#threads.delete(name);
    this.#idleThreads.remove(liveThread);
    if (liveThread.alive) liveThread.actor?.stop();
    liveThread.alive = false;
    this.#deps.journal.release(liveThread.key);
  }

  /**
   * Removes a thread from memory, then deletes or prunes it by `write`. The thread is loaded again only when this write
   * is stored. Until then, the storage would return the old record, and refuse writes that are based on it.
   */
  async #withoutActor(liveThread: LiveThread, write: () => Promise<void>): Promise<void> {
    const name = threadMapKey(liveThread.key);
    this.#removeFromMemory(liveThread);
    const stored = write();
    const isOver = () => void this.#rewrites.delete(name);
    this.#rewrites.set(name, stored.then(isOver, isOver));
    await stored;
  }
}
