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

/** The attempt to which a level belongs: it stores what the levels leave. */
export interface LevelOwner {
  readonly cell: Cell;
  readonly run: RunRecord;
  readonly alive: boolean;
  /** Its graphs at work below the root, by the task whose node they are. */
  readonly levels: Few<string, Level>;
  /** Remembers what tasks have left where a level begins, in case this run changes it. */
  found(position: Position): void;
  /** A graph that is the node of one of a level's tasks, for one try of that. */
  enter(above: Level, call: NodeCall, before: Position | undefined, ended: Ended): Level;
  take(level: Level, step: Step): void;
  stage(writes: TaskWrites | undefined, emissions: readonly Emission[]): void;
  /** Drops what is staged of a namespace and those below it. */
  drop(ns: string): void;
  emit(fact: Fact): number;
  flush(kind: string, durable: boolean): Promise<void>;
  flushSoon(): void;
  /** A graph of it may have come to a halt. */
  checkHalted(): void;
}

/** Where a level comes from, and where its end goes. */
export interface Origin {
  readonly ns: string;
  position(): Eventually<Position>;
  open(position: Position): Execution;
  close(level: Level, stop: Stop | null): void;
}

/**
 * One graph of an attempt: the root, or one that is a task's node. It drives the graph's execution, step by step, as its
 * chart asks, and hands to the attempt what has to be stored. All that is no message is here.
 */
export class Level implements TaskOwner {
  readonly attempt: LevelOwner;
  readonly cell: Cell;
  readonly origin: Origin;
  readonly tasks: Tasks;
  actor: AnyActorRef | undefined;
  /** Has it applied its input, or gone on from where it began? */
  entered = false;
  /** Why it has failed, once it has. */
  failure: PlainError | null = null;
  /** Did a task of it fail, for more than a refused answer? */
  broke = false;
  /** Was its answer refused before anything was done? */
  isRefused = false;
  plan: Plan | null = null;
  /** Why it is to go no further than its first step. */
  #givenUp: PlainError | null = null;
  head: CheckpointHead | null = null;
  values: JsonObject = {};
  /** The state as it is stored at the head: what a failed or paused step made of it without a checkpoint is not. */
  stored: JsonObject = {};
  /** What tasks have left at the head. */
  writes = new Few<string, TaskWrites>();
  #execution: Execution | undefined;
  /** The checkpoint from which it began. */
  #first: string | null = null;
  #begun = false;
  #commits = 0;
  /** The server stops: tasks that are planned do not begin. */
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

  /** Is it held back, or does it wait for nothing but graphs within? */
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

  /** Did this attempt make the checkpoint at which it stands? */
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
      // A run that was stopped before it began applies no input.
      () => (stopped ? self.send({ type: "PLANNED", tasks: [], hold: false }) : this.next()),
    );
  }

  /** What its tasks had streamed when the run was stopped. */
  streamed(): ReadonlyMap<string, readonly StreamedFact[]> {
    return this.tasks.streamed();
  }

  /** The run is stopped: what is kept of what its tasks had begun to say. */
  cut(): Step | null {
    return cutStep(this, this.#execution, this.streamed());
  }

  execute(task: string, self: AnyActorRef): void {
    this.tasks.execute(task, self);
  }

  abort(): void {
    this.tasks.abort("The run was stopped");
  }

  /** The first failure is the graph's. */
  fail(error: PlainError, refused = false): void {
    this.failure ??= error;
    if (!refused) this.broke = true;
  }

  /** It fails as soon as it has begun: its input is kept, to be gone on with, and no node runs. */
  giveUp(error: PlainError): void {
    this.#givenUp = error;
  }

  close(stop: Stop | null): void {
    this.origin.close(this, stop);
  }

  /** From here on nothing of it reaches the log or the storage. */
  revoke(): void {
    this.#over = true;
    this.tasks.revoke();
    this.#execution?.abandon?.();
  }

  enter(call: NodeCall, before: Position | undefined, ended: Ended): Level {
    return this.attempt.enter(this, call, before, ended);
  }

  /** Computes the next step. What the last one left goes to storage on the way. */
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
    // The first step stores nothing that the admission has not: if the run ends at once, its end takes it along.
    if (durability === "exit" || (first && durability !== "sync")) this.attempt.flushSoon();
    else this.#commit();
    if (this.cell.owner.draining) return this.#hold();
    this.actor?.send({ type: "PLANNED", tasks: plan.tasks, hold: this.#commits > this.#ahead });
  }

  #hold(): void {
    this.#isHeld = true;
    this.attempt.checkHalted();
  }

  /** Commits that may be in flight while the next step runs. */
  get #ahead(): number {
    return this.attempt.run.kwargs.durability === "sync" ? 0 : 1;
  }

  /** Stores the step, acknowledged. Computing goes on, never more than one step ahead; not at all when `sync`. */
  #commit(): void {
    this.#commits++;
    this.attempt.flush("stepped", true).then(
      () => {
        this.#commits--;
        // It may have come to its end meanwhile.
        if (this.alive && this.#commits <= this.#ahead) this.actor?.send({ type: "COMMITTED" });
      },
      // The cell has been given up with its actors; recovery takes the run up.
      () => undefined,
    );
  }

  /** Tasks come up while others run: its graph drives itself. */
  join(tasks: readonly JoiningTask[]): void {
    const hold = this.cell.owner.draining;
    this.tasks.join(tasks, hold);
    if (hold) return this.#hold();
    const own = tasks.filter(({ within }) => within === null);
    if (own.length > 0) this.actor?.send({ type: "JOINED", tasks: own });
  }

  /** The run comes to its end: what a graph that drives itself has left to be stored. */
  end(stop: Stop | null): Eventually<void> {
    if (this.#execution?.end === undefined) return undefined;
    return andThen(this.#execution.end(stop !== null), (step) => {
      if (step !== null && this.attempt.alive) this.take(step);
    });
  }

  /** Adds what a task left, and what is to be told. */
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

/** Does it say that what a run brings answers no question? */
const isRefusal = (thrown: unknown): boolean =>
  thrown instanceof ServiceError && thrown.code.startsWith("resume.");
