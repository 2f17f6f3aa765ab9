import type { AnyActorRef } from "../xstate.ts";
import type { CheckpointHead, TaskWrites } from "../../src/model/checkpoint.ts";
import { plainError, type PlainError, ServiceError } from "../../src/model/errors.ts";
import { Few, fewBy } from "../../src/model/small-map.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Stop, RunRecord } from "../../src/model/run.ts";
import type {
  Emission,
  Execution,
  NodeCall,
  Plan,
  Position,
  Step,
  StreamedFact,
} from "../../src/ports/engine.ts";
import type { JoiningTask } from "../../src/ports/engine-host.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import type { Cell } from "../thread/live-thread.ts";
import { cutStep } from "./partial-step.ts";
import { Tasks, type Ended, type TaskOwner } from "./task-runner.ts";

/** The attempt that a graph execution belongs to: it stores what the graphs produce. */
export interface LevelOwner {
  readonly cell: Cell;
  readonly run: RunRecord;
  readonly alive: boolean;
  /** Subgraphs in progress, by the id of the task whose node they are. */
  readonly levels: Few<string, Level>;
  /** Remembers the writes of the checkpoint that a graph starts from, in case this run changes them. */
  found(position: Position): void;
  /** Starts a subgraph as the node of a task, for one try of that task. */
  enter(above: Level, call: NodeCall, before: Position | undefined, ended: Ended): Level;
  take(level: Level, step: Step): void;
  stage(writes: TaskWrites | undefined, emissions: readonly Emission[]): void;
  /** Drops pending writes of a namespace and of those below it. */
  drop(ns: string): void;
  emit(fact: Fact): number;
  flush(kind: string, durable: boolean): Promise<void>;
  flushSoon(): void;
  /** Checks whether all graphs have come to a halt now. */
  checkHalted(): void;
}

/** How a graph execution starts and ends: differs between the root graph and a subgraph. */
export interface Origin {
  readonly ns: string;
  position(): Eventually<Position>;
  open(position: Position): Execution;
  close(level: Level, stop: Stop | null): void;
}

/**
 * The execution of one graph of an attempt: the root graph, or a subgraph that is a task's node. It steps the engine
 * as the run statechart asks, and hands the attempt what has to be stored.
 */
export class Level implements TaskOwner {
  readonly attempt: LevelOwner;
  readonly cell: Cell;
  readonly origin: Origin;
  readonly tasks: Tasks;
  actor: AnyActorRef | undefined;
  /** True once it has applied its input, or has resumed from where it started. */
  entered = false;
  /** The error it failed with. */
  failure: PlainError | null = null;
  /** True when a task failed for another reason than a refused answer. */
  broke = false;
  /** True when the answer of the run was refused before anything was done. */
  isRefused = false;
  plan: Plan | null = null;
  /** The error to fail with after the first step. */
  #givenUp: PlainError | null = null;
  head: CheckpointHead | null = null;
  values: JsonObject = {};
  /** The state stored at the head. Changes by a failed or paused step that made no checkpoint are not in it. */
  stored: JsonObject = {};
  /** Writes of tasks at the head, by task id. */
  writes = new Few<string, TaskWrites>();
  #execution: Execution | undefined;
  /** The id of the checkpoint it started from. */
  #first: string | null = null;
  #begun = false;
  #commits = 0;
  /** True when the server is stopping: planned tasks do not start. */
  #isHeld = false;
  #over = false;

  constructor(attempt: LevelOwner, origin: Origin) {
    this.attempt = attempt;
    this.cell = attempt.cell;
    this.origin = origin;
    this.tasks = new Tasks(this);
  }

  get alive(): boolean {
    return !this.#over && this.attempt.alive;
  }

  /** True when it is paused, or waits only for subgraphs. */
  get isHalted(): boolean {
    return this.tasks.bodies === 0 && (this.#isHeld || this.tasks.isWithin);
  }

  get loaded(): boolean {
    return this.#execution !== undefined;
  }

  get execution(): Execution {
    if (this.#execution === undefined) throw new TypeError(`Run ${this.attempt.run.run_id} is not loaded`);
    return this.#execution;
  }

  /** True when this attempt made the checkpoint at its head. */
  get moved(): boolean {
    return this.head !== null && this.head.id !== this.#first;
  }

  get position(): Position {
    return { head: this.head, values: this.values, writes: [...this.writes.values()] };
  }

  load(self: AnyActorRef, stopped: boolean): void {
    this.actor = self;
    if (this.failure !== null) return this.next();
    this.#guarded(
      () =>
        andThen(this.origin.position(), (position) => {
          this.head = position.head;
          this.#first = position.head?.id ?? null;
          this.values = this.stored = position.values;
          this.writes = fewBy(position.writes, ({ task }) => task);
          this.attempt.found(position);
          this.#execution = this.origin.open(position);
        }),
      // A run that is stopped before it starts applies no input.
      () => (stopped ? self.send({ type: "PLANNED", tasks: [], hold: false }) : this.next()),
    );
  }

  /** The messages that its tasks had streamed when the run was stopped. */
  streamed(): ReadonlyMap<string, readonly StreamedFact[]> {
    return this.tasks.streamed();
  }

  /** The step that keeps the partial output of a stopped run; null when nothing is kept. */
  cut(): Step | null {
    return cutStep(this, this.#execution, this.streamed());
  }

  execute(task: string, self: AnyActorRef): void {
    this.tasks.execute(task, self);
  }

  abort(): void {
    this.tasks.abort("The run was stopped");
  }

  /** Records a failure. The first one becomes the graph's error. */
  fail(error: PlainError, refused = false): void {
    this.failure ??= error;
    if (!refused) this.broke = true;
  }

  /** Fails after the first step: the input is stored, so that a later run can resume, and no node runs. */
  giveUp(error: PlainError): void {
    this.#givenUp = error;
  }

  close(stop: Stop | null): void {
    this.origin.close(this, stop);
  }

  /** Ends the execution: from now on it writes nothing to the log or the storage. */
  revoke(): void {
    this.#over = true;
    this.tasks.revoke();
    this.#execution?.abandon?.();
  }

  enter(call: NodeCall, before: Position | undefined, ended: Ended): Level {
    return this.attempt.enter(this, call, before, ended);
  }

  /** Computes the next step. The result of the last one is stored meanwhile. */
  next(): void {
    if (this.failure !== null) return this.#failed();
    this.#guarded(
      () => andThen(this.#begun ? this.execution.apply() : this.execution.begin(), (step) => this.take(step)),
      () => {
        if (this.failure !== null || this.#givenUp !== null) this.#failed();
        else if (this.plan !== null) this.#planned(this.plan);
      },
    );
  }

  #failed(): void {
    const error = this.#givenUp ?? this.failure;
    if (error === null) throw new TypeError(`Run ${this.attempt.run.run_id} has not failed`);
    this.failure = error;
    this.#planned({ kind: "failed", error });
  }

  #guarded(work: () => void | Promise<void>, then: () => void): void {
    const fail = (thrown: unknown) => {
      this.failure = plainError(thrown);
      this.isRefused = !this.entered && isRefusal(thrown);
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

  take(step: Step): void {
    const head = step.checkpoints.at(-1);
    if (head !== undefined) {
      this.head = head;
      this.stored = step.values;
      if (this.writes.size > 0) this.writes = new Few();
    }
    for (const writes of step.writes) this.writes.set(writes.task, writes);
    this.values = step.values;
    this.plan = step.plan;
    if (step.plan.kind === "failed") this.failure = step.plan.error;
    else this.entered = true;
    this.attempt.take(this, step);
  }

  #planned(plan: Plan): void {
    const first = !this.#begun;
    this.#begun = true;
    if (plan.kind !== "tasks") {
      this.actor?.send({ type: "PLANNED", tasks: [], hold: false });
      return;
    }
    const { durability } = this.attempt.run.kwargs;
    // The first step adds nothing that must survive a crash: the admission has stored the input. If the run ends at
    // once, its last append includes the step.
    if (durability === "exit" || (first && durability !== "sync")) this.attempt.flushSoon();
    else this.#commit();
    if (this.cell.owner.draining) return this.#hold();
    this.actor?.send({ type: "PLANNED", tasks: plan.tasks, hold: this.#commits > this.#ahead });
  }

  #hold(): void {
    this.#isHeld = true;
    this.attempt.checkHalted();
  }

  /** The number of commits that may be in flight while the next step runs. */
  get #ahead(): number {
    return this.attempt.run.kwargs.durability === "sync" ? 0 : 1;
  }

  /**
   * Stores the step in a synced append. The next step may run meanwhile, but never more than one ahead; with `sync`,
   * none.
   */
  #commit(): void {
    this.#commits++;
    this.attempt.flush("stepped", true).then(
      () => {
        this.#commits--;
        // It may have ended meanwhile.
        if (this.alive && this.#commits <= this.#ahead) this.actor?.send({ type: "COMMITTED" });
      },
      // The live thread was given up; recovery takes the run up again.
      () => undefined,
    );
  }

  /** Adds tasks while others run, for a graph that drives itself. */
  join(tasks: readonly JoiningTask[]): void {
    const hold = this.cell.owner.draining;
    this.tasks.join(tasks, hold);
    if (hold) return this.#hold();
    const own = tasks.filter(({ within }) => within === null);
    if (own.length > 0) this.actor?.send({ type: "JOINED", tasks: own });
  }

  /** Ends the execution, and takes what a graph that drives itself still has to store. */
  end(stop: Stop | null): Eventually<void> {
    if (this.#execution?.end === undefined) return undefined;
    return andThen(this.#execution.end(stop !== null), (step) => {
      if (step !== null && this.attempt.alive) this.take(step);
    });
  }

  /** Adds the writes of a task, and its emissions. */
  stage(writes: TaskWrites, emissions: readonly Emission[]): void {
    this.writes.set(writes.task, writes);
    this.attempt.stage(writes, emissions);
  }

  emit(fact: Fact): number {
    return this.attempt.emit(fact);
  }

  flush(kind: string, durable: boolean): Promise<void> {
    return this.attempt.flush(kind, durable);
  }

  flushSoon(): void {
    this.attempt.flushSoon();
  }

  settled(): void {
    if (this.cell.owner.draining) this.attempt.checkHalted();
  }
}

/** True for an error that refuses the answer (`resume`) of a run. */
const isRefusal = (thrown: unknown): boolean =>
  thrown instanceof ServiceError && thrown.code.startsWith("resume.");
