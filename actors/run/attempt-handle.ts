import type { AnyActorRef } from "../xstate.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Stop, RunRecord } from "../../src/model/run.ts";
import type { Sink } from "../../src/ports/sink.ts";

/** The attempt that a thread's cell holds, as its charts and its registry see it. */
export interface Ongoing {
  readonly id: string;
  readonly run: RunRecord;
  readonly sink: Sink;
  /** The run's actor, once it has begun to load. */
  readonly actor: AnyActorRef | undefined;
  /** The root graph's state, once that is loaded. */
  readonly values: JsonObject;
  /** The root graph, or (`within` a task) a subgraph that is at work. */
  graph(within: string | null): OngoingGraph | undefined;
  /** Does the server's stop hold its graphs back, with no node at work? */
  readonly isHalted: boolean;
  /** Leaves the run to the next start, which ends it where it `isCutOff` from the client that wanted it to end then. Resolves once that is stored. */
  leave(isCutOff: boolean): Promise<void>;
  /** From here on nothing of this attempt reaches the log or the storage. */
  revoke(): void;
}

/** A graph of the attempt, as its chart sees it. */
export interface OngoingGraph {
  load(self: AnyActorRef, stopped: boolean): void;
  next(): void;
  execute(task: string, self: AnyActorRef): void;
  abort(): void;
  close(stop: Stop | null): void;
}
