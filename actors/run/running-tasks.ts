import type { AnyActorRef } from "../xstate.ts";
import type { TaskWrites } from "../../src/model/checkpoint.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { NodeCall, Position, StreamedFact } from "../../src/ports/engine.ts";
import type { Cancel } from "../../src/ports/scheduler.ts";
import type { TaskEvent } from "../messages.ts";
import type { TaskSnapshot } from "../task.ts";

/** A graph that runs in a task. */
export interface InnerLevel {
  readonly position: Position;
  streamed(): ReadonlyMap<string, readonly StreamedFact[]>;
  revoke(): void;
}

/** A node body that runs. */
export interface Live {
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
  /** Has it ended because an answer was refused? */
  refused: boolean;
}

/** What a body has streamed, or the bodies of the graph within. */
export function streamedBy({ streamed, inner }: Live): readonly StreamedFact[] | null {
  return inner === null || streamed === null ? streamed : [...inner.streamed().values()].flat();
}

export function ofMessage({ t }: Fact): boolean {
  return t === "token" || t === "piece" || t === "message";
}

export function signalOf(live: Live): AbortSignal {
  if (live.controller === null) {
    live.controller = new AbortController();
    if (live.stopped !== null) live.controller.abort(live.stopped);
  }
  return live.controller.signal;
}

export function stop(live: Live, reason: DOMException): void {
  live.stopped ??= reason;
  live.controller?.abort(live.stopped);
}

/**
 * Tells a task's actor how its body has ended. One that did not listen when it was told to stop may outlive its actor: that
 * goes after the grace, and, where a graph runs in another task's body, with that task.
 */
export function tell(self: AnyActorRef, event: TaskEvent): void {
  if ((self.getSnapshot() as TaskSnapshot).status === "active") self.send(event);
}

/** What a task has left, with what its body has journaled. */
export function withSteps(writes: TaskWrites, steps: NodeCall["steps"]): TaskWrites {
  return { ...writes, steps: { ...writes.steps, ...steps } };
}
