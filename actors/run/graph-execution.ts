import type { AnyActorRef } from "../xstate.ts";
import type { CheckpointHead, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { toPlainError, type PlainError, ServiceError } from "../../src/model/errors.ts";
import { SmallMap, smallMapBy } from "../../src/model/small-map.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { StopReason } from "../../src/model/run.ts";
import type { Emission, Execution, Plan, CheckpointWithState, EngineStep } from "../../src/ports/engine.ts";
import type { JoiningTask } from "../../src/ports/engine-host.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import type { LiveThread } from "../thread/live-thread.ts";
import type { RunAttempt } from "./attempt.ts";
import { TaskRunner } from "./task-runner.ts";

/** What differs between the root graph and a subgraph: how the graph starts and ends. */
export interface GraphLifecycle {
  readonly ns: string;
  position(): Eventually<CheckpointWithState>;
  open(position: CheckpointWithState): Execution;
  close(graph: GraphExecution, stop: StopReason | null): void;
}

/**
 * The execution of one graph of an attempt: the root graph, or a subgraph that is a task's node. It calls the engine when
 * the run's statechart asks for the next step, and passes to the attempt what has to be stored.
 */
export class GraphExecution {
  readonly attempt: RunAttempt;
  readonly liveThread: LiveThread;
  readonly origin: GraphLifecycle;
  readonly tasks: TaskRunner;
  actor: AnyActorRef | undefined;
  /** True once the graph has applied its input, or has resumed from its start position. */
  hasEntered = false;
  failure: PlainError | null = null;
  /** True when a task failed for a reason other than a refused answer. */
  hasFailedTask = false;
  /** True when the run's answer to an interrupt was refused before anything was done. */
  isRefused = false;
  plan: Plan | null = null;
  /** An error with which the graph fails after the first step; null if there is none. */
  #failAfter: PlainError | null = null;
  head: CheckpointHead | null = null;
  values: JsonObject = {};
  /**
   * The state at the latest checkpoint. `values` may also include changes of a failed or paused step that made no
   * checkpoint.
   */
  stored: JsonObject = {};
  /** Writes of tasks at the latest checkpoint, by task id. */
  writes = new SmallMap<string, PendingTaskWrites>();
  #execution: Execution | undefined;
  /**
   * The id of the checkpoint from which the graph started; null if it has not started, or started without a checkpoint.
   */
  #startId: string | null = null;
  #hasBegun = false;
  #commits = 0;
  /** True when the server is stopping: planned tasks do not start. */
  #isPaused = false;
  /** True when the run was stopped while a step was being computed. */
  #isPlanningAborted = false;
  #isOver = false;

  constructor(attempt: RunAttempt, origin: GraphLifecycle) {
    this.attempt = attempt;
    this.liveThread = attempt.liveThread;
    this.origin = origin;
    this.tasks = new TaskRunner(this);
  }

  get alive(): boolean {
    return !this.#isOver && this.attempt.alive;
  }

  /**
   * For a graceful shutdown: true when no task of this graph is still in progress (see {@link TaskRunner.bodyCount}),
   * and the graph either has paused because the server is stopping or has a subgraph that runs as a task.
   */
  get isHalted(): boolean {
    return this.tasks.bodyCount === 0 && (this.#isPaused || this.tasks.hasSubgraph);
  }

  get isLoaded(): boolean {
    return this.#execution !== undefined;
  }

  get execution(): Execution {
    if (this.#execution === undefined) throw new TypeError(`Run ${this.attempt.run.run_id} is not loaded`);
    return this.#execution;
  }

  /** True when this attempt made the graph's latest checkpoint. */
  get hasNewHead(): boolean {
    return this.head !== null && this.head.id !== this.#startId;
  }

  get position(): CheckpointWithState {
    return { head: this.head, values: this.values, writes: [...this.writes.values()] };
  }

  load(self: AnyActorRef, stopped: boolean): void {
    this.actor = self;
    if (this.failure !== null) return this.next();
    this.#guarded(
      () =>
        andThen(this.origin.position(), (position) => {
          // A stopped run waits for this read only for the grace period, so it may have ended in the meantime.
          if (!this.alive) return;
          this.head = position.head;
          this.#startId = position.head?.id ?? null;
          this.values = this.stored = position.values;
          this.writes = smallMapBy(position.writes, ({ task }) => task);
          this.attempt.noteStartPosition(position);
          this.attempt.stateRead(this);
          this.#execution = this.origin.open(position);
        }),
      // A run that is stopped before it starts applies no input.
      () =>
        stopped || this.#isPlanningAborted
          ? self.send({ type: "PLANNED", tasks: [], hold: false })
          : this.next(),
    );
  }

  /**
   * Records a failure. The first failure becomes the graph's error. `refused`: whether the failure is a refused answer.
   */
  fail(error: PlainError, refused = false): void {
    this.failure ??= error;
    if (!refused) this.hasFailedTask = true;
  }

  /**
   * Makes the graph fail after the first step: the input is stored, so that a later run can resume, and no node runs.
   */
  failAfterFirstStep(error: PlainError): void {
    this.#failAfter = error;
  }

  /** Ends the execution: from now on it writes nothing to the log or the storage. */
  revoke(): void {
    this.#isOver = true;
    this.tasks.revoke();
    this.#execution?.abandon?.();
  }

  /** Asks the engine for the first or the next step. The previous step need not be stored yet. */
  next(): void {
    if (this.failure !== null) return this.#failed();
    // The server is stopping, and tasks that were to join the step were not started, so the run pauses. The engine is
    // still asked for the next step, because a LangGraph.js graph may end without these tasks. If the graph does not
    // end, `apply` never resolves.
    if (this.#isPaused) {
      this.attempt.flushSoon();
      this.#pause();
    }
    this.#guarded(
      () =>
        andThen(this.#hasBegun ? this.execution.apply() : this.execution.begin(), (step) => {
          if (this.alive) this.applyStep(step);
        }),
      () => {
        if (this.failure !== null || this.#failAfter !== null) this.#failed();
        else if (this.plan !== null) this.#planned(this.plan);
      },
    );
  }

  /** Asks the engine to stop computing a step, because the run was stopped. */
  abortPlanning(): void {
    this.#isPlanningAborted = true;
    this.#execution?.abortPlanning?.();
  }

  #failed(): void {
    const error = this.#failAfter ?? this.failure;
    if (error === null) throw new TypeError(`Run ${this.attempt.run.run_id} has not failed`);
    this.failure = error;
    this.#planned({ kind: "failed", error });
  }

  #guarded(work: () => void | Promise<void>, then: () => void): void {
    const fail = (thrown: unknown) => {
      this.failure = toPlainError(thrown);
      this.isRefused = !this.hasEntered && isRefusal(thrown);
      if (this.alive) then();
    };
    let pending: void | Promise<void>;
    try {
      pending = work();
    } catch (thrown) {
      return fail(thrown);
    }
    if (pending instanceof Promise) pending.then(() => this.alive && then(), fail);
    else then();
  }

  applyStep(step: EngineStep): void {
    const head = step.checkpoints.at(-1);
    if (head !== undefined) {
      this.head = head;
      this.stored = step.values;
      if (this.writes.size > 0) this.writes = new SmallMap();
    }
    for (const writes of step.writes) this.#setWrites(writes);
    this.values = step.values;
    if (step.checkpoints.length > 0) this.attempt.stateChanged(step.checkpoints);
    this.plan = step.plan;
    if (step.plan.kind === "failed") this.failure = step.plan.error;
    else this.hasEntered = true;
    const { pending } = this.attempt;
    // False for a step that a stop has cut short: its tasks, and the writes of their subgraphs, are kept for the run
    // that continues the step.
    const closed = step.plan.kind !== "done" || step.checkpoints.at(-1)?.next.length === 0;
    pending.addCheckpoints(this.origin.ns, step.checkpoints, closed);
    for (const writes of step.writes) pending.addWrites(writes);
    if (step.taken !== undefined) pending.taken.push(...step.taken);
    pending.emissions.push(...step.emissions);
  }

  #setWrites(writes: PendingTaskWrites): void {
    this.attempt.writesChanged(this.writes.get(writes.task), writes);
    this.writes.set(writes.task, writes);
  }

  #planned(plan: Plan): void {
    const first = !this.#hasBegun;
    this.#hasBegun = true;
    if (plan.kind !== "tasks") {
      this.actor?.send({ type: "PLANNED", tasks: [], hold: false });
      return;
    }
    const { durability } = this.attempt.run.kwargs;
    // A step that has processed events of queued runs is urgent, because storing it ends those runs.
    const isUrgent = durability === "sync" || this.attempt.pending.taken.length > 0;
    // The first step adds nothing that must survive a crash: the admission has stored the input.
    if (!isUrgent && (first || durability === "exit")) this.attempt.flushSoon();
    else this.#commit();
    if (this.liveThread.owner.draining) return this.#pause();
    this.actor?.send({ type: "PLANNED", tasks: plan.tasks, hold: this.#commits > this.#maxCommitsInFlight });
  }

  #pause(): void {
    this.#isPaused = true;
    this.actor?.send({ type: "PAUSED" });
    this.attempt.checkHalted();
  }

  /** The most commits that may be in flight while the next step runs. */
  get #maxCommitsInFlight(): number {
    return this.attempt.run.kwargs.durability === "sync" ? 0 : 1;
  }

  /** Stores the step durably, so that it survives a power cut. */
  #commit(): void {
    this.#commits++;
    this.attempt.flush("stepped", true).then(
      () => {
        this.#commits--;
        // The execution may have ended while the step was stored.
        if (this.alive && this.#commits <= this.#maxCommitsInFlight) this.actor?.send({ type: "COMMITTED" });
      },
      // If the write failed, the live thread has failed with it. Recovery continues the run.
      () => undefined,
    );
  }

  /** Adds tasks while others run, for a graph that plans its own steps (LangGraph.js). */
  addTasks(tasks: readonly JoiningTask[]): void {
    const hold = this.liveThread.owner.draining;
    this.tasks.join(tasks, hold);
    if (hold) return this.#pause();
    const own = tasks.filter(({ within }) => within === null);
    if (own.length > 0) this.actor?.send({ type: "JOINED", tasks: own });
  }

  /** Ends the execution, and takes what a graph that plans its own steps (LangGraph.js) still has to store. */
  end(stop: StopReason | null): Eventually<void> {
    if (this.#execution?.end === undefined) return undefined;
    return andThen(this.#execution.end(stop !== null), (step) => {
      if (step !== null && this.attempt.alive) this.applyStep(step);
    });
  }

  /**
   * Adds a result of `ctx.step` to the writes of a task. `writes`: all pending writes of the task, with the result. The
   * caller MUST have added pending writes of the task at this checkpoint before ({@link addTaskWrites}), because this
   * method stores only the result.
   */
  addStepResult(writes: PendingTaskWrites, step: string, value: unknown): void {
    this.attempt.stepResultAdded(value);
    this.writes.set(writes.task, writes);
    this.attempt.pending.addStepResult(writes, step, value);
  }

  addTaskWrites(writes: PendingTaskWrites, emissions: readonly Emission[]): void {
    this.#setWrites(writes);
    const { pending } = this.attempt;
    pending.addWrites(writes);
    pending.emissions.push(...emissions);
  }
}

/** Whether an error says that the answer (`resume`) of a run was refused. */
const isRefusal = (thrown: unknown): boolean =>
  thrown instanceof ServiceError && thrown.code.startsWith("resume.");
