import type { AnyActorRef } from "../xstate.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { StopReason, RunRecord } from "../../src/model/run.ts";
import type { Sink } from "../../src/ports/sink.ts";

/** The attempt in progress of a live thread, as the statecharts and the registry see it. */
export interface AttemptHandle {
  readonly id: string;
  readonly run: RunRecord;
  readonly sink: Sink;
  /** The run's actor; undefined until loading begins. */
  readonly actor: AnyActorRef | undefined;
  /** The root graph's state; empty until it is loaded. */
  readonly values: JsonObject;
  /** The root graph (`within` is null), or the subgraph that runs as the node of the task `within`. */
  graph(within: string | null): GraphHandle | undefined;
  /** True when the server is stopping, its graphs are paused, and no node is running. */
  readonly isHalted: boolean;
  /**
   * Parks the run: the next start of the server takes it up. Where `isCutOff`, the next start ends it instead,
   * because its client asked for an end with the connection. Resolves when the change is stored.
   */
  park(isCutOff: boolean): Promise<void>;
  /** Ends the attempt: from now on it writes nothing to the log or the storage. */
  revoke(): void;
}

/** One graph of an attempt, as the run statechart sees it. */
export interface GraphHandle {
  load(self: AnyActorRef, stopped: boolean): void;
  next(): void;
  execute(task: string, self: AnyActorRef): void;
  abort(): void;
  close(stop: StopReason | null): void;
}
