import { emptyWrites } from "../model/checkpoint.ts";
import { toPlainError, ServiceError, type PlainError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import { showsEarlierRunTaskResults } from "../model/earlier-run-task-results.ts";
import type { RunRecord } from "../model/run.ts";
import type {
  Execution,
  Subgraph,
  NodeCall,
  Plan,
  CheckpointWithState,
  SettledTask,
  ExecutionServices,
  EngineStep,
  TaskOutcome,
} from "../ports/engine.ts";
import type { EngineHost } from "../ports/engine-host.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type { InterceptedCall } from "./intercepted-call.ts";
import { ExecutionRecorder } from "./execution-recorder.ts";
import { LangGraphEventQueue, type LangGraphEvent } from "./event-queue.ts";
import {
  withBodyError,
  nodeCallOf,
  plannedTaskOfInterceptedCall,
  settledTaskOfWrites,
  takeRecordedStep,
} from "./task-conversion.ts";
import { answerRefusal, checkpointRunDataOf, pendingInterruptIds } from "./run-invocation.ts";
import { CheckpointBranch } from "./branch-from-checkpoint.ts";
import type { LoadedLangGraph } from "./exported-graph.ts";
import type { GraphProgress } from "./graph-progress.ts";
import { withoutRepeatedComparisons } from "./serialisation.ts";
import { MessageRecorder } from "./message-recorder.ts";
import { untrackedKeys } from "./untracked-channels.ts";

/** Runs the graph to its end, and passes each event to `execution`. The implementation MUST NOT reject. */
export type DriveGraph = (execution: HostedExecution, signal: AbortSignal) => Promise<void>;

/**
 * One attempt of a run of a compiled LangGraph.js graph. LangGraph's Pregel loop plans the steps. Its calls of nodes are intercepted: the
 * run's actor starts a task for each, and only then does the node function run. The events of the loop are queued until the loop waits for
 * node functions or has ended.
 */
export class HostedExecution implements Execution {
  readonly run: RunRecord;
  readonly position: CheckpointWithState;
  readonly hosted: LoadedLangGraph;
  readonly #source: ExecutionServices;
  readonly #stage: EngineHost;
  readonly #drive: DriveGraph;
  readonly #recorder: ExecutionRecorder;
  readonly #leading: CheckpointBranch;
  readonly events: LangGraphEventQueue;
  readonly #abort = new AbortController();
  /** Calls of nodes whose node function has not started yet, by task id. */
  readonly #called = new Map<string, InterceptedCall>();
  /** How often LangGraph has called the node of each task in this attempt, by task id. */
  readonly #tries = new Map<string, number>();
  /** Calls of the root graph's nodes that are not part of a step yet. */
  #ready: InterceptedCall[] = [];
  /** The ids of the tasks of the root graph's current step that have not settled. */
  readonly #atWork = new Set<string>();
  /** The ids of the tasks of all graphs that were called and have not settled. */
  readonly #unsettled = new Set<string>();
  readonly #settling = new Map<string, (settled: SettledTask) => void>();
  #waiting: ((step: EngineStep) => void) | null = null;
  #ended: { readonly error: PlainError | null } | null = null;
  #onEnd: (() => void) | null = null;
  #driving = false;
  /** True if the run was stopped. The end of the graph is then not a failure of the graph. */
  #isStopped = false;

  constructor(
    run: RunRecord,
    position: CheckpointWithState,
    hosted: LoadedLangGraph,
    {
      source,
      stage,
      drive,
    }: { readonly source: ExecutionServices; readonly stage: EngineHost; readonly drive: DriveGraph },
  ) {
    this.run = run;
    this.position = position;
    this.hosted = hosted;
    this.#source = source;
    this.#stage = stage;
    this.#drive = drive;
    this.#recorder = new ExecutionRecorder({
      position,
      marks: checkpointRunDataOf(run, hosted.hash),
      input: isObject(run.kwargs.input) ? run.kwargs.input : null,
      messages: new MessageRecorder(hosted.library, (fact) => this.#emit(fact)),
      version: hosted.library.version,
      showsEarlierRunTaskResults: showsEarlierRunTaskResults(run.kwargs),
      source,
      hidden: (ns) => untrackedKeys(hosted.graph, ns),
      ended: (task) => this.#taskEnded(task),
    });
    this.events = new LangGraphEventQueue(this.#recorder.ids, stage, position, (heard) =>
      this.#takeIn(heard),
    );
    this.#leading = new CheckpointBranch({
      library: hosted.library,
      run,
      position,
      stage,
      source,
      recorder: this.#recorder,
      put: (made) => this.events.put(made),
    });
  }

  // --- methods that the run's actor calls ---

  begin(): Promise<EngineStep> {
    this.#checkAnswers();
    this.#driving = true;
    this.events.onRead = (ns, known) => this.#recorder.read(ns, known);
    this.events.branchPosition = (ns, id) => this.#leading.startPosition(ns, id);
    void this.#drive(this, this.#abort.signal);
    return this.apply();
  }

  apply(): Promise<EngineStep> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#handOver();
    });
  }

  call(task: string): NodeCall {
    return nodeCallOf(this.#calledAs(task), this.#tries.get(task) ?? 1, this.run, this.#source.tenant);
  }

  /**
   * Runs the node function of a called task. If it throws, `failed` is called with the error and the time, unless the task was stopped or
   * the error comes from a graph that the node function called.
   */
  async runBody(
    task: string,
    io: NodeIo,
    failed: (failure: { readonly thrown: unknown; readonly at: number }) => void,
  ): Promise<TaskOutcome> {
    const called = this.#calledAs(task);
    this.#called.delete(task);
    const from = this.#recorder.loop(called.ns).next.find(({ id }) => id === task)?.from;
    const places = from === undefined ? undefined : await this.#leading.checkpointMapFor(called, from);
    // Only the task's own signal stops the node function. Aborting LangGraph's signal would also end the graph, without waiting for the
    // results of its nodes.
    const outcome = await called.start({ signal: io.signal, places });
    if (outcome.kind !== "failed") return outcome;
    const at = this.#source.now();
    this.#recorder.noteFailure(task, at);
    if (!called.thrown || io.signal.aborted) return outcome;
    failed({ thrown: called.thrown.error, at });
    return { ...outcome, isLogged: true };
  }

  settle(task: string, outcome: TaskOutcome): Promise<SettledTask> {
    if (outcome.kind === "failed") this.#called.get(task)?.fail(outcome.error);
    return new Promise((resolve) => {
      if (this.#ended === null)
        this.#settling.set(task, (settled) => resolve(withBodyError(settled, outcome)));
      else resolve(settledTaskOfWrites(this.#recorder, task, null));
    });
  }

  enter(task: string): Subgraph {
    throw new TypeError(`The task ${task} is not entered: LangGraph does that`);
  }

  outcome(): TaskOutcome {
    throw new TypeError("Graphs within tasks have no execution of their own");
  }

  abortPlanning(): void {
    if (this.#driving) this.#stop();
  }

  #stop(): void {
    this.#isStopped = true;
    this.events.stop();
    if (this.#ended === null) this.#abort.abort(new DOMException("The run was stopped", "AbortError"));
  }

  end(stopped: boolean): Promise<EngineStep | null> | null {
    if (!this.#driving) return null;
    if (stopped) this.#stop();
    if (this.#ended !== null) return Promise.resolve(this.#rest());
    // After a failure, the graph usually ends by itself. It is also aborted, because a node function may still be running and ignore its
    // signal.
    if (!stopped) {
      const abort = () => this.#abort.abort(new DOMException("The run has failed", "AbortError"));
      this.#stage.soon(() => this.#stage.soon(abort));
    }
    return new Promise((resolve) => {
      this.#onEnd = () => resolve(this.#rest());
    });
  }

  abandon(): void {
    if (this.events.over) return;
    this.events.close();
    // A graph that has ended is not aborted, because LangGraph may have left listeners on the signal whose errors nobody catches.
    if (this.#ended === null) this.#abort.abort(new DOMException("The attempt is over", "AbortError"));
    for (const called of this.#called.values()) called.drop();
    this.#called.clear();
  }

  // --- LangGraph's events ---

  get graphsWithUnknownNext(): readonly GraphProgress[] {
    return this.#recorder.graphsWithUnknownNext;
  }

  /** Records the checkpoints at which graphs have stopped, and which LangGraph has not streamed. Called when its stream has ended. */
  recordLastCheckpoints(): void {
    this.#recorder.close(true);
  }

  /** Processes a batch of events. At this time, LangGraph waits for node functions, or has ended. */
  #takeIn(heard: readonly LangGraphEvent[]): void {
    try {
      withoutRepeatedComparisons(() => {
        // Streamed events of a batch may name a checkpoint before it was put to the saver, so puts are processed first.
        for (const one of heard) if (one.kind === "put") this.#recorder.put(one.raw);
        // All events are checked before any of them is processed: if the run cannot continue, its pending tasks must stay as they were.
        for (const one of heard)
          if (one.kind === "chunk") this.#recorder.checkNodes(one.ns, one.mode, one.payload);
        for (const one of heard) this.#take(one);
        this.#recorder.close(this.#ended !== null);
      });
      this.#join();
    } catch (thrown) {
      this.#ended ??= { error: toPlainError(thrown) };
      this.#abort.abort(thrown);
    }
    this.#handOver();
    if (this.#ended === null) return;
    for (const task of this.#settling.keys())
      this.#settle(task, settledTaskOfWrites(this.#recorder, task, this.#ended.error));
    this.#onEnd?.();
    this.#onEnd = null;
  }

  #take(heard: LangGraphEvent): void {
    switch (heard.kind) {
      case "writes":
        return this.#recorder.putWrites(heard.raw);
      case "chunk":
        return this.#recorder.chunk(heard.ns, heard.mode, heard.payload);
      case "event":
        return this.#recorder.event(heard.event);
      case "called":
        return this.#takeCall(heard.called);
      case "ended":
        return void (this.#ended ??= heard);
      case "put":
    }
  }

  #takeCall(called: InterceptedCall): void {
    const { task } = called;
    this.#called.set(task, called);
    this.#tries.set(task, (this.#tries.get(task) ?? 0) + 1);
    if (this.#settling.has(task)) {
      // A second call of the same task means that the first call failed, and that LangGraph retries it.
      this.#report([]);
      const writes = emptyWrites(this.#recorder.place(task));
      this.#answer(task, { kind: "again", writes, emissions: [] });
    } else if (called.within === null) this.#ready.push(called);
    else this.#report([called]);
    this.#unsettled.add(task);
  }

  #taskEnded(task: string): void {
    // The tasks of the subgraphs within this task have ended too.
    for (const inner of this.#settling.keys())
      if (this.#recorder.tasks.isWithin(inner, task))
        this.#settle(inner, settledTaskOfWrites(this.#recorder, inner, null));
    this.#report([], this.#atWork.has(task));
    this.#settle(task, settledTaskOfWrites(this.#recorder, task, null));
  }

  /**
   * Adds new calls of the root graph's nodes to the current step, if tasks of this step are running. Otherwise the calls become the next
   * step.
   */
  #join(): void {
    if (this.#ready.length > 0 && this.#atWork.size > 0) {
      const joining = this.#ready;
      this.#ready = [];
      for (const { task } of joining) this.#atWork.add(task);
      this.#report(joining);
    } else if (!this.#recorder.hasAdvanced && this.#ended === null) this.#report([]);
  }

  #emit(fact: Parameters<EngineHost["emit"]>[0]): number {
    // Emits the recorded events first, to keep the order. But events that follow a new checkpoint of the root graph wait for the step of
    // that checkpoint.
    if (!this.#recorder.hasAdvanced) this.#report([]);
    return this.#stage.emit(fact);
  }

  // --- passing recorded events to the run's actor ---

  /**
   * Passes everything that was recorded so far to the run's actor, in the middle of a step. `joining`: calls that are added to the step.
   * `ending`: whether a task of the step has just ended.
   */
  #report(joining: readonly InterceptedCall[], ending = false): void {
    const { checkpoints, emissions, pendingWrites } = this.#recorder;
    const writes = pendingWrites.takeChanged(({ ns, task }) => ns !== "" || !this.#atWork.has(task));
    if (checkpoints.length + emissions.length + writes.length + joining.length === 0) return;
    this.#recorder.checkpoints = [];
    this.#recorder.emissions = [];
    const tasks = joining.map(({ task, name, within }) => ({ id: task, name, within }));
    this.#stage.report({ checkpoints, emissions, writes, tasks, ...(ending && { ending }) });
    this.#forgetPastSteps();
  }

  /** Forgets past steps, except after the end of the graph: a node function that ignored its signal may still settle. */
  #forgetPastSteps(): void {
    if (this.#ended === null) this.#recorder.forgetPastSteps((task) => this.#unsettled.has(task));
  }

  #settle(task: string, settled: SettledTask): void {
    this.#atWork.delete(task);
    this.#answer(task, settled);
  }

  #answer(task: string, settled: SettledTask): void {
    this.#unsettled.delete(task);
    this.#settling.get(task)?.(settled);
    this.#settling.delete(task);
  }

  #handOver(): void {
    const waiting = this.#waiting;
    if (waiting === null || (this.#ended === null && this.#ready.length === 0)) return;
    this.#waiting = null;
    const ready = this.#ready.splice(0);
    for (const { task } of ready) this.#atWork.add(task);
    const tasks = ready.map((called) => plannedTaskOfInterceptedCall(this.#recorder, called));
    const plan: Plan = this.#ended === null ? { kind: "tasks", tasks } : this.#lastPlan(this.#ended);
    waiting(takeRecordedStep(this.#recorder, this.#stage, plan));
    this.#forgetPastSteps();
  }

  /** The last step, with everything that was not passed to the run's actor yet; null if there is nothing. */
  #rest(): EngineStep | null {
    return this.#recorder.isEmpty ? null : takeRecordedStep(this.#recorder, this.#stage, { kind: "done" });
  }

  #lastPlan({ error }: { readonly error: PlainError | null }): Plan {
    if (this.#isStopped) return { kind: "done" };
    if (error !== null) return { kind: "failed", error };
    const done = this.#recorder.root.next.length === 0;
    return done ? { kind: "done" } : { kind: "paused", interrupts: this.#recorder.pendingInterrupts() };
  }

  #calledAs(task: string): InterceptedCall {
    const called = this.#called.get(task);
    if (called === undefined) throw new TypeError(`The task ${task} was not called`);
    return called;
  }

  /** Refuses answers that do not fit the pending interrupts. @throws ServiceError with a code that begins with `resume.` */
  #checkAnswers(): void {
    const { command } = this.run.kwargs;
    if ((command?.resume ?? null) === null || this.run.attempt > 1) return;
    const unfinished = this.#recorder.root.next.length > 0;
    const refused = answerRefusal(this.run.kwargs, pendingInterruptIds(this.position), unfinished);
    if (refused !== null) throw new ServiceError(refused.code, refused.message);
  }
}
