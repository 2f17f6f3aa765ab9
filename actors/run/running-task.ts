import type { AnyActorRef } from "../xstate.ts";
import type { PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { MachineMailbox } from "../../src/model/machine-mailbox.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { StoreOp, StoreResults } from "../../src/model/store-item.ts";
import type { NodeCall, StreamedFact } from "../../src/ports/engine.ts";
import type { NodeIo } from "../../src/ports/node-executor.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";
import type { TaskEvent } from "../actor-events.ts";
import type { TaskSnapshot } from "../task-chart.ts";
import type { GraphExecution } from "./graph-execution.ts";

/**
 * One attempt of a task, while it runs. For a node function, this class is behind `ctx`: it emits streamed data, stores
 * `ctx.step` results and uses the store. For a subgraph, it holds the subgraph's execution.
 */
export class RunningTask implements NodeIo {
  readonly call: NodeCall;
  readonly self: AnyActorRef;
  steps: JsonObject;
  timer: Cancel | null = null;
  /** The messages that the task has streamed; null if they are not kept when the run is stopped. */
  readonly streamed: StreamedFact[] | null;
  /** The subgraph that runs in place of a node function; null if none runs. */
  inner: GraphExecution | null = null;
  /** The reason why the task was aborted; null: the task was not aborted. */
  stopped: DOMException | null = null;
  /** True when the task ended because an answer was refused. */
  refused = false;
  readonly #graph: GraphExecution;
  /** Made when the node first reads the signal, because most nodes never read the signal. */
  #controller: AbortController | null = null;
  #isOver = false;
  #hasRecorded = false;

  constructor(graph: GraphExecution, call: NodeCall, steps: JsonObject, self: AnyActorRef) {
    this.#graph = graph;
    this.call = call;
    this.steps = steps;
    this.self = self;
    this.streamed = call.keepsPartial === true ? [] : null;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.stopped !== null) this.#controller.abort(this.stopped);
    }
    return this.#controller.signal;
  }

  get mailbox(): MachineMailbox | undefined {
    const { attempt } = this.#graph;
    return this.#graph === attempt.root ? attempt.mailbox : undefined;
  }

  abort(reason: DOMException): void {
    this.stopped ??= reason;
    this.#controller?.abort(this.stopped);
  }

  end(): void {
    this.#isOver = true;
  }

  emit(fact: Fact): number {
    if (this.#isOver) return -1;
    const id = this.#graph.attempt.emit(fact);
    if (this.streamed !== null && isMessageFact(fact)) this.streamed.push({ id, fact });
    return id;
  }

  /**
   * Stores the result of a `ctx.step`. The first result of this attempt is stored together with all other writes of the
   * task. A later result is stored alone, unless the other writes are still waiting to be stored.
   */
  record(step: string, value: unknown): Promise<void> {
    const { call } = this;
    const { head, writes, attempt } = this.#graph;
    if (this.#isOver || head === null) return Promise.resolve();
    this.steps = { ...this.steps, [step]: value };
    const { interrupts = [], answered } = writes.get(call.task) ?? {};
    const recorded: PendingTaskWrites = {
      ns: call.ns,
      checkpoint: head.id,
      task: call.task,
      name: call.node,
      interrupts,
      ...(answered !== undefined && { answered }),
      resumes: call.resumes,
      error: null,
      steps: this.steps,
    };
    if (this.#hasRecorded) this.#graph.addStepResult(recorded, step, value);
    else this.#graph.addTaskWrites(recorded, []);
    this.#hasRecorded = true;
    return attempt.flush("noted", false);
  }

  /**
   * Runs operations on the store. They are refused when the attempt of the task or of the run is over, for example
   * after a timeout, or when a later attempt of the run has increased the thread's epoch.
   */
  async store<const Ops extends readonly StoreOp[]>(ops: Ops): Promise<StoreResults<Ops>> {
    const { liveThread } = this.#graph;
    const check = (): void => {
      if (this.#graph.alive && !this.#isOver) return;
      const message = `This attempt of node "${this.call.node}" is over: it can no longer use the store`;
      throw new ServiceError("journal.fenced", message);
    };
    check();
    const fence = { thread: liveThread.key, epoch: liveThread.record.epoch };
    return liveThread.deps.store.batch({ tenant: liveThread.key.tenant, fence, check }, ops);
  }

  /**
   * The messages that the node function, or the tasks of the subgraph, have streamed; null if messages are not kept.
   */
  streamedMessages(): readonly StreamedFact[] | null {
    const { inner, streamed } = this;
    return inner === null || streamed === null ? streamed : [...inner.tasks.streamed().values()].flat();
  }
}

function isMessageFact({ t }: Fact): boolean {
  return t === "token" || t === "piece" || t === "message";
}

/**
 * Sends the outcome of a node function to the task's actor, if the actor is still active. A node function that ignores
 * its abort signal may run longer than the actor.
 */
export function sendTaskOutcome(self: AnyActorRef, event: TaskEvent): void {
  if ((self.getSnapshot() as TaskSnapshot).status === "active") self.send(event);
}

/** The writes of a task, with the `ctx.step` results that its node function has recorded. */
export function writesWithStepResults(
  writes: PendingTaskWrites,
  steps: NodeCall["steps"],
): PendingTaskWrites {
  return { ...writes, steps: { ...writes.steps, ...steps } };
}
