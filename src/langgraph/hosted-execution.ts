import { blank } from "../model/checkpoint.ts";
import { plainError, ServiceError, type PlainError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type {
  Execution,
  Inner,
  NodeCall,
  Plan,
  Position,
  Settled,
  Source,
  Step,
  TaskOutcome,
} from "../ports/engine.ts";
import type { Stage } from "../ports/engine-host.ts";
import type { NodeIo } from "../ports/node-host.ts";
import type { Called } from "./intercepted-call.ts";
import { Chronicle } from "./execution-recorder.ts";
import { Ear, type Heard } from "./event-queue.ts";
import { asThrown, callOf, plannedOf, settledAs, stepOf } from "./step-output.ts";
import { answerRefusal, marksOf, pendingIds, wantsMessages } from "./graph-input.ts";
import { Leading } from "./branch-from-checkpoint.ts";
import type { LoadedLangGraph } from "./exported-graph.ts";
import type { Loop } from "./loop-checkpoints.ts";
import { inOneTurn } from "./serialisation.ts";
import { Tokens } from "./token-stream.ts";
import { untrackedIn } from "./untracked-channels.ts";

/** Runs the graph from its start to its end, and tells the execution all that happens. Never rejects. */
export type Drive = (execution: HostedExecution, signal: AbortSignal) => Promise<void>;

/**
 * One attempt of one run over a compiled LangGraph.js graph. Pregel's loop drives the steps, and is held at every node: the
 * run's actor starts a task for each, and only that lets the node's body run. All that the loop does is heard in order and
 * taken in once it has come to a stand: then it waits for bodies, or has ended.
 */
export class HostedExecution implements Execution {
  readonly run: RunRecord;
  readonly position: Position;
  readonly hosted: LoadedLangGraph;
  readonly #source: Source;
  readonly #stage: Stage;
  readonly #drive: Drive;
  readonly #chronicle: Chronicle;
  readonly #leading: Leading;
  /** What LangGraph is given to tell everything to. */
  readonly ear: Ear;
  readonly #abort = new AbortController();
  /** Nodes that wait to be run. */
  readonly #called = new Map<string, Called>();
  /** Of the root graph, and not planned yet. */
  #ready: Called[] = [];
  /** Tasks of the root graph that were planned and have not settled. */
  readonly #atWork = new Set<string>();
  readonly #settling = new Map<string, (settled: Settled) => void>();
  #waiting: ((step: Step) => void) | null = null;
  #ended: { readonly error: PlainError | null } | null = null;
  #onEnd: (() => void) | null = null;
  #driving = false;

  constructor(
    run: RunRecord,
    position: Position,
    hosted: LoadedLangGraph,
    { source, stage, drive }: { readonly source: Source; readonly stage: Stage; readonly drive: Drive },
  ) {
    this.run = run;
    this.position = position;
    this.hosted = hosted;
    this.#source = source;
    this.#stage = stage;
    this.#drive = drive;
    this.#chronicle = new Chronicle({
      position,
      marks: marksOf(run, hosted.hash),
      input: isObject(run.kwargs.input) ? run.kwargs.input : null,
      tokens: new Tokens(hosted.library, (fact) => this.#emit(fact), wantsMessages(run)),
      source,
      hidden: (ns) => untrackedIn(hosted.graph, ns),
      ended: (task) => this.#taskEnded(task),
    });
    this.ear = new Ear(this.#chronicle.ids, stage, position, (heard) => this.#takeIn(heard));
    this.#leading = new Leading(run, position, stage, this.#chronicle);
  }

  // --- as the run's actor drives it ---

  begin(): Promise<Step> {
    this.#checkAnswers();
    this.#driving = true;
    this.ear.found = (ns, known) => this.#chronicle.read(ns, known);
    this.ear.begin = (ns, id) => this.#leading.begin(ns, id);
    void this.#drive(this, this.#abort.signal);
    return this.apply();
  }

  apply(): Promise<Step> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#handOver();
    });
  }

  call(task: string): NodeCall {
    return callOf(this.#calledAs(task), this.run, this.#source.tenant);
  }

  /** Runs the body of a task that was called. `failed` is told what it throws, unless it was told to stop. */
  async runBody(task: string, io: NodeIo, failed: (thrown: unknown) => void): Promise<TaskOutcome> {
    const called = this.#calledAs(task);
    this.#called.delete(task);
    const from = this.#chronicle.loop(called.ns).next.find(({ id }) => id === task)?.from;
    const places = from === undefined ? undefined : await this.#leading.into(called, from);
    // LangGraph's own signal reaches the root's nodes; those within have to be told on their own.
    const outcome = await called.start({ signal: called.ns === "" ? undefined : io.signal, places });
    if (outcome.kind === "failed" && called.thrown && !io.signal.aborted) failed(called.thrown.error);
    return outcome;
  }

  settle(task: string, outcome: TaskOutcome): Promise<Settled> {
    if (outcome.kind === "failed") this.#called.get(task)?.fail(outcome.error);
    return new Promise((resolve) => {
      if (this.#ended === null) this.#settling.set(task, (settled) => resolve(asThrown(settled, outcome)));
      else resolve(settledAs(this.#chronicle, task, null));
    });
  }

  enter(task: string): Inner {
    throw new TypeError(`The task ${task} is not entered: LangGraph does that`);
  }

  outcome(): TaskOutcome {
    throw new TypeError("Graphs within tasks have no execution of their own");
  }

  end(stopped: boolean): Promise<Step | null> | null {
    if (!this.#driving) return null;
    if (stopped) this.ear.stop();
    if (this.#ended !== null) return Promise.resolve(this.#rest());
    const abort = (why: string) => this.#abort.abort(new DOMException(why, "AbortError"));
    if (stopped) abort("The run was stopped");
    // It is about to end by itself, unless a body does not listen.
    else this.#stage.soon(() => this.#stage.soon(() => abort("The run has failed")));
    return new Promise((resolve) => {
      this.#onEnd = () => resolve(this.#rest());
    });
  }

  abandon(): void {
    if (this.ear.over) return;
    this.ear.close();
    // Once it has ended, nothing is to be stopped: LangGraph may have left listeners there that throw at nobody.
    if (this.#ended === null) this.#abort.abort(new DOMException("The attempt is over", "AbortError"));
    for (const called of this.#called.values()) called.drop();
    this.#called.clear();
  }

  // --- as LangGraph tells ---

  get openEnds(): readonly Loop[] {
    return this.#chronicle.openEnds;
  }

  /** Takes in what LangGraph has done until it came to a stand. */
  #takeIn(heard: readonly Heard[]): void {
    try {
      inOneTurn(() => {
        // A checkpoint may be told of before it is put, in the same turn.
        for (const one of heard) if (one.kind === "put") this.#chronicle.put(one.raw);
        // Before anything is taken: a run that cannot go on leaves what waits as it was.
        for (const one of heard)
          if (one.kind === "chunk") this.#chronicle.checkNodes(one.ns, one.mode, one.payload);
        for (const one of heard) this.#take(one);
        this.#chronicle.close(this.#ended !== null);
      });
      this.#join();
    } catch (thrown) {
      this.#ended ??= { error: plainError(thrown) };
      this.#abort.abort(thrown);
    }
    this.#handOver();
    if (this.#ended === null) return;
    for (const task of this.#settling.keys())
      this.#settle(task, settledAs(this.#chronicle, task, this.#ended.error));
    this.#onEnd?.();
    this.#onEnd = null;
  }

  #take(heard: Heard): void {
    switch (heard.kind) {
      case "writes":
        return this.#chronicle.putWrites(heard.raw);
      case "chunk":
        return this.#chronicle.chunk(heard.ns, heard.mode, heard.payload);
      case "called":
        return this.#takeCall(heard.called);
      case "ended":
        return void (this.#ended ??= heard);
      case "put":
    }
  }

  #takeCall(called: Called): void {
    const { task } = called;
    this.#called.set(task, called);
    if (this.#settling.has(task)) {
      // It failed, and LangGraph tries once more.
      this.#tell([]);
      const writes = blank(this.#chronicle.place(task));
      this.#answer(task, { kind: "again", writes, emissions: [] });
    } else if (called.within === null) this.#ready.push(called);
    else this.#tell([called]);
  }

  #taskEnded(task: string): void {
    // What runs within it has ended, or was left.
    for (const inner of this.#settling.keys())
      if (this.#chronicle.tasks.isWithin(inner, task))
        this.#settle(inner, settledAs(this.#chronicle, inner, null));
    this.#tell([], this.#atWork.has(task));
    this.#settle(task, settledAs(this.#chronicle, task, null));
  }

  /** Calls of the root graph beside tasks that are at work join those; else they are its next step. */
  #join(): void {
    if (this.#ready.length > 0 && this.#atWork.size > 0) {
      const joining = this.#ready;
      this.#ready = [];
      for (const { task } of joining) this.#atWork.add(task);
      this.#tell(joining);
    } else if (!this.#chronicle.moved && this.#ended === null) this.#tell([]);
  }

  #emit(fact: Parameters<Stage["emit"]>[0]): number {
    // What has happened before goes first; a step that is about to be handed over cannot.
    if (!this.#chronicle.moved) this.#tell([]);
    return this.#stage.emit(fact);
  }

  // --- handing over ---

  /** Tells what has happened meanwhile, in the middle of a step. */
  #tell(joining: readonly Called[], ending = false): void {
    const { checkpoints, emissions, left } = this.#chronicle;
    const writes = left.handOver(({ ns, task }) => ns !== "" || !this.#atWork.has(task));
    if (checkpoints.length + emissions.length + writes.length + joining.length === 0) return;
    this.#chronicle.checkpoints = [];
    this.#chronicle.emissions = [];
    const tasks = joining.map(({ task, name, within }) => ({ id: task, name, within }));
    this.#stage.tell({ checkpoints, emissions, writes, tasks, ...(ending && { ending }) });
  }

  #settle(task: string, settled: Settled): void {
    this.#atWork.delete(task);
    this.#answer(task, settled);
  }

  #answer(task: string, settled: Settled): void {
    this.#settling.get(task)?.(settled);
    this.#settling.delete(task);
  }

  #handOver(): void {
    const waiting = this.#waiting;
    if (waiting === null || (this.#ended === null && this.#ready.length === 0)) return;
    this.#waiting = null;
    const ready = this.#ready.splice(0);
    for (const { task } of ready) this.#atWork.add(task);
    const tasks = ready.map((called) => plannedOf(this.#chronicle, called));
    const plan: Plan = this.#ended === null ? { kind: "tasks", tasks } : this.#lastPlan(this.#ended);
    waiting(stepOf(this.#chronicle, this.#stage, plan));
  }

  /** What is left to be stored at the end; null: nothing. */
  #rest(): Step | null {
    return this.#chronicle.isEmpty ? null : stepOf(this.#chronicle, this.#stage, { kind: "done" });
  }

  #lastPlan({ error }: { readonly error: PlainError | null }): Plan {
    if (error !== null) return { kind: "failed", error };
    const done = this.#chronicle.root.next.length === 0;
    return done ? { kind: "done" } : { kind: "paused", interrupts: this.#chronicle.waiting() };
  }

  #calledAs(task: string): Called {
    const called = this.#called.get(task);
    if (called === undefined) throw new TypeError(`The task ${task} was not called`);
    return called;
  }

  /** @throws ServiceError `resume.*` */
  #checkAnswers(): void {
    const { command } = this.run.kwargs;
    if ((command?.resume ?? null) === null || this.run.attempt > 1) return;
    const unfinished = this.#chronicle.root.next.length > 0;
    const refused = answerRefusal(this.run.kwargs, pendingIds(this.position), unfinished);
    if (refused !== null) throw new ServiceError(refused.code, refused.message);
  }
}
