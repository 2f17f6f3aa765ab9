import type { AnyActorRef } from "../xstate.ts";
import { toPlainError } from "../../src/model/errors.ts";
import { SmallMap } from "../../src/model/small-map.ts";
import type {
  NodeCall,
  CheckpointWithState,
  SettledTask,
  StreamedFact,
  TaskOutcome,
} from "../../src/ports/engine.ts";
import type { JoiningTask } from "../../src/ports/engine-host.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";
import type { GraphExecution } from "./graph-execution.ts";
import { taskRetryDelay } from "./task-retry-delay.ts";
import { RunningTask, sendTaskOutcome, writesWithStepResults } from "./running-task.ts";

/** Called when a subgraph that is a task's node ends. `stopped`: whether the subgraph was aborted. */
export type OnSubgraphEnd = (outcome: TaskOutcome, stopped: boolean) => void;

const answers = { done: "DONE", interrupted: "INTERRUPTED", failed: "FAILED" } as const;

/** Runs the tasks of one graph execution: starts their node functions, handles the outcomes, and aborts the tasks. */
export class TaskRunner {
  readonly #graph: GraphExecution;
  readonly #running = new SmallMap<string, RunningTask>();
  /** For each task of a graph that a node function calls: the id of the task of that node function. By task id. */
  #parents: Map<string, string> | undefined;
  /** Ids of tasks whose node functions have ended but whose outcome the engine has not settled yet. */
  #unsettled: Set<string> | undefined;
  /** Functions that cancel the retry timers of failed tasks, by task id. */
  #retrying: Map<string, Cancel> | undefined;
  /** The messages that stopped tasks have streamed, by task id. */
  #stopped: Map<string, readonly StreamedFact[]> | undefined;
  /**
   * The positions that the subgraphs of failed tasks have reached, by task id. The next attempt of the task resumes
   * from there.
   */
  #reached: Map<string, CheckpointWithState> | undefined;

  constructor(graph: GraphExecution) {
    this.#graph = graph;
  }

  execute(task: string, self: AnyActorRef): void {
    const { execution, liveThread } = this.#graph;
    let call: NodeCall;
    try {
      call = execution.call(task);
    } catch (thrown) {
      this.#graph.fail(toPlainError(thrown));
      return self.send({ type: "FAILED" });
    }
    // The results of `ctx.step` from an earlier attempt of the task are reused, so that those steps do not run again.
    const known = this.#graph.writes.get(task)?.steps;
    const steps = known === undefined ? call.steps : { ...call.steps, ...known };
    const live = new RunningTask(this.#graph, call, steps, self);
    this.#running.set(task, live);
    if (call.timeout !== null) {
      live.timer = liveThread.deps.scheduler.after(call.timeout, () => this.#timedOut(live));
    }
    if (call.subgraph) return this.#startSubgraph(live);
    liveThread.deps.executor.run(steps === call.steps ? call : { ...call, steps }, live).then(
      (outcome) => this.#ended(live, outcome),
      // An executor that rejects breaks its contract, but the run must still end.
      (thrown: unknown) => this.#ended(live, { kind: "failed", error: toPlainError(thrown) }),
    );
  }

  /** Starts a subgraph: the task's actor spawns the subgraph's actor as its child. */
  #startSubgraph(live: RunningTask): void {
    const { call, self } = live;
    try {
      const before = this.#reached?.get(call.task);
      live.inner = this.#graph.attempt.startSubgraph(this.#graph, call, before, (outcome, stopped) => {
        if (stopped) live.abort(new DOMException("The run was stopped", "AbortError"));
        this.#ended(live, outcome);
      });
    } catch (thrown) {
      return this.#ended(live, { kind: "failed", error: toPlainError(thrown) });
    }
    self.send({ type: "ENTER" });
  }

  /**
   * The number of tasks whose node functions run, that wait for their next attempt, or whose outcome the
   * engine has not settled yet. A node function that waits for tasks of a graph that it calls is not counted.
   */
  get bodyCount(): number {
    const waiting = new Set(this.#parents?.values());
    let count = (this.#unsettled?.size ?? 0) + (this.#retrying?.size ?? 0);
    for (const [task, { inner }] of this.#running) if (inner === null && !waiting.has(task)) count++;
    return count;
  }

  /** True when a subgraph runs as the node of one of the tasks. */
  get hasSubgraph(): boolean {
    for (const { inner } of this.#running.values()) if (inner !== null) return true;
    return false;
  }

  /**
   * Adds tasks of graphs that node functions call. Each starts as a child of the calling task's actor. With `hold` (the
   * server is stopping), the tasks do not start; they run after the next start of the server.
   */
  join(tasks: readonly JoiningTask[], hold: boolean): void {
    for (const task of tasks) {
      if (task.within === null) continue;
      (this.#parents ??= new Map()).set(task.id, task.within);
      if (!hold) this.#running.get(task.within)?.self.send({ type: "JOINED", tasks: [task] });
    }
  }

  /**
   * Fails a task at its time limit, without waiting for its node function. What the node function does from now on has
   * no effect.
   */
  #timedOut(live: RunningTask): void {
    const { node, timeout } = live.call;
    const message = `Node "${node}" took longer than ${timeout} ms`;
    this.#ended(live, { kind: "failed", error: { error: "NodeTimeoutError", message } });
    live.abort(new DOMException(message, "TimeoutError"));
  }

  #ended(live: RunningTask, outcome: TaskOutcome): void {
    const { call, self } = live;
    if (this.#running.get(call.task) !== live) return;
    this.#running.delete(call.task);
    live.end();
    this.#parents?.delete(call.task);
    live.timer?.();
    if (live.inner !== null) this.#endSubgraph(live.inner, call.task, outcome);
    const graph = this.#graph;
    if (!graph.alive) return;
    // The node function was asked to stop, and stopped by throwing. Its error is not an error of the run.
    if (outcome.kind === "failed" && live.stopped !== null) {
      const streamed = live.streamedMessages();
      if (streamed !== null) (this.#stopped ??= new Map()).set(call.task, streamed);
      return sendTaskOutcome(self, { type: "FAILED" });
    }
    const delay = taskRetryDelay(call, outcome, graph.liveThread.deps.random.float());
    if (delay !== null) {
      self.send({ type: "RETRY" });
      const retry = () => {
        this.#retrying?.delete(call.task);
        self.send({ type: "TRY" });
      };
      (this.#retrying ??= new Map()).set(call.task, graph.liveThread.deps.scheduler.after(delay, retry));
      return;
    }
    if (outcome.kind === "failed" && outcome.isLogged) graph.attempt.noteLogged(outcome.error);
    live.refused = outcome.kind === "failed" && outcome.refused !== undefined;
    const broken = (thrown: unknown): void => {
      if (!graph.alive) return;
      graph.fail(toPlainError(thrown));
      sendTaskOutcome(self, { type: "FAILED" });
    };
    try {
      const settled = graph.execution.settle(call.task, outcome);
      if (settled instanceof Promise) this.#settleLater(live, settled, broken);
      else this.#settle(live, settled, false);
    } catch (thrown) {
      broken(thrown);
    }
  }

  /**
   * Settles a task of a graph that plans its own steps (LangGraph.js), whose engine decides the result later. Until
   * then the task counts as running, although its node function has ended.
   */
  #settleLater(live: RunningTask, settled: Promise<SettledTask>, broken: (thrown: unknown) => void): void {
    const unsettled = (this.#unsettled ??= new Set());
    unsettled.add(live.call.task);
    settled
      .finally(() => unsettled.delete(live.call.task))
      .then((known) => {
        if (this.#graph.alive) this.#settle(live, known, true);
      })
      .catch(broken);
  }

  #settle(live: RunningTask, { writes, kind, emissions, error }: SettledTask, later: boolean): void {
    const graph = this.#graph;
    const { self, steps } = live;
    if (kind === "again") {
      self.send({ type: "RETRY" });
      self.send({ type: "TRY" });
      return;
    }
    // The engine's writes may lack results of `ctx.step`, which were stored while the node function ran. The writes of
    // a graph that plans its own steps (LangGraph.js, `later`) contain them already.
    graph.addTaskWrites(
      later || steps === live.call.steps ? writes : writesWithStepResults(writes, steps),
      emissions,
    );
    if (kind === "failed") graph.fail(error ?? { error: "Error", message: "the task failed" }, live.refused);
    // Stores the result soon, so that it is kept even if another task or the server fails. In a graph that plans its
    // own steps (`later`), the result of the last task waits for the append of the step.
    if (!later || this.#running.size > 0) graph.attempt.flushSoon();
    sendTaskOutcome(self, { type: answers[kind] });
    if (graph.liveThread.owner.draining) graph.attempt.checkHalted();
  }

  #endSubgraph(inner: GraphExecution, task: string, outcome: TaskOutcome): void {
    if (outcome.kind === "failed") (this.#reached ??= new Map()).set(task, inner.position);
    inner.revoke();
  }

  abort(reason: string): void {
    for (const live of this.#running.values()) live.abort(new DOMException(reason, "AbortError"));
  }

  /**
   * The messages that tasks had streamed when the run was stopped, by task id. Includes tasks whose node functions
   * ignore the signal.
   */
  streamed(): ReadonlyMap<string, readonly StreamedFact[]> {
    const all = new Map(this.#stopped);
    for (const [task, live] of this.#running) {
      const streamed = live.streamedMessages();
      if (streamed !== null) all.set(task, streamed);
    }
    return all;
  }

  revoke(): void {
    this.abort("The attempt is over");
    for (const live of this.#running.values()) {
      live.end();
      live.timer?.();
      live.inner?.revoke();
    }
    this.#running.clear();
    for (const cancel of this.#retrying?.values() ?? []) cancel();
    this.#retrying?.clear();
  }
}
