import type { AnyActorRef } from "xstate";
import type { CheckpointHead, TaskWrites } from "../../src/model/checkpoint.ts";
import { plainError, type PlainError } from "../../src/model/errors.ts";
import type { Fact } from "../../src/model/event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type {
  Emission,
  Execution,
  NodeCall,
  Position,
  Settled,
  StreamedFact,
  TaskOutcome,
} from "../../src/ports/engine.ts";
import type { NodeIo } from "../../src/ports/host.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";
import type { Cell } from "../thread/cell.ts";
import { retryAfter } from "./retry.ts";

/** How a graph that is a task's node tells its end. `stopped`: because it was told to. */
export type Ended = (outcome: TaskOutcome, stopped: boolean) => void;

/** A graph that runs in a task. */
export interface InnerLevel {
  readonly position: Position;
  streamed(): ReadonlyMap<string, readonly StreamedFact[]>;
  revoke(): void;
}

/** The graph to which the tasks belong. */
export interface TaskOwner {
  readonly cell: Cell;
  readonly execution: Execution;
  readonly alive: boolean;
  readonly head: CheckpointHead | null;
  readonly writes: ReadonlyMap<string, TaskWrites>;
  emit(fact: Fact): number;
  stage(writes: TaskWrites, emissions: readonly Emission[]): void;
  flush(kind: string, durable: boolean): Promise<void>;
  flushSoon(): void;
  fail(error: PlainError): void;
  enter(call: NodeCall, before: Position | undefined, ended: Ended): InnerLevel;
  /** A body has ended, and that is dealt with. */
  settled(): void;
}

/** A node body that runs. */
interface Live {
  readonly call: NodeCall;
  /** Made when somebody looks at the signal: most bodies never do. */
  controller: AbortController | null;
  /** Why it has been told to stop. */
  stopped: DOMException | null;
  readonly self: AnyActorRef;
  steps: JsonObject;
  timer: Cancel | null;
  /** What it has streamed, where that is wanted when the run is stopped. */
  readonly streamed: StreamedFact[] | null;
  /** The graph that runs in place of a body. */
  inner: InnerLevel | null;
}

const answers = { done: "DONE", interrupted: "INTERRUPTED", failed: "FAILED" } as const;

/** The tasks at work of one graph of an attempt: starts them, hears them out, cuts them off. */
export class Tasks {
  readonly #attempt: TaskOwner;
  readonly #live = new Map<string, Live>();
  /** What those had streamed that have stopped because they were told to. */
  readonly #cut = new Map<string, readonly StreamedFact[]>();
  /** Where the graphs in tasks that have failed got to: another try goes on from there. */
  readonly #left = new Map<string, Position>();

  constructor(attempt: TaskOwner) {
    this.#attempt = attempt;
  }

  execute(task: string, self: AnyActorRef): void {
    const { execution, cell } = this.#attempt;
    let call: NodeCall;
    try {
      call = execution.call(task);
    } catch (thrown) {
      this.#attempt.fail(plainError(thrown));
      self.send({ type: "FAILED" });
      return;
    }
    // What an earlier try has journaled is not run again.
    const steps = { ...call.steps, ...this.#attempt.writes.get(task)?.steps };
    const streamed: StreamedFact[] | null = call.keepsPartial === true ? [] : null;
    const live: Live = {
      call,
      controller: null,
      stopped: null,
      self,
      steps,
      timer: null,
      streamed,
      inner: null,
    };
    this.#live.set(task, live);
    const io = new TaskIo(
      live,
      (fact) => this.#emit(live, fact),
      (step, value) => this.#record(live, step, value),
    );
    if (call.timeout !== null) {
      live.timer = cell.deps.scheduler.after(call.timeout, () => this.#timedOut(live));
    }
    if (call.subgraph) return this.#enter(live);
    cell.deps.host.run({ ...call, steps }, io).then(
      (outcome) => this.#ended(live, outcome),
      // The host promises never to reject; if it does all the same, the run must still end.
      (thrown: unknown) => this.#ended(live, { kind: "failed", error: plainError(thrown) }),
    );
  }

  #emit(live: Live, fact: Fact): number {
    if (this.#live.get(live.call.task) !== live) return -1;
    const id = this.#attempt.emit(fact);
    if (live.streamed !== null && ofMessage(fact)) live.streamed.push({ id, fact });
    return id;
  }

  /** The task's actor starts the graph's own, below it. */
  #enter(live: Live): void {
    const { call, self } = live;
    try {
      live.inner = this.#attempt.enter(call, this.#left.get(call.task), (outcome, stopped) => {
        if (stopped) stop(live, new DOMException("The run was stopped", "AbortError"));
        this.#ended(live, outcome);
      });
    } catch (thrown) {
      return this.#ended(live, { kind: "failed", error: plainError(thrown) });
    }
    self.send({ type: "ENTER" });
  }

  /** Bodies that run, those of graphs within not counted. */
  get bodies(): number {
    let count = 0;
    for (const { inner } of this.#live.values()) if (inner === null) count++;
    return count;
  }

  /** The body is not waited for: what it does from here on reaches nothing. */
  #timedOut(live: Live): void {
    const { node, timeout } = live.call;
    const message = `Node "${node}" took longer than ${timeout} ms`;
    this.#ended(live, { kind: "failed", error: { error: "NodeTimeoutError", message } });
    stop(live, new DOMException(message, "TimeoutError"));
  }

  #ended(live: Live, outcome: TaskOutcome): void {
    const { call, self } = live;
    if (this.#live.get(call.task) !== live) return;
    this.#live.delete(call.task);
    live.timer?.();
    if (live.inner !== null) this.#leave(live.inner, call.task, outcome);
    const attempt = this.#attempt;
    if (!attempt.alive) return;
    // It was asked to stop and threw: it has stopped. Its error is not the run's.
    if (outcome.kind === "failed" && live.stopped !== null) {
      const streamed = streamedBy(live);
      if (streamed !== null) this.#cut.set(call.task, streamed);
      return self.send({ type: "FAILED" });
    }
    const delay = retryAfter(call, outcome, attempt.cell.deps.random.float());
    if (delay !== null) {
      self.send({ type: "RETRY" });
      attempt.cell.deps.scheduler.after(delay, () => self.send({ type: "TRY" }));
      return;
    }
    let settled: Settled;
    try {
      settled = attempt.execution.settle(call.task, outcome);
    } catch (thrown) {
      attempt.fail(plainError(thrown));
      return self.send({ type: "FAILED" });
    }
    const { writes, kind, emissions, error } = settled;
    attempt.stage({ ...writes, steps: { ...writes.steps, ...live.steps } }, emissions);
    if (kind === "failed") attempt.fail(error ?? { error: "Error", message: "the task failed" });
    // Siblings may still run: what this one did is kept even if they, or the server, fail. After the last one the step's
    // own append takes it along.
    attempt.flushSoon();
    self.send({ type: answers[kind] });
    attempt.settled();
  }

  #leave(inner: InnerLevel, task: string, outcome: TaskOutcome): void {
    if (outcome.kind === "failed") this.#left.set(task, inner.position);
    inner.revoke();
  }

  /** Stores a `ctx.step` record with the task's other leavings. */
  #record(live: Live, step: string, value: unknown): Promise<void> {
    const attempt = this.#attempt;
    const { call } = live;
    if (this.#live.get(call.task) !== live || attempt.head === null) return Promise.resolve();
    live.steps = { ...live.steps, [step]: value };
    const before = attempt.writes.get(call.task);
    const writes: TaskWrites = {
      ns: call.ns,
      checkpoint: attempt.head.id,
      task: call.task,
      name: call.node,
      interrupts: before?.interrupts ?? [],
      resumes: call.resumes,
      error: null,
      steps: live.steps,
    };
    attempt.stage(writes, []);
    return attempt.flush("noted", false);
  }

  /** Tells every body to stop. */
  abort(reason: string): void {
    for (const live of this.#live.values()) stop(live, new DOMException(reason, "AbortError"));
  }

  /** What the bodies had streamed when the run was stopped, by task: also of those that do not listen. */
  streamed(): ReadonlyMap<string, readonly StreamedFact[]> {
    const all = new Map(this.#cut);
    for (const [task, live] of this.#live) {
      const streamed = streamedBy(live);
      if (streamed !== null) all.set(task, streamed);
    }
    return all;
  }

  revoke(): void {
    this.abort("The attempt is over");
    for (const { timer, inner } of this.#live.values()) {
      timer?.();
      inner?.revoke();
    }
    this.#live.clear();
  }
}

class TaskIo implements NodeIo {
  readonly emit: NodeIo["emit"];
  readonly record: NodeIo["record"];
  readonly #live: Live;

  constructor(live: Live, emit: NodeIo["emit"], record: NodeIo["record"]) {
    this.#live = live;
    this.emit = emit;
    this.record = record;
  }

  get signal(): AbortSignal {
    return signalOf(this.#live);
  }
}

/** What a body has streamed, or the bodies of the graph within. */
function streamedBy({ streamed, inner }: Live): readonly StreamedFact[] | null {
  return inner === null || streamed === null ? streamed : [...inner.streamed().values()].flat();
}

function ofMessage({ t }: Fact): boolean {
  return t === "token" || t === "piece" || t === "message";
}

function signalOf(live: Live): AbortSignal {
  if (live.controller === null) {
    live.controller = new AbortController();
    if (live.stopped !== null) live.controller.abort(live.stopped);
  }
  return live.controller.signal;
}

function stop(live: Live, reason: DOMException): void {
  live.stopped ??= reason;
  live.controller?.abort(live.stopped);
}
