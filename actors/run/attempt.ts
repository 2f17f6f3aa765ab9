import type { NewCheckpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { toPlainError, type PlainError } from "../../src/model/errors.ts";
import type { Fact } from "../../src/model/run-event.ts";
import { memorySizeOf } from "../../src/model/memory-size.ts";
import { SmallMap } from "../../src/model/small-map.ts";
import { changeRun, type StopReason, type RunRecord } from "../../src/model/run.ts";
import { changeThread, type ThreadRecord } from "../../src/model/thread.ts";
import { timersAtCheckpoint } from "../../src/model/machine-timer.ts";
import type { NodeCall, CheckpointWithState } from "../../src/ports/engine.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";
import type { EventSink } from "../../src/ports/event-sink.ts";
import { threadUnavailable, type LiveThread } from "../thread/live-thread.ts";
import { EVENT_MARK_STEP, runAfterProgress } from "../thread/record-changes.ts";
import {
  endedRunsOfProcessedEvents,
  notifyEndOfProcessedEventRuns,
  removeRunsOfProcessedEvents,
  threadWithoutQueued,
} from "../thread/end-queued-runs-of-processed-events.ts";
import { writesOfPlannedTasks, takeWritesToRestore } from "./writes-restored-by-rollback.ts";
import { endRun } from "./run-end.ts";
import { startPosition } from "./start-position.ts";
import { SubgraphAsTask } from "./subgraph-as-task.ts";
import { GraphExecution, type GraphLifecycle } from "./graph-execution.ts";
import { startTimeLimit } from "./time-limit.ts";
import { makePartialMessagesStep } from "./partial-messages-step.ts";
import { AttemptEngineHost } from "./attempt-engine-host.ts";
import { QueuedMachineEvents } from "./queued-machine-events.ts";
import { PendingCommit } from "./pending-commit.ts";
import { isTaskFact, SlowestTaskFinder } from "./slowest-task-finder.ts";
import { mayReportTokens, UsageTotals } from "./usage-totals.ts";
import type { OnSubgraphEnd } from "./task-runner.ts";

/**
 * The event mark (`RunRecord.event_mark`) is raised when no more than this many unused event ids are left below it.
 * These ids can be used until the new mark is stored.
 */
const MIN_FREE_EVENT_IDS = 1_024;
/**
 * A placeholder for the event ids of pending facts, which are not known yet. Nothing looks it up: only a fact that
 * begins a message is found by its event id, and pending facts begin no message.
 */
const NO_EVENT = -1;
/**
 * The most checkpoints that are stored in one append. A step with thousands of parallel subgraphs makes more, which are
 * stored in several appends: the journal limits the size of each.
 */
const MAX_CHECKPOINTS = 1_000;
/** The most node errors that an attempt remembers as logged. */
const MAX_LOGGED = 100;

/**
 * One attempt to execute a run: its graphs, its log, and its writes to storage, which are batched into as few appends
 * as the durability mode allows. After `revoke`, an attempt writes and publishes nothing, so a node that is still
 * running cannot change anything.
 */
export class RunAttempt {
  readonly liveThread: LiveThread;
  readonly id: string;
  readonly epoch: number;
  readonly sink: EventSink;
  /** Subgraphs in progress, by the id of the task that runs them as its node. */
  readonly subgraphs = new SmallMap<string, GraphExecution>();
  readonly root: GraphExecution;
  /**
   * True for durability `exit`: checkpoints and writes are stored only when the run ends, or earlier if storing them
   * ends queued runs (see {@link PendingCommit.taken}).
   */
  readonly #atExit: boolean;
  readonly pending: PendingCommit;
  /**
   * Counts the tokens of the run. Created with the first message, because most runs of Heddle's own graphs have no
   * messages.
   */
  #usage: UsageTotals | null = null;
  /** Finds the slowest task of the run. Created with the first task. */
  #slowest: SlowestTaskFinder | null = null;
  #flushing = false;
  /**
   * Copies of task writes at checkpoints of earlier runs, by checkpoint id. This run may change the writes at the
   * checkpoint from which it starts, and a rollback restores them. An entry is removed once the run's record contains
   * the copy.
   */
  #writesBefore: Map<string, readonly PendingTaskWrites[]> | null = null;
  /** Resolves when the attempt's latest append is stored, or has failed. */
  flushed: Promise<void> = Promise.resolve();
  /** Errors of nodes that have already been logged; null until there is one. */
  #logged: PlainError[] | null = null;
  #alive = true;
  /** True when the run has ended and its end is being stored. */
  #closing = false;
  /** The `event_mark` of the run's record: the event ids of this attempt are below this number. */
  #mark: number;
  /** Cancels the timer of the run's time limit; null if no timer was set. */
  #timer: Cancel | null = null;
  #mailbox: QueuedMachineEvents | undefined;

  constructor(liveThread: LiveThread, run: RunRecord, sink: EventSink, epoch: number) {
    this.liveThread = liveThread;
    this.id = run.run_id;
    this.epoch = epoch;
    this.sink = sink;
    this.#mark = run.event_mark;
    this.#atExit = run.kwargs.durability === "exit";
    this.pending = new PendingCommit(this.#atExit);
    this.root = new GraphExecution(this, this.#origin());
  }

  #origin(): GraphLifecycle {
    const { liveThread } = this;
    const { engine } = liveThread.deps;
    return {
      ns: "",
      position: () => {
        this.#timer = startTimeLimit(this.run, liveThread.deps, () => {
          this.root.actor?.send({ type: "CANCEL", action: "timeout" });
        });
        return startPosition(liveThread, this.run);
      },
      open: (position) => engine.open(this.run, position, liveThread.source(), new AttemptEngineHost(this)),
      close: (_, stop) => this.#close(stop),
    };
  }

  get run(): RunRecord {
    const run = this.liveThread.runs.get(this.id);
    if (run === undefined) throw new TypeError(`Run ${this.id} has no record`);
    return run;
  }

  get mailbox(): QueuedMachineEvents {
    return (this.#mailbox ??= new QueuedMachineEvents(this));
  }

  /** The run's record, with the token counts and the slowest task so far. */
  withTotals(): RunRecord {
    const usage = this.#usage?.takeChange() === true ? this.#usage.list() : undefined;
    const slowest = this.#slowest?.takeChange() === true ? this.#slowest.found : undefined;
    if (usage === undefined && slowest === undefined) return this.run;
    return changeRun(this.run, {
      ...(usage !== undefined && { usage }),
      ...(slowest !== undefined && { slowest_node: slowest }),
    });
  }

  /**
   * The run's record at its end, like {@link withTotals}. Tasks in progress count as ended at `at` (epoch
   * milliseconds).
   */
  withFinalTotals(at: number): RunRecord {
    this.#slowest?.endAll(at);
    return this.withTotals();
  }

  get alive(): boolean {
    return this.#alive && this.liveThread.alive && this.epoch === this.liveThread.record.epoch;
  }

  /**
   * The root graph (`within` is null), or the subgraph that runs as the node of the task `within`; undefined if no such
   * subgraph runs.
   */
  graph(within: string | null): GraphExecution | undefined {
    return within === null ? this.root : this.subgraphs.get(within);
  }

  /**
   * True if the run names an older checkpoint to start from, but this attempt has not started there. The thread then
   * stays at its latest checkpoint.
   */
  get neverReachedStart(): boolean {
    const { hasEntered, head } = this.root;
    return !hasEntered && (head?.id ?? null) !== this.liveThread.record.checkpoint;
  }

  /** Remembers that the executor has logged this error of a node. */
  noteLogged(error: PlainError): void {
    // There are more errors than this only if the graph catches them. Beyond the limit, the run's own error may be
    // logged twice.
    if ((this.#logged ??= []).length < MAX_LOGGED) this.#logged.push(error);
  }

  /** True when the error of a node is in the server's log already. */
  isLogged({ error, message }: PlainError): boolean {
    return this.#logged?.some((one) => one.error === error && one.message === message) ?? false;
  }

  #close(stop: StopReason | null): void {
    this.#timer?.();
    this.#closing = true;
    const ended = this.root.end(stop);
    if (!(ended instanceof Promise)) return this.#closed(stop);
    ended
      .catch((thrown: unknown) => this.root.fail(toPlainError(thrown)))
      .then(() => {
        if (this.alive) this.#closed(stop);
      })
      .catch((thrown: unknown) => this.liveThread.discard(thrown));
  }

  #closed(stop: StopReason | null): void {
    // The shutdown may have parked the run in the meantime, so that the next start continues it.
    if (!this.alive) return;
    const cut = stop === "interrupt" ? makePartialMessagesStep(this.root) : null;
    if (cut !== null) this.root.applyStep(cut);
    this.root.tasks.revoke();
    if (stop === "rollback") this.pending.clear();
    endRun(this, stop);
    // Nodes that are still running can add nothing to the run's last append.
    this.#alive = false;
  }

  // --- writes of its graphs ---

  /** Remembers the task writes at the checkpoint from which a graph starts, in case this run changes them. */
  noteStartPosition({ head, writes }: CheckpointWithState): void {
    const { run } = this;
    if (head === null || head.run_id === run.run_id) return;
    // An earlier attempt of this run has recorded the writes at this checkpoint, and may have changed them since.
    if (run.base_writes?.some(({ checkpoint }) => checkpoint === head.id)) return;
    (this.#writesBefore ??= new Map()).set(head.id, writesOfPlannedTasks(head, writes));
  }

  // --- the memory that the states of its graphs take ---

  /** Counts the memory of the state from which a graph starts. Called when the graph has read the state. */
  stateRead(graph: GraphExecution): void {
    const { stateSize, record } = this.liveThread;
    const isCounted = graph.head === null || (graph === this.root && graph.head.id === record.checkpoint);
    if (stateSize.isOutdated || (stateSize.isLarge && !isCounted)) this.#measureState();
    this.#countState();
  }

  /** Counts the memory of a changed state. Called when a step of a graph has changed its state. */
  stateChanged(checkpoints: readonly NewCheckpoint[]): void {
    const { stateSize } = this.liveThread;
    for (const { changes } of checkpoints) stateSize.grow(memorySizeOf(changes, Infinity));
    if (stateSize.isOutdated) this.#measureState();
    this.#countState();
  }

  /**
   * Corrects the estimate of the state's size when the pending writes of a task change. The whole state is not measured
   * here, because a step may have thousands of tasks.
   */
  writesChanged(before: PendingTaskWrites | undefined, writes: PendingTaskWrites): void {
    const replaced = before === undefined ? 0 : memorySizeOf(before, Infinity);
    this.liveThread.stateSize.grow(memorySizeOf(writes, Infinity) - replaced);
    this.#countState();
  }

  /**
   * Adds a `ctx.step` result, which is now part of the pending writes of a task, to the estimate of the state's size.
   */
  stepResultAdded(value: unknown): void {
    this.liveThread.stateSize.grow(memorySizeOf(value, Infinity));
    this.#countState();
  }

  #measureState(): void {
    let bytes = memorySizeOf(this.root.position, Infinity);
    for (const subgraph of this.subgraphs.values()) bytes += memorySizeOf(subgraph.position, Infinity);
    this.liveThread.stateSize.measured(bytes);
  }

  #countState(): void {
    const { owner, stateSize } = this.liveThread;
    // Memory that is reserved after the end of the attempt would never be released.
    if (this.alive) owner.runningStates.setState(this.id, stateSize.bytes);
  }

  /** Starts a subgraph as the node of a task, for one attempt of that task. */
  startSubgraph(
    above: GraphExecution,
    call: NodeCall,
    before: CheckpointWithState | undefined,
    ended: OnSubgraphEnd,
  ): GraphExecution {
    const inner = new GraphExecution(this, new SubgraphAsTask(above, call, before, ended));
    this.subgraphs.set(call.task, inner);
    return inner;
  }

  // --- graceful shutdown ---

  /**
   * True when every graph is paused, or waits only for paused subgraphs. False while a node still runs beside a paused
   * graph, because the node may finish. Also false when the run is cancelled or ending, because its end still has to be
   * stored.
   */
  get isHalted(): boolean {
    if (!this.alive || this.#closing || this.run.cancel !== null || !this.root.isHalted) return false;
    for (const subgraph of this.subgraphs.values()) if (!subgraph.isHalted) return false;
    return true;
  }

  /** Checks whether all graphs have paused now; if so, notifies the thread's owner. */
  checkHalted(): void {
    if (!this.isHalted) return;
    // Ends the time limit: this attempt must not time out while other runs have yet to pause. The next attempt has its own limit.
    this.#timer?.();
    this.liveThread.owner.runHalted(this.liveThread);
  }

  /**
   * Parks the run: the next start of the server continues it. With `isCutOff`, the next start ends the run instead of
   * continuing it, because the client asked for the run to end with the connection. Resolves when the change is stored.
   */
  park(isCutOff: boolean): Promise<void> {
    // If the run is not active any more, its end is being stored. After that, nothing may be written about the run.
    if (this.liveThread.record.active !== this.id) return Promise.resolve();
    this.flushNow();
    const run = this.withTotals();
    const parked = changeRun(run, {
      // A parked attempt does not count against the limit of attempts.
      parked: run.parked + 1,
      cancel: run.cancel ?? (isCutOff ? "interrupt" : null),
    });
    this.liveThread.runs.set(this.id, parked);
    const stored = this.liveThread.write(
      { kind: "parked", durable: true, runs: [parked] },
      (thread) => thread,
    );
    this.revoke();
    return stored;
  }

  // --- storage ---

  /** Stores the pending writes in a later turn of the event loop, unless another append includes them before that. */
  flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.liveThread.deps.scheduler.soon(() => {
      this.#flushing = false;
      this.flushNow();
    });
  }

  flushNow(): void {
    if (!this.alive || this.pending.isEmpty) return;
    this.flush("advanced", false).catch(() => undefined);
  }

  flush(kind: string, durable: boolean): Promise<void> {
    if (!this.alive) return Promise.reject(threadUnavailable());
    const { liveThread } = this;
    const { checkpoints, writes, steps, events, taken } = this.takePending(this.#atExit);
    if (this.#atExit && events === undefined && checkpoints.length === 0) return Promise.resolve();
    const head = checkpoints.findLast(({ ns }) => ns === "");
    const ended = endedRunsOfProcessedEvents(liveThread, taken, head?.id);
    const { values } = this.root;
    const runs = [...this.#note(writes, durable && checkpoints.length > 0), ...ended];
    const change = { kind, durable, checkpoints, writes, steps, runs, events };
    const stored = liveThread
      .write(change, (thread) =>
        head === undefined ? thread : this.#advancedTo(head, threadWithoutQueued(thread, ended)),
      )
      .then(() => {
        if (events !== undefined) this.sink.stored(events);
        notifyEndOfProcessedEventRuns(liveThread, ended, values);
      });
    removeRunsOfProcessedEvents(liveThread, ended);
    this.flushed = stored.catch(() => undefined);
    return stored;
  }

  #note(writes: readonly PendingTaskWrites[], progress: boolean): readonly RunRecord[] {
    const { run } = this;
    let noted = progress ? runAfterProgress(this.withTotals()) : run;
    const base = takeWritesToRestore(this.#writesBefore, writes);
    if (base.length > 0) noted = changeRun(noted, { base_writes: [...(run.base_writes ?? []), ...base] });
    if (noted === run) return [];
    this.liveThread.runs.set(this.id, noted);
    return [noted];
  }

  /**
   * Takes everything that is pending, to store it in one append: checkpoints, task writes, step results, and the log's
   * next chunk of events. With `eventsAlone`, takes only the events, unless the pending checkpoints end queued runs.
   */
  takePending(eventsAlone: boolean) {
    const { checkpoints: all, writes, steps, emissions, taken } = this.pending.takeAll(eventsAlone);
    const checkpoints = this.#storeExcess(all, taken.length > 0);
    for (const { fact } of emissions) this.#count(fact, NO_EVENT);
    return { checkpoints, writes, steps, taken, events: this.sink.take(emissions) };
  }

  /**
   * Stores checkpoints in appends of their own until the remaining checkpoints fit into one append. Returns the
   * remaining ones.
   */
  #storeExcess(checkpoints: readonly NewCheckpoint[], endsRuns: boolean): readonly NewCheckpoint[] {
    if (checkpoints.length <= MAX_CHECKPOINTS) return checkpoints;
    // Checkpoints of the root graph come last if they must be stored together with the end of runs. Otherwise all are
    // stored in the order in which they were made, so that no subgraph is stored before the step that started it.
    const rest =
      this.#atExit || endsRuns
        ? [...checkpoints.filter(({ ns }) => ns !== ""), ...checkpoints.filter(({ ns }) => ns === "")]
        : [...checkpoints];
    while (rest.length > MAX_CHECKPOINTS) this.#storePart(rest.splice(0, MAX_CHECKPOINTS));
    return rest;
  }

  /** The thread's record with this checkpoint of the root graph as the newest. */
  #advancedTo(head: NewCheckpoint, thread: ThreadRecord): ThreadRecord {
    return changeThread(thread, {
      checkpoint: head.id,
      state_updated_at: this.liveThread.deps.clock.now(),
      timers: timersAtCheckpoint(head, thread.timers),
    });
  }

  #storePart(checkpoints: readonly NewCheckpoint[]): void {
    const head = checkpoints.findLast(({ ns }) => ns === "");
    this.liveThread
      .write({ kind: "advanced", durable: false, checkpoints }, (thread) =>
        head === undefined ? thread : this.#advancedTo(head, thread),
      )
      // If the write failed, the live thread has failed with it. Recovery continues the run.
      .catch(() => undefined);
  }

  /** Adds a fact to the totals that the run's record shows. */
  #count(fact: Fact, event: number): void {
    if (isTaskFact(fact)) (this.#slowest ??= new SlowestTaskFinder(this.run.slowest_node)).add(fact);
    else if (mayReportTokens(fact)) (this.#usage ??= new UsageTotals(this.run.usage)).add(fact, event);
  }

  /**
   * Emits a fact from a node to the log. Pending facts are flushed first, so that the log keeps the order of events.
   * Returns the id of the fact's event; -1 if the attempt is over.
   */
  emit(fact: Fact): number {
    if (!this.alive) return -1;
    if (this.pending.emissions.length > 0) this.flushNow();
    const id = this.sink.emit(fact);
    if (id >= 0) this.#count(fact, id);
    if (id >= 0 && this.sink.next + MIN_FREE_EVENT_IDS >= this.#mark) this.#raiseMark();
    return id;
  }

  /**
   * Raises the event mark. The new mark has to be stored before the event ids reach the old mark, because after a power
   * cut the ids of the next attempt start at the stored mark.
   */
  #raiseMark(): void {
    this.#mark = this.sink.next + EVENT_MARK_STEP;
    const raised = changeRun(this.run, { event_mark: this.#mark });
    this.liveThread.runs.set(this.id, raised);
    this.liveThread
      .write({ kind: "marked", durable: true, runs: [raised] }, (thread) => thread)
      .catch(() => undefined);
  }

  /** Ends the attempt. From now on it writes nothing to the log or the storage. */
  revoke(): void {
    this.#timer?.();
    this.#alive = false;
    this.root.revoke();
  }
}
