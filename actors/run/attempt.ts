import type { AnyActorRef } from "../xstate.ts";
import type { CheckpointHead, TaskWrites } from "../../src/model/checkpoint.ts";
import { plainError, type PlainError } from "../../src/model/errors.ts";
import { width, type Fact } from "../../src/model/run-event.ts";
import { Few } from "../../src/model/small-map.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { changeRun, type Stop, type RunRecord } from "../../src/model/run.ts";
import { changeThread } from "../../src/model/thread.ts";
import type { Emission, NodeCall, Plan, Position, Step } from "../../src/ports/engine.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";
import type { Sink } from "../../src/ports/sink.ts";
import { gone, type Cell } from "../thread/live-thread.ts";
import { MARK, progressed } from "../thread/record-changes.ts";
import { leftAt, overwritten } from "./rollback-base.ts";
import { close, type Ending } from "./run-end.ts";
import { positionFor } from "./start-position.ts";
import { InnerOrigin } from "./subgraph-origin.ts";
import { Level, type LevelOwner, type Origin } from "./graph-execution.ts";
import { limitTime } from "./time-limit.ts";
import type { Ongoing, OngoingGraph } from "./attempt-handle.ts";
import { AttemptStage } from "./attempt-engine-host.ts";
import { Staged } from "./pending-commit.ts";
import type { Ended } from "./task-runner.ts";

/**
 * Event ids: the mark is raised when fewer than this many ids are left below it, so that the raise is stored in time.
 */
const HEADROOM = 1_024;

/**
 * One attempt to execute a run: its graphs, its log, and its writes to storage. It batches the writes of its graphs
 * into as few appends as the durability mode allows. After `revoke` it writes and publishes nothing, so a node that
 * is still running cannot change anything.
 */
export class Attempt implements Ongoing, Ending, LevelOwner {
  readonly cell: Cell;
  readonly id: string;
  readonly epoch: number;
  readonly sink: Sink;
  readonly levels = new Few<string, Level>();
  readonly #root: Level;
  /** True for durability `exit`: checkpoints and writes are stored only when the run ends. */
  readonly #atExit: boolean;
  readonly #staged: Staged;
  #flushing = false;
  /**
   * Writes, by checkpoint id, that tasks had stored at checkpoints of earlier runs that this run continues from. An
   * entry is removed when it is noted in the run's record.
   */
  #before: Map<string, readonly TaskWrites[]> | null = null;
  flushed: Promise<void> = Promise.resolve();
  #alive = true;
  /** The run has ended, and its end is being stored. */
  #closing = false;
  /** Cancels the timer of the run's time limit. */
  #timer: Cancel | null = null;

  constructor(cell: Cell, run: RunRecord, sink: Sink, epoch: number) {
    this.cell = cell;
    this.id = run.run_id;
    this.epoch = epoch;
    this.sink = sink;
    this.#atExit = run.kwargs.durability === "exit";
    this.#staged = new Staged(this.#atExit);
    this.#root = new Level(this, this.#origin());
  }

  #origin(): Origin {
    const { cell } = this;
    const { engine } = cell.deps;
    return {
      ns: "",
      position: () => {
        this.#timer = limitTime(this.run, cell.deps, () => {
          this.actor?.send({ type: "CANCEL", action: "timeout" });
        });
        return positionFor(cell, this.run);
      },
      open: (position) =>
        engine.open(this.run, position, cell.source(), new AttemptStage(this, this.#root, this.#staged)),
      close: (_, stop) => this.#close(stop),
    };
  }

  get run(): RunRecord {
    const run = this.cell.runs.get(this.id);
    if (run === undefined) throw new TypeError(`Run ${this.id} has no record`);
    return run;
  }

  get alive(): boolean {
    return this.#alive && this.cell.alive && this.epoch === this.cell.record.epoch;
  }

  graph(within: string | null): OngoingGraph | undefined {
    return within === null ? this.#root : this.levels.get(within);
  }

  // --- the root graph, for `run-end.ts` ---

  get actor(): AnyActorRef | undefined {
    return this.#root.actor;
  }
  get loaded(): boolean {
    return this.#root.loaded;
  }
  get elsewhere(): boolean {
    const { entered, head } = this.#root;
    return !entered && (head?.id ?? null) !== this.cell.record.checkpoint;
  }
  get failure(): PlainError | null {
    return this.#root.failure;
  }
  get broke(): boolean {
    return this.#root.broke;
  }
  get isRefused(): boolean {
    return this.#root.isRefused;
  }
  get plan(): Plan | null {
    return this.#root.plan;
  }
  get head(): CheckpointHead | null {
    return this.#root.head;
  }
  get values(): JsonObject {
    return this.#root.values;
  }
  get stored(): JsonObject {
    return this.#root.stored;
  }
  get writes(): ReadonlyMap<string, TaskWrites> {
    return this.#root.writes;
  }

  /** Records a failure. The first one becomes the run's error. */
  fail(error: PlainError): void {
    this.#root.fail(error);
  }

  /** The run applies its input, or resumes, and then fails with this error before any node runs. */
  giveUp(error: PlainError): void {
    this.#root.giveUp(error);
  }

  #close(stop: Stop | null): void {
    this.#timer?.();
    this.#closing = true;
    const ended = this.#root.end(stop);
    if (!(ended instanceof Promise)) return this.#closed(stop);
    ended
      .catch((thrown: unknown) => this.fail(plainError(thrown)))
      .then(() => {
        if (this.alive) this.#closed(stop);
      })
      .catch((thrown: unknown) => this.cell.giveUp(thrown));
  }

  #closed(stop: Stop | null): void {
    // It was parked for the next start meanwhile.
    if (!this.alive) return;
    const cut = stop === "interrupt" ? this.#root.cut() : null;
    if (cut !== null) this.#root.take(cut);
    this.#root.tasks.revoke();
    if (stop === "rollback") this.#staged.clear();
    close(this, stop);
    // Writes of nodes that are still running come too late for the run's last append.
    this.#alive = false;
  }

  // --- writes of its graphs ---

  found({ head, writes }: Position): void {
    const { run } = this;
    if (head === null || head.run_id === run.run_id) return;
    // An earlier attempt has noted these writes, before it changed anything there.
    if (run.base_writes?.some(({ checkpoint }) => checkpoint === head.id)) return;
    (this.#before ??= new Map()).set(head.id, leftAt(head, writes));
  }

  enter(above: Level, call: NodeCall, before: Position | undefined, ended: Ended): Level {
    const inner = new Level(this, new InnerOrigin(above, call, before, ended));
    this.levels.set(call.task, inner);
    return inner;
  }

  take({ origin }: Level, { checkpoints, writes, emissions, plan }: Step): void {
    // A step cut short by a stop keeps its tasks, and what their subgraphs did, for the run that continues it.
    const closed = plan.kind !== "done" || checkpoints.at(-1)?.next.length === 0;
    this.#staged.take(origin.ns, checkpoints, closed);
    for (const left of writes) this.#staged.put(left);
    this.#staged.emissions.push(...emissions);
  }

  stage(writes: TaskWrites | undefined, emissions: readonly Emission[]): void {
    if (writes !== undefined) this.#staged.put(writes);
    this.#staged.emissions.push(...emissions);
  }

  drop(ns: string): void {
    this.#staged.drop(ns);
  }

  // --- graceful shutdown ---

  /**
   * True when every graph is paused, or waits only for paused subgraphs. A node that runs beside a paused graph may
   * finish first.
   */
  get isHalted(): boolean {
    if (!this.alive || this.#closing || !this.#root.isHalted) return false;
    for (const level of this.levels.values()) if (!level.isHalted) return false;
    return true;
  }

  checkHalted(): void {
    if (this.isHalted) this.cell.owner.halted(this.cell);
  }

  leave(isCutOff: boolean): Promise<void> {
    // The end of the run is being stored: nothing may be written about the run after it.
    if (this.cell.record.active !== this.id) return Promise.resolve();
    this.flushNow();
    const left = changeRun(this.run, {
      parked: this.run.parked + 1,
      cancel: this.run.cancel ?? (isCutOff ? "interrupt" : null),
    });
    this.cell.runs.set(this.id, left);
    const stored = this.cell.write({ kind: "left", durable: true, runs: [left] }, (thread) => thread);
    this.revoke();
    return stored;
  }

  // --- storage ---

  /** Stores the pending writes after this turn, unless another append includes them first. */
  flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.cell.deps.scheduler.soon(() => {
      this.#flushing = false;
      this.flushNow();
    });
  }

  flushNow(): void {
    if (!this.alive || this.#staged.empty) return;
    this.flush("advanced", false).catch(() => undefined);
  }

  flush(kind: string, durable: boolean): Promise<void> {
    if (!this.alive) return Promise.reject(gone());
    const { checkpoints, writes, events } = this.#collect(this.#atExit);
    if (this.#atExit && events === undefined) return Promise.resolve();
    const head = checkpoints.findLast(({ ns }) => ns === "");
    const runs = this.#note(writes, durable && checkpoints.length > 0);
    const change = { kind, durable, checkpoints, writes, runs, events };
    const stored = this.cell
      .write(change, (thread) =>
        head === undefined
          ? thread
          : changeThread(thread, { checkpoint: head.id, state_updated_at: this.cell.deps.clock.now() }),
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
    const base = overwritten(this.#before, writes);
    if (base.length > 0) noted = changeRun(noted, { base_writes: [...(run.base_writes ?? []), ...base] });
    if (noted === run) return [];
    this.cell.runs.set(this.id, noted);
    return [noted];
  }

  /** Takes all pending writes for the run's last append, and the log's next chunk with their facts. */
  collect() {
    return this.#collect(false);
  }

  #collect(eventsAlone: boolean) {
    const { checkpoints, writes, emissions } = this.#staged.hand(eventsAlone);
    for (const { fact, values, head } of emissions) this.sink.emit(fact, values, head);
    return { checkpoints, writes, events: this.sink.take() };
  }

  /** Emits a fact from a node. Pending emissions go first, so that the log keeps the order of events. */
  emit(fact: Fact): number {
    if (!this.alive) return -1;
    if (this.#staged.emissions.length > 0) this.flushNow();
    const id = this.sink.emit(fact);
    if (id >= 0) this.#keepMark(id + width(fact));
    return id;
  }

  /**
   * Raises the event mark. It is stored before any event id reaches it: after a power cut, the next attempt numbers
   * its events from the mark.
   */
  #keepMark(next: number): void {
    const run = this.run;
    if (next + HEADROOM < run.event_mark) return;
    const raised = changeRun(run, { event_mark: next + MARK });
    this.cell.runs.set(this.id, raised);
    this.cell
      .write({ kind: "marked", durable: true, runs: [raised] }, (thread) => thread)
      .catch(() => undefined);
  }

  /** Ends the attempt: from now on it writes nothing to the log or the storage. */
  revoke(): void {
    this.#timer?.();
    this.#alive = false;
    this.#root.revoke();
  }
}
