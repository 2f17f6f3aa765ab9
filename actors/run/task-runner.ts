import type { AnyActorRef } from "../xstate.ts";
import type { CheckpointHead, TaskWrites } from "../../src/model/checkpoint.ts";
import { toPlainError, type PlainError, ServiceError } from "../../src/model/errors.ts";
import { SmallMap } from "../../src/model/small-map.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { StoreOp, StoreResults } from "../../src/model/store-item.ts";
import type {
  Emission,
  Execution,
  NodeCall,
  Position,
  SettledTask,
  StreamedFact,
  TaskOutcome,
} from "../../src/ports/engine.ts";
import type { JoiningTask } from "../../src/ports/engine-host.ts";
import type { LiveThread } from "../thread/live-thread.ts";
import {
  type SubgraphHandle,
  type RunningTask,
  isMessageFact,
  abortTask,
  streamedMessages,
  sendOutcome,
  withSteps,
} from "./running-tasks.ts";
import { taskRetryDelay } from "./retry-delay.ts";
import { TaskIo } from "./node-io.ts";

/** Called when a subgraph that is a task's node ends. `stopped`: it was told to stop. */
export type OnSubgraphEnd = (outcome: TaskOutcome, stopped: boolean) => void;

/** The graph execution that the tasks belong to. */
export interface TaskOwner {
  readonly liveThread: LiveThread;
  readonly execution: Execution;
  readonly alive: boolean;
  readonly head: CheckpointHead | null;
  readonly writes: ReadonlyMap<string, TaskWrites>;
  emit(fact: Fact): number;
  addTaskWrites(writes: TaskWrites, emissions: readonly Emission[]): void;
  flush(kind: string, durable: boolean): Promise<void>;
  flushSoon(): void;
  /** Records the failure of a task. `refused`: only because an answer was refused. */
  fail(error: PlainError, refused?: boolean): void;
  /** Notes an error that a node failed with and that the host has logged. */
  noteLogged(error: PlainError): void;
  startSubgraph(call: NodeCall, before: Position | undefined, ended: OnSubgraphEnd): SubgraphHandle;
  /** Called when the end of a body is settled. */
  taskSettled(): void;
}

const answers = { done: "DONE", interrupted: "INTERRUPTED", failed: "FAILED" } as const;

/** Runs the tasks of one graph execution: starts their bodies, handles their outcomes, and aborts them. */
export class TaskRunner {
  readonly #owner: TaskOwner;
  readonly #running = new SmallMap<string, RunningTask>();
  /** Tasks of graphs that run inside another task's body: the id of that task, by the id of the inner one. */
  #parents: Map<string, string> | undefined;
  /** Ids of tasks whose bodies have ended but whose outcome the engine has not settled yet. */
  #unsettled: Set<string> | undefined;
  /** The number of tasks that wait for another try. */
  #retrying = 0;
  /** Messages that stopped tasks had streamed, by task id. */
  #stopped: Map<string, readonly StreamedFact[]> | undefined;
  /** Positions that the subgraphs of failed tasks reached, by task id: another try resumes from there. */
  #reached: Map<string, Position> | undefined;

  constructor(attempt: TaskOwner) {
    this.#owner = attempt;
  }

  execute(task: string, self: AnyActorRef): void {
    const { execution, liveThread } = this.#owner;
    let call: NodeCall;
    try {
      call = execution.call(task);
    } catch (thrown) {
      this.#owner.fail(toPlainError(thrown));
      return self.send({ type: "FAILED" });
    }
    // Steps that an earlier try has journaled are not run again.
    const known = this.#owner.writes.get(task)?.steps;
    const steps = known === undefined ? call.steps : { ...call.steps, ...known };
    const streamed: StreamedFact[] | null = call.keepsPartial === true ? [] : null;
    const live: RunningTask = {
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
    this.#running.set(task, live);
    const io = new TaskIo(
      live,
      (fact) => this.#emit(live, fact),
      (step, value) => this.#record(live, step, value),
      (ops) => this.#store(live, ops),
    );
    if (call.timeout !== null) {
      live.timer = liveThread.deps.scheduler.after(call.timeout, () => this.#timedOut(live));
    }
    if (call.subgraph) return this.#startSubgraph(live);
    liveThread.deps.host.run(steps === call.steps ? call : { ...call, steps }, io).then(
      (outcome) => this.#ended(live, outcome),
      // The host promises never to reject; if it does even so, the run must still end.
      (thrown: unknown) => this.#ended(live, { kind: "failed", error: toPlainError(thrown) }),
    );
  }

  #emit(live: RunningTask, fact: Fact): number {
    if (this.#running.get(live.call.task) !== live) return -1;
    const id = this.#owner.emit(fact);
    if (live.streamed !== null && isMessageFact(fact)) live.streamed.push({ id, fact });
    return id;
  }

  /** Starts a subgraph: the task's actor spawns the subgraph's actor as its child. */
  #startSubgraph(live: RunningTask): void {
    const { call, self } = live;
    try {
      live.inner = this.#owner.startSubgraph(call, this.#reached?.get(call.task), (outcome, stopped) => {
        if (stopped) abortTask(live, new DOMException("The run was stopped", "AbortError"));
        this.#ended(live, outcome);
      });
    } catch (thrown) {
      return this.#ended(live, { kind: "failed", error: toPlainError(thrown) });
    }
    self.send({ type: "ENTER" });
  }

  /** The number of bodies that run or wait for another try. A body that waits for tasks within it is not counted. */
  get bodyCount(): number {
    const waiting = new Set(this.#parents?.values());
    let count = (this.#unsettled?.size ?? 0) + this.#retrying;
    for (const [task, { inner }] of this.#running) if (inner === null && !waiting.has(task)) count++;
    return count;
  }

  /** True when a subgraph runs as the node of one of the tasks. */
  get hasSubgraph(): boolean {
    for (const { inner } of this.#running.values()) if (inner !== null) return true;
    return false;
  }

  /**
   * Adds tasks of graphs that run inside a task's body. Their actors start below that task's actor, unless the server
   * is stopping (`hold`).
   */
  join(tasks: readonly JoiningTask[], hold: boolean): void {
    for (const task of tasks) {
      if (task.within === null) continue;
      (this.#parents ??= new Map()).set(task.id, task.within);
      if (!hold) this.#running.get(task.within)?.self.send({ type: "JOINED", tasks: [task] });
    }
  }

  /** Fails the task without waiting for its body: whatever that does from now on has no effect. */
  #timedOut(live: RunningTask): void {
    const { node, timeout } = live.call;
    const message = `Node "${node}" took longer than ${timeout} ms`;
    this.#ended(live, { kind: "failed", error: { error: "NodeTimeoutError", message } });
    abortTask(live, new DOMException(message, "TimeoutError"));
  }

  #ended(live: RunningTask, outcome: TaskOutcome): void {
    const { call, self } = live;
    if (this.#running.get(call.task) !== live) return;
    this.#running.delete(call.task);
    this.#parents?.delete(call.task);
    live.timer?.();
    if (live.inner !== null) this.#endSubgraph(live.inner, call.task, outcome);
    const attempt = this.#owner;
    if (!attempt.alive) return;
    // It was asked to stop and threw: it has stopped. Its error does not become the run's.
    if (outcome.kind === "failed" && live.stopped !== null) {
      const streamed = streamedMessages(live);
      if (streamed !== null) (this.#stopped ??= new Map()).set(call.task, streamed);
      return sendOutcome(self, { type: "FAILED" });
    }
    const delay = taskRetryDelay(call, outcome, attempt.liveThread.deps.random.float());
    if (delay !== null) {
      this.#retrying++;
      self.send({ type: "RETRY" });
      attempt.liveThread.deps.scheduler.after(delay, () => {
        this.#retrying--;
        self.send({ type: "TRY" });
      });
      return;
    }
    if (outcome.kind === "failed" && outcome.isLogged) attempt.noteLogged(outcome.error);
    live.refused = outcome.kind === "failed" && outcome.refused !== undefined;
    const broken = (thrown: unknown): void => {
      if (!attempt.alive) return;
      attempt.fail(toPlainError(thrown));
      sendOutcome(self, { type: "FAILED" });
    };
    try {
      const settled = attempt.execution.settle(call.task, outcome);
      if (settled instanceof Promise) this.#settleLater(live, settled, broken);
      else this.#settle(live, settled, false);
    } catch (thrown) {
      broken(thrown);
    }
  }

  /**
   * Settles a task of a graph that drives itself: the engine decides its outcome later. Until then the task counts as
   * running, though its body does not.
   */
  #settleLater(live: RunningTask, settled: Promise<SettledTask>, broken: (thrown: unknown) => void): void {
    const unsettled = (this.#unsettled ??= new Set());
    unsettled.add(live.call.task);
    settled
      .finally(() => unsettled.delete(live.call.task))
      .then((known) => {
        if (this.#owner.alive) this.#settle(live, known, true);
      })
      .catch(broken);
  }

  #settle(live: RunningTask, { writes, kind, emissions, error }: SettledTask, later: boolean): void {
    const attempt = this.#owner;
    const { self, steps } = live;
    if (kind === "again") {
      self.send({ type: "RETRY" });
      self.send({ type: "TRY" });
      return;
    }
    // Results of `ctx.step` are stored while the body runs, so they may be newer than the engine's writes: they are added.
    // An engine that drives itself has them already.
    attempt.addTaskWrites(later || steps === live.call.steps ? writes : withSteps(writes, steps), emissions);
    if (kind === "failed")
      attempt.fail(error ?? { error: "Error", message: "the task failed" }, live.refused);
    // Siblings may still run: the result of this task is kept even if they, or the server, fail. After the last task
    // the append of the step includes its result: in this turn, or (for a graph that drives itself) as soon as the
    // engine has planned the next step.
    if (!later || this.#running.size > 0) attempt.flushSoon();
    sendOutcome(self, { type: answers[kind] });
    attempt.taskSettled();
  }

  #endSubgraph(inner: SubgraphHandle, task: string, outcome: TaskOutcome): void {
    if (outcome.kind === "failed") (this.#reached ??= new Map()).set(task, inner.position);
    inner.revoke();
  }

  /** Stores a `ctx.step` record with the task's other writes. */
  #record(live: RunningTask, step: string, value: unknown): Promise<void> {
    const attempt = this.#owner;
    const { call } = live;
    if (this.#running.get(call.task) !== live || attempt.head === null) return Promise.resolve();
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
    attempt.addTaskWrites(writes, []);
    return attempt.flush("noted", false);
  }

  /**
   * Runs operations on the store. They carry the attempt's epoch, and are refused when the body has timed out or the
   * attempt is over.
   */
  async #store<const Ops extends readonly StoreOp[]>(
    live: RunningTask,
    ops: Ops,
  ): Promise<StoreResults<Ops>> {
    const { liveThread } = this.#owner;
    const check = (): void => {
      if (this.#owner.alive && this.#running.get(live.call.task) === live) return;
      const message = `This attempt of node "${live.call.node}" is over: it can no longer use the store`;
      throw new ServiceError("journal.fenced", message);
    };
    check();
    const fence = { thread: liveThread.key, epoch: liveThread.record.epoch };
    return liveThread.deps.store.batch({ tenant: liveThread.key.tenant, fence, check }, ops);
  }

  /** Aborts the signal of every body. */
  abort(reason: string): void {
    for (const live of this.#running.values()) abortTask(live, new DOMException(reason, "AbortError"));
  }

  /**
   * The messages that bodies had streamed when the run was stopped, by task id, including bodies that ignore the
   * signal.
   */
  streamed(): ReadonlyMap<string, readonly StreamedFact[]> {
    const all = new Map(this.#stopped);
    for (const [task, live] of this.#running) {
      const streamed = streamedMessages(live);
      if (streamed !== null) all.set(task, streamed);
    }
    return all;
  }

  revoke(): void {
    this.abort("The attempt is over");
    for (const { timer, inner } of this.#running.values()) {
      timer?.();
      inner?.revoke();
    }
    this.#running.clear();
  }
}
