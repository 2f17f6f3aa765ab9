import type { AnyActorRef } from "xstate";
import type { CheckpointHead, NewCheckpoint, TaskWrites } from "../../src/model/checkpoint.ts";
import { plainError, type PlainError } from "../../src/model/errors.ts";
import { width, type Fact } from "../../src/model/event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { CancelAction, RunRecord } from "../../src/model/run.ts";
import type { Emission, Execution, Plan, Step } from "../../src/ports/engine.ts";
import { andThen } from "../../src/ports/eventually.ts";
import type { Sink } from "../../src/ports/sink.ts";
import { gone, type Cell } from "../thread/cell.ts";
import { MARK, progressed } from "../thread/record.ts";
import { close, type Ending } from "./closing.ts";
import { cutStep } from "./cutting.ts";
import type { Ongoing } from "./ongoing.ts";
import { Tasks, type TaskOwner } from "./tasks.ts";

/** What a step leaves to be stored, until an append takes it along. */
interface Staged {
  checkpoints: NewCheckpoint[];
  writes: Map<string, TaskWrites>;
  emissions: Emission[];
}

/** Room kept below the mark, so that a raise is on its way before an id reaches it. */
const HEADROOM = 1_024;

/**
 * One attempt of one run: everything about it that is no message. It drives the execution, gathers what is to be stored
 * into as few appends as the promises allow, and is dead once revoked: a straggler can no longer write or publish.
 */
export class Attempt implements Ongoing, Ending, TaskOwner {
  readonly cell: Cell;
  readonly id: string;
  readonly epoch: number;
  readonly sink: Sink;
  readonly #tasks: Tasks;
  actor: AnyActorRef | undefined;
  /** Why the run has failed, once it has. */
  failure: PlainError | null = null;
  plan: Plan | null = null;
  head: CheckpointHead | null = null;
  values: JsonObject = {};
  /** What tasks have left at the head. */
  writes = new Map<string, TaskWrites>();
  halted = false;
  #execution: Execution | undefined;
  #begun = false;
  #staged: Staged = { checkpoints: [], writes: new Map(), emissions: [] };
  #flushing = false;
  #commits = 0;
  /** What tasks had left where the run began, until it is noted in the run's record. */
  #before: readonly TaskWrites[] | null = null;
  flushed: Promise<void> = Promise.resolve();
  #alive = true;

  constructor(cell: Cell, run: RunRecord, sink: Sink, epoch: number) {
    this.cell = cell;
    this.id = run.run_id;
    this.epoch = epoch;
    this.sink = sink;
    this.#tasks = new Tasks(this);
  }

  get run(): RunRecord {
    const run = this.cell.runs.get(this.id);
    if (run === undefined) throw new TypeError(`Run ${this.id} has no record`);
    return run;
  }

  get alive(): boolean {
    return this.#alive && this.cell.alive && this.epoch === this.cell.record.epoch;
  }

  get loaded(): boolean {
    return this.#execution !== undefined;
  }
  get execution(): Execution {
    if (this.#execution === undefined) throw new TypeError(`Run ${this.id} is not loaded`);
    return this.#execution;
  }

  load(self: AnyActorRef, stopped: boolean): void {
    this.actor = self;
    if (this.failure !== null) return this.next();
    this.#guarded(
      () =>
        andThen(this.cell.position(), (position) => {
          this.head = position.head;
          this.values = position.values;
          if (this.run.attempt === 1) this.#before = position.writes;
          this.writes = new Map(position.writes.map((writes) => [writes.task, writes]));
          this.#execution = this.cell.deps.engine.open(this.run, position, this.cell.source());
        }),
      // A run that was stopped before it began applies no input.
      () => (stopped ? self.send({ type: "PLANNED", tasks: [], hold: false }) : this.next()),
    );
  }

  execute(task: string, self: AnyActorRef): void {
    this.#tasks.execute(task, self);
  }

  abort(): void {
    this.#tasks.abort("The run was stopped");
  }

  /** The first failure is the run's. */
  fail(error: PlainError): void {
    this.failure ??= error;
  }

  close(stop: CancelAction | null): void {
    const cut = stop === "interrupt" ? cutStep(this, this.#execution, this.#tasks.streamed()) : null;
    if (cut !== null) this.#take(cut);
    this.#tasks.revoke();
    if (stop === "rollback") this.#staged = { checkpoints: [], writes: new Map(), emissions: [] };
    close(this, stop);
    // What a straggler stages now comes too late for the run's last append.
    this.#alive = false;
  }

  /** Computes the next step. What the last one left goes to storage on the way. */
  next(): void {
    if (this.failure !== null) return this.#planned({ kind: "failed", error: this.failure });
    this.#guarded(
      () =>
        andThen(this.#begun ? this.execution.apply() : this.execution.begin(), (step) => this.#take(step)),
      () => {
        if (this.failure !== null) this.#planned({ kind: "failed", error: this.failure });
        else if (this.plan !== null) this.#planned(this.plan);
      },
    );
  }

  #guarded(work: () => void | Promise<void>, then: () => void): void {
    const fail = (thrown: unknown) => {
      this.failure = plainError(thrown);
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

  #take(step: Step): void {
    const head = step.checkpoints.at(-1);
    if (head !== undefined) {
      this.head = head;
      this.writes = new Map();
      // The step is closed: what its tasks left is in the checkpoint.
      this.#staged.writes.clear();
    }
    for (const writes of step.writes) this.writes.set(writes.task, writes);
    this.values = step.values;
    this.plan = step.plan;
    if (step.plan.kind === "failed") this.failure = step.plan.error;
    this.#staged.checkpoints.push(...step.checkpoints);
    for (const writes of step.writes) this.#staged.writes.set(key(writes), writes);
    this.#staged.emissions.push(...step.emissions);
  }

  #planned(plan: Plan): void {
    const first = !this.#begun;
    this.#begun = true;
    if (plan.kind !== "tasks") {
      this.actor?.send({ type: "PLANNED", tasks: [], hold: false });
      return;
    }
    const sync = this.run.kwargs.durability === "sync";
    // A run's first step stores nothing that its admission has not: if it ends at once, its end takes it along.
    if (first && !sync) this.flushSoon();
    else this.#commit();
    if (this.cell.owner.draining) {
      this.halted = true;
      return this.cell.owner.halted(this.cell);
    }
    this.actor?.send({ type: "PLANNED", tasks: plan.tasks, hold: this.#commits > (sync ? 0 : 1) });
  }

  /** Stores the step, acknowledged. Computing goes on, never more than one step ahead; not at all when `sync`. */
  #commit(): void {
    this.#commits++;
    this.flush("stepped", true).then(
      () => {
        this.#commits--;
        // The run may have come to its end meanwhile.
        if (!this.alive) return;
        const ahead = this.run.kwargs.durability === "sync" ? 0 : 1;
        if (this.#commits <= ahead) this.actor?.send({ type: "COMMITTED" });
      },
      // The cell has been given up with its actors; recovery takes the run up.
      () => undefined,
    );
  }

  /** Adds what a task left, and what is to be told. */
  stage(writes: TaskWrites | undefined, emissions: readonly Emission[]): void {
    if (writes !== undefined) {
      this.writes.set(writes.task, writes);
      this.#staged.writes.set(key(writes), writes);
    }
    this.#staged.emissions.push(...emissions);
  }

  /** Stores what is staged after this turn, unless another append has taken it along by then. */
  flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.cell.deps.scheduler.soon(() => {
      this.#flushing = false;
      this.flushNow();
    });
  }

  flushNow(): void {
    const { checkpoints, writes, emissions } = this.#staged;
    if (!this.alive || (checkpoints.length === 0 && writes.size === 0 && emissions.length === 0)) return;
    this.flush("advanced", false).catch(() => undefined);
  }

  flush(kind: string, durable: boolean): Promise<void> {
    if (!this.alive) return Promise.reject(gone());
    const { checkpoints, writes, events } = this.collect();
    const head = checkpoints.at(-1);
    const runs = this.#note(writes, durable && head !== undefined);
    const change = { kind, durable, checkpoints, writes, runs, ...(events && { events }) };
    const stored = this.cell
      .write(change, (thread) =>
        head === undefined
          ? thread
          : { ...thread, checkpoint: head.id, state_updated_at: this.cell.deps.clock.now() },
      )
      .then(() => {
        if (events !== undefined) this.sink.stored(events);
      });
    this.flushed = stored.catch(() => undefined);
    return stored;
  }

  #note(writes: readonly TaskWrites[], progress: boolean): readonly RunRecord[] {
    const { run } = this;
    let noted = progress ? progressed(run) : run;
    // What tasks had left is about to be overwritten: a rollback will want it back.
    if (this.#before !== null && writes.some(({ checkpoint }) => checkpoint === run.base_checkpoint)) {
      noted = { ...noted, base_writes: this.#before };
      this.#before = null;
    }
    if (noted === run) return [];
    this.cell.runs.set(this.id, noted);
    return [noted];
  }

  /** Hands over everything staged, its facts in the log's next chunk. */
  collect() {
    const { checkpoints, writes, emissions } = this.#staged;
    this.#staged = { checkpoints: [], writes: new Map(), emissions: [] };
    for (const { fact, values, head } of emissions) this.sink.emit(fact, values, head);
    return { checkpoints, writes: [...writes.values()], events: this.sink.take() };
  }

  /** A fact from a node body. What is staged goes first, so that the log keeps the order of events. */
  emit(fact: Fact): number {
    if (!this.alive) return -1;
    if (this.#staged.emissions.length > 0) this.flushNow();
    const id = this.sink.emit(fact);
    if (id >= 0) this.#keepMark(id + width(fact));
    return id;
  }

  /** The mark is stored before any id reaches it: ids of an attempt after a power cut start there. */
  #keepMark(next: number): void {
    const run = this.run;
    if (next + HEADROOM < run.event_mark) return;
    const raised = { ...run, event_mark: next + MARK };
    this.cell.runs.set(this.id, raised);
    this.cell
      .write({ kind: "marked", durable: true, runs: [raised] }, (thread) => thread)
      .catch(() => undefined);
  }

  /** From here on nothing of this attempt reaches the log or the storage. */
  revoke(): void {
    this.#alive = false;
    this.#tasks.revoke();
  }
}

function key(writes: TaskWrites): string {
  return `${writes.checkpoint} ${writes.task}`;
}
