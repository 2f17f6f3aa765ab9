import type { AnyActorRef } from "../xstate.ts";
import type { CheckpointHead, TaskWrites } from "../../src/model/checkpoint.ts";
import { toPlainError, type PlainError } from "../../src/model/errors.ts";
import { eventCountOf, type Fact } from "../../src/model/run-event.ts";
import { SmallMap } from "../../src/model/small-map.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { changeRun, type StopReason, type RunRecord } from "../../src/model/run.ts";
import { changeThread } from "../../src/model/thread.ts";
import type { Emission, NodeCall, Plan, Position, EngineStep } from "../../src/ports/engine.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";
import type { Sink } from "../../src/ports/sink.ts";
import { threadUnavailable, type LiveThread } from "../thread/live-thread.ts";
import { EVENT_MARK_STEP, afterProgress } from "../thread/record-changes.ts";
import { writesAt, replacedWrites } from "./rollback-writes.ts";
import { endRun, type EndingAttempt } from "./run-end.ts";
import { startPosition } from "./start-position.ts";
import { SubgraphOrigin } from "./subgraph-origin.ts";
import { GraphExecution, type GraphExecutionOwner, type GraphOrigin } from "./graph-execution.ts";
import { startTimeLimit } from "./time-limit.ts";
import type { AttemptHandle, GraphHandle } from "./attempt-handle.ts";
import { AttemptEngineHost } from "./attempt-engine-host.ts";
import { PendingCommit } from "./pending-commit.ts";
import type { OnSubgraphEnd } from "./task-runner.ts";

/**
 * Event ids: the mark is raised when fewer than this many ids are left below it, so that the raise is stored in time.
 */
const HEADROOM = 1_024;
/** Errors of nodes that an attempt remembers as logged. */
const MAX_LOGGED = 100;

/**
 * One attempt to execute a run: its graphs, its log, and its writes to storage. It batches the writes of its graphs
 * into as few appends as the durability mode allows. After `revoke` it writes and publishes nothing, so a node that
 * is still running cannot change anything.
 */
export class Attempt implements AttemptHandle, EndingAttempt, GraphExecutionOwner {
  readonly liveThread: LiveThread;
  readonly id: string;
  readonly epoch: number;
  readonly sink: Sink;
  readonly subgraphs = new SmallMap<string, GraphExecution>();
  readonly #root: GraphExecution;
  /** True for durability `exit`: checkpoints and writes are stored only when the run ends. */
  readonly #atExit: boolean;
  readonly #pending: PendingCommit;
  #flushing = false;
  /**
   * Writes, by checkpoint id, that tasks had stored at checkpoints of earlier runs that this run continues from. An
   * entry is removed when it is noted in the run's record.
   */
  #writesBefore: Map<string, readonly TaskWrites[]> | null = null;
  flushed: Promise<void> = Promise.resolve();
  /** Errors of nodes that are in the server's log already. */
  #logged: PlainError[] | null = null;
  #alive = true;
  /** The run has ended, and its end is being stored. */
  #closing = false;
  /** Cancels the timer of the run's time limit. */
  #timer: Cancel | null = null;

  constructor(liveThread: LiveThread, run: RunRecord, sink: Sink, epoch: number) {
    this.liveThread = liveThread;
    this.id = run.run_id;
    this.epoch = epoch;
    this.sink = sink;
    this.#atExit = run.kwargs.durability === "exit";
    this.#pending = new PendingCommit(this.#atExit);
    this.#root = new GraphExecution(this, this.#origin());
  }

  #origin(): GraphOrigin {
    const { liveThread } = this;
    const { engine } = liveThread.deps;
    return {
      ns: "",
      position: () => {
        this.#timer = startTimeLimit(this.run, liveThread.deps, () => {
          this.actor?.send({ type: "CANCEL", action: "timeout" });
        });
        return startPosition(liveThread, this.run);
      },
      open: (position) =>
        engine.open(
          this.run,
          position,
          liveThread.source(),
          new AttemptEngineHost(this, this.#root, this.#pending),
        ),
      close: (_, stop) => this.#close(stop),
    };
  }

  get run(): RunRecord {
    const run = this.liveThread.runs.get(this.id);
    if (run === undefined) throw new TypeError(`Run ${this.id} has no record`);
    return run;
  }

  get alive(): boolean {
    return this.#alive && this.liveThread.alive && this.epoch === this.liveThread.record.epoch;
  }

  graph(within: string | null): GraphHandle | undefined {
    return within === null ? this.#root : this.subgraphs.get(within);
  }

  // --- the root graph, for `run-end.ts` ---

  get actor(): AnyActorRef | undefined {
    return this.#root.actor;
  }
  get isLoaded(): boolean {
    return this.#root.isLoaded;
  }
  get neverReachedStart(): boolean {
    const { hasEntered, head } = this.#root;
    return !hasEntered && (head?.id ?? null) !== this.liveThread.record.checkpoint;
  }
  get failure(): PlainError | null {
    return this.#root.failure;
  }
  get hasFailedTask(): boolean {
    return this.#root.hasFailedTask;
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
  failAfterFirstStep(error: PlainError): void {
    this.#root.failAfterFirstStep(error);
  }

  noteLogged(error: PlainError): void {
    // Further ones are errors that the graph has caught: at most, the run's own is then logged twice.
    if ((this.#logged ??= []).length < MAX_LOGGED) this.#logged.push(error);
  }

  isLogged({ error, message }: PlainError): boolean {
    return this.#logged?.some((one) => one.error === error && one.message === message) ?? false;
  }

  #close(stop: StopReason | null): void {
    this.#timer?.();
    this.#closing = true;
    const ended = this.#root.end(stop);
    if (!(ended instanceof Promise)) return this.#closed(stop);
    ended
      .catch((thrown: unknown) => this.fail(toPlainError(thrown)))
      .then(() => {
        if (this.alive) this.#closed(stop);
      })
      .catch((thrown: unknown) => this.liveThread.giveUp(thrown));
  }

  #closed(stop: StopReason | null): void {
    // It was parked for the next start meanwhile.
    if (!this.alive) return;
    const cut = stop === "interrupt" ? this.#root.partialStep() : null;
    if (cut !== null) this.#root.applyStep(cut);
    this.#root.tasks.revoke();
    if (stop === "rollback") this.#pending.clear();
    endRun(this, stop);
    // Writes of nodes that are still running come too late for the run's last append.
    this.#alive = false;
  }

  // --- writes of its graphs ---

  noteStartPosition({ head, writes }: Position): void {
    const { run } = this;
    if (head === null || head.run_id === run.run_id) return;
    // An earlier attempt has noted these writes, before it changed anything there.
    if (run.base_writes?.some(({ checkpoint }) => checkpoint === head.id)) return;
    (this.#writesBefore ??= new Map()).set(head.id, writesAt(head, writes));
  }

  startSubgraph(
    above: GraphExecution,
    call: NodeCall,
    before: Position | undefined,
    ended: OnSubgraphEnd,
  ): GraphExecution {
    const inner = new GraphExecution(this, new SubgraphOrigin(above, call, before, ended));
    this.subgraphs.set(call.task, inner);
    return inner;
  }

  addStep({ origin }: GraphExecution, { checkpoints, writes, emissions, plan }: EngineStep): void {
    // A step cut short by a stop keeps its tasks, and what their subgraphs did, for the run that continues it.
    const closed = plan.kind !== "done" || checkpoints.at(-1)?.next.length === 0;
    this.#pending.addCheckpoints(origin.ns, checkpoints, closed);
    for (const left of writes) this.#pending.addWrites(left);
    this.#pending.emissions.push(...emissions);
  }

  stage(writes: TaskWrites | undefined, emissions: readonly Emission[]): void {
    if (writes !== undefined) this.#pending.addWrites(writes);
    this.#pending.emissions.push(...emissions);
  }

  dropPending(ns: string): void {
    this.#pending.drop(ns);
  }

  // --- graceful shutdown ---

  /**
   * True when every graph is paused, or waits only for paused subgraphs. A node that runs beside a paused graph may
   * finish first.
   */
  get isHalted(): boolean {
    if (!this.alive || this.#closing || !this.#root.isHalted) return false;
    for (const subgraph of this.subgraphs.values()) if (!subgraph.isHalted) return false;
    return true;
  }

  checkHalted(): void {
    if (this.isHalted) this.liveThread.owner.runHalted(this.liveThread);
  }

  park(isCutOff: boolean): Promise<void> {
    // The end of the run is being stored: nothing may be written about the run after it.
    if (this.liveThread.record.active !== this.id) return Promise.resolve();
    this.flushNow();
    const left = changeRun(this.run, {
      parked: this.run.parked + 1,
      cancel: this.run.cancel ?? (isCutOff ? "interrupt" : null),
    });
    this.liveThread.runs.set(this.id, left);
    const stored = this.liveThread.write({ kind: "left", durable: true, runs: [left] }, (thread) => thread);
    this.revoke();
    return stored;
  }

  // --- storage ---

  /** Stores the pending writes after this turn, unless another append includes them first. */
  flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.liveThread.deps.scheduler.soon(() => {
      this.#flushing = false;
      this.flushNow();
    });
  }

  flushNow(): void {
    if (!this.alive || this.#pending.isEmpty) return;
    this.flush("advanced", false).catch(() => undefined);
  }

  flush(kind: string, durable: boolean): Promise<void> {
    if (!this.alive) return Promise.reject(threadUnavailable());
    const { checkpoints, writes, events } = this.#collect(this.#atExit);
    if (this.#atExit && events === undefined) return Promise.resolve();
    const head = checkpoints.findLast(({ ns }) => ns === "");
    const runs = this.#note(writes, durable && checkpoints.length > 0);
    const change = { kind, durable, checkpoints, writes, runs, events };
    const stored = this.liveThread
      .write(change, (thread) =>
        head === undefined
          ? thread
          : changeThread(thread, { checkpoint: head.id, state_updated_at: this.liveThread.deps.clock.now() }),
      )
      .then(() => {
        if (events !== undefined) this.sink.stored(events);
      });
    this.flushed = stored.catch(() => undefined);
    return stored;
  }

  #note(writes: readonly TaskWrites[], progress: boolean): readonly RunRecord[] {
    const { run } = this;
    let noted = progress ? afterProgress(run) : run;
    const base = replacedWrites(this.#writesBefore, writes);
    if (base.length > 0) noted = changeRun(noted, { base_writes: [...(run.base_writes ?? []), ...base] });
    if (noted === run) return [];
    this.liveThread.runs.set(this.id, noted);
    return [noted];
  }

  /** Takes all pending writes for the run's last append, and the log's next chunk with their facts. */
  takePending() {
    return this.#collect(false);
  }

  #collect(eventsAlone: boolean) {
    const { checkpoints, writes, emissions } = this.#pending.takeAll(eventsAlone);
    for (const { fact, values, head } of emissions) this.sink.emit(fact, values, head);
    return { checkpoints, writes, events: this.sink.take() };
  }

  /** Emits a fact from a node. Pending emissions go first, so that the log keeps the order of events. */
  emit(fact: Fact): number {
    if (!this.alive) return -1;
    if (this.#pending.emissions.length > 0) this.flushNow();
    const id = this.sink.emit(fact);
    if (id >= 0) this.#raiseMark(id + eventCountOf(fact));
    return id;
  }

  /**
   * Raises the event mark. It is stored before any event id reaches it: after a power cut, the next attempt numbers
   * its events from the mark.
   */
  #raiseMark(next: number): void {
    const run = this.run;
    if (next + HEADROOM < run.event_mark) return;
    const raised = changeRun(run, { event_mark: next + EVENT_MARK_STEP });
    this.liveThread.runs.set(this.id, raised);
    this.liveThread
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
