import type { AnyActorRef } from "../xstate.ts";
import type { TaskWrites } from "../../src/model/checkpoint.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { NodeCall, Position, StreamedFact } from "../../src/ports/engine.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";
import type { TaskEvent } from "../messages.ts";
import type { TaskSnapshot } from "../task-chart.ts";

/** A subgraph that runs as a task's node. */
export interface SubgraphHandle {
  readonly position: Position;
  streamed(): ReadonlyMap<string, readonly StreamedFact[]>;
  revoke(): void;
}

/** A task in progress: its node body, or its subgraph. */
export interface RunningTask {
  readonly call: NodeCall;
  /** Created on the first read of the signal: most nodes never read it. */
  controller: AbortController | null;
  /** The reason it was told to stop; null: it was not. */
  stopped: DOMException | null;
  readonly self: AnyActorRef;
  steps: JsonObject;
  timer: Cancel | null;
  /** Messages that it has streamed; null where a stopped run does not keep them. */
  readonly streamed: StreamedFact[] | null;
  /** The subgraph that runs in place of a body. */
  inner: SubgraphHandle | null;
  /** True when it ended because an answer was refused. */
  refused: boolean;
}

/** The messages that a task has streamed, or the tasks of its subgraph. */
export function streamedMessages({ streamed, inner }: RunningTask): readonly StreamedFact[] | null {
  return inner === null || streamed === null ? streamed : [...inner.streamed().values()].flat();
}

export function isMessageFact({ t }: Fact): boolean {
  return t === "token" || t === "piece" || t === "message";
}

export function signalOf(live: RunningTask): AbortSignal {
  if (live.controller === null) {
    live.controller = new AbortController();
    if (live.stopped !== null) live.controller.abort(live.stopped);
  }
  return live.controller.signal;
}

export function abortTask(live: RunningTask, reason: DOMException): void {
  live.stopped ??= reason;
  live.controller?.abort(live.stopped);
}

/**
 * Sends a task's actor the outcome of its body. A body that ignored its abort signal may outlive the actor: the actor
 * stops after the grace period, or, for a graph that runs in another task's body, with that task.
 */
export function sendOutcome(self: AnyActorRef, event: TaskEvent): void {
  if ((self.getSnapshot() as TaskSnapshot).status === "active") self.send(event);
}

/** The writes of a task, with the steps that its body has journaled. */
export function withSteps(writes: TaskWrites, steps: NodeCall["steps"]): TaskWrites {
  return { ...writes, steps: { ...writes.steps, ...steps } };
}
