import type { AnyActorRef } from "../xstate.ts";
import type { CheckpointHead, TaskWrites } from "../../src/model/checkpoint.ts";
import { plainError, type PlainError, ServiceError } from "../../src/model/errors.ts";
import { Few } from "../../src/model/small-map.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { StoreOp, StoreResults } from "../../src/model/store-item.ts";
import type {
  Emission,
  Execution,
  NodeCall,
  Position,
  Settled,
  StreamedFact,
  TaskOutcome,
} from "../../src/ports/engine.ts";
import type { JoiningTask } from "../../src/ports/engine-host.ts";
import type { Cell } from "../thread/live-thread.ts";
import { type InnerLevel, type Live, ofMessage, stop, streamedBy, tell, withSteps } from "./running-tasks.ts";
import { retryAfter } from "./retry-delay.ts";
import { TaskIo } from "./node-io.ts";

/** How a graph that is a task's node tells its end. `stopped`: because it was told to. */
export type Ended = (outcome: TaskOutcome, stopped: boolean) => void;

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
  /** `refused`: an answer was, and nothing else happened to the task. */
  fail(error: PlainError, refused?: boolean): void;
  enter(call: NodeCall, before: Position | undefined, ended: Ended): InnerLevel;
  /** A body has ended, and that is dealt with. */
  settled(): void;
}

const answers = { done: "DONE", interrupted: "INTERRUPTED", failed: "FAILED" } as const;

/** The tasks at work of one graph of an attempt: starts them, hears them out, cuts them off. */
export class Tasks {
  readonly #attempt: TaskOwner;
  readonly #live = new Few<string, Live>();
  /** Tasks of graphs that bodies run, by the task whose body that is. */
  #within: Map<string, string> | undefined;
  /** Tasks whose bodies have ended, and whose graphs have yet to say what that comes to. */
  #unsettled: Set<string> | undefined;
  /** Tasks that wait for another try. */
  #retrying = 0;
  /** What those had streamed that have stopped because they were told to. */
  #cut: Map<string, readonly StreamedFact[]> | undefined;
  /** Where the graphs in tasks that have failed got to: another try goes on from there. */
  #left: Map<string, Position> | undefined;

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
      return self.send({ type: "FAILED" });
    }
    // What an earlier try has journaled is not run again.
    const known = this.#attempt.writes.get(task)?.steps;
    const steps = known === undefined ? call.steps : { ...call.steps, ...known };
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
      refused: false,
    };
    this.#live.set(task, live);
    const io = new TaskIo(
      live,
      (fact) => this.#emit(live, fact),
      (step, value) => this.#record(live, step, value),
      (ops) => this.#store(live, ops),
    );
    if (call.timeout !== null) {
      live.timer = cell.deps.scheduler.after(call.timeout, () => this.#timedOut(live));
    }
    if (call.subgraph) return this.#enter(live);
    cell.deps.host.run(steps === call.steps ? call : { ...call, steps }, io).then(
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
      live.inner = this.#attempt.enter(call, this.#left?.get(call.task), (outcome, stopped) => {
        if (stopped) stop(live, new DOMException("The run was stopped", "AbortError"));
        this.#ended(live, outcome);
      });
    } catch (thrown) {
      return this.#ended(live, { kind: "failed", error: plainError(thrown) });
    }
    self.send({ type: "ENTER" });
  }

  /** Bodies that run, or are to be tried again; one that waits for those of graphs within is not counted. */
  get bodies(): number {
    const waiting = new Set(this.#within?.values());
    let count = (this.#unsettled?.size ?? 0) + this.#retrying;
    for (const [task, { inner }] of this.#live) if (inner === null && !waiting.has(task)) count++;
    return count;
  }

  /** Does a graph run as the node of one of them? */
  get isWithin(): boolean {
    for (const { inner } of this.#live.values()) if (inner !== null) return true;
    return false;
  }

  /** Tasks of graphs that bodies run come up: they start below the actors of those, unless the server stops (`hold`). */
  join(tasks: readonly JoiningTask[], hold: boolean): void {
    for (const task of tasks) {
      if (task.within === null) continue;
      (this.#within ??= new Map()).set(task.id, task.within);
      if (!hold) this.#live.get(task.within)?.self.send({ type: "JOINED", tasks: [task] });
    }
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
    this.#within?.delete(call.task);
    live.timer?.();
    if (live.inner !== null) this.#leave(live.inner, call.task, outcome);
    const attempt = this.#attempt;
    if (!attempt.alive) return;
    // It was asked to stop and threw: it has stopped. Its error is not the run's.
    if (outcome.kind === "failed" && live.stopped !== null) {
      const streamed = streamedBy(live);
      if (streamed !== null) (this.#cut ??= new Map()).set(call.task, streamed);
      return tell(self, { type: "FAILED" });
    }
    const delay = retryAfter(call, outcome, attempt.cell.deps.random.float());
    if (delay !== null) {
      this.#retrying++;
      self.send({ type: "RETRY" });
      attempt.cell.deps.scheduler.after(delay, () => {
        this.#retrying--;
        self.send({ type: "TRY" });
      });
      return;
    }
    live.refused = outcome.kind === "failed" && outcome.refused !== undefined;
    const broken = (thrown: unknown): void => {
      if (!attempt.alive) return;
      attempt.fail(plainError(thrown));
      tell(self, { type: "FAILED" });
    };
    try {
      const settled = attempt.execution.settle(call.task, outcome);
      if (settled instanceof Promise) this.#settleLater(live, settled, broken);
      else this.#settle(live, settled, false);
    } catch (thrown) {
      broken(thrown);
    }
  }

  /** The graph drives itself: what the task has come to is for that to say. Until then it is no body, and yet at work. */
  #settleLater(live: Live, settled: Promise<Settled>, broken: (thrown: unknown) => void): void {
    const unsettled = (this.#unsettled ??= new Set());
    unsettled.add(live.call.task);
    settled
      .finally(() => unsettled.delete(live.call.task))
      .then((known) => {
        if (this.#attempt.alive) this.#settle(live, known, true);
      })
      .catch(broken);
  }

  #settle(live: Live, { writes, kind, emissions, error }: Settled, later: boolean): void {
    const attempt = this.#attempt;
    const { self, steps } = live;
    if (kind === "again") {
      self.send({ type: "RETRY" });
      self.send({ type: "TRY" });
      return;
    }
    // What a body has journaled is newer than what its engine knows; one that drives itself knows it all.
    attempt.stage(later || steps === live.call.steps ? writes : withSteps(writes, steps), emissions);
    if (kind === "failed")
      attempt.fail(error ?? { error: "Error", message: "the task failed" }, live.refused);
    // Siblings may still run: what this one did is kept even if they, or the server, fail. After the last one the step's
    // own append takes it along: in this turn, or (of a graph that drives itself) as soon as that has planned on.
    if (!later || this.#live.size > 0) attempt.flushSoon();
    tell(self, { type: answers[kind] });
    attempt.settled();
  }

  #leave(inner: InnerLevel, task: string, outcome: TaskOutcome): void {
    if (outcome.kind === "failed") (this.#left ??= new Map()).set(task, inner.position);
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

  /** What is asked of the store carries the attempt's epoch, and is refused when the body is not heard any more. */
  async #store<const Ops extends readonly StoreOp[]>(live: Live, ops: Ops): Promise<StoreResults<Ops>> {
    const { cell } = this.#attempt;
    const check = (): void => {
      if (this.#attempt.alive && this.#live.get(live.call.task) === live) return;
      const message = `This attempt of node "${live.call.node}" is over: it does not reach the store any more`;
      throw new ServiceError("journal.fenced", message);
    };
    check();
    const fence = { thread: cell.key, epoch: cell.record.epoch };
    return cell.deps.store.batch({ tenant: cell.key.tenant, fence, check }, ops);
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
