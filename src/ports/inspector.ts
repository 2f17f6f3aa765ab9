import type { JsonObject } from "../model/json.ts";
import type { Permits } from "../model/permission.ts";

export type ActorKind = "thread" | "run" | "task" | "graph";

/** A live actor, as the inspector shows it. Its ids are those of the API, so they stay the same after a restart. */
export interface InspectedActor {
  /** `thread_id`, `run_id`, a task's id, `subgraph:` and the task that runs it, or `graph:` and the run's id. */
  readonly id: string;
  readonly kind: ActorKind;
  readonly name: string;
  /** Id of the actor that started it; null for a thread. */
  readonly parent: string | null;
  readonly thread: string;
  readonly run: string | null;
  /** The statechart that it runs: `thread`, `run`, `task`, or `graph:` and the graph's name. */
  readonly machine: string;
}

/** A state value, as in XState: a state, or an object with the state inside each region or parent. */
export type InspectedStateValue = string | { readonly [state: string]: InspectedStateValue };

export interface InspectedState {
  readonly status: "active" | "done" | "error" | "stopped";
  readonly value: InspectedStateValue;
  /** The context, with lists cut off. The state of a graph is in `values` only. */
  readonly context: JsonObject;
  readonly children: readonly string[];
  readonly tags: readonly string[];
  readonly output?: JsonObject;
  /** The state of a graph. Present only when the client requests values. */
  readonly values?: JsonObject;
}

export interface ActorSnapshot {
  readonly actor: InspectedActor;
  readonly state: InspectedState;
}

export type InspectedEvent = JsonObject & { readonly type: string };

export interface InspectScope {
  readonly tenant: string;
  /** A thread, or null for every thread of the tenant. */
  readonly thread: string | null;
  /** True to include the states of graphs. */
  readonly values: boolean;
  /** Which threads may be inspected, by their metadata when their actors are created; absent: all. */
  readonly permits?: Permits | undefined;
}

export interface LiveThreadList {
  /** The live threads of a tenant that are permitted, busy threads first. */
  list(tenant: string, limit: number, permits?: Permits): readonly LiveThreadSummary[];
  /** The thread of this run; undefined when the run has ended or is unknown. */
  threadOf(tenant: string, run: string): string | undefined;
}

/** Summary of a thread whose actor is in memory. */
export interface LiveThreadSummary {
  readonly thread: string;
  readonly value: InspectedStateValue;
  /** Number of runs that have not ended. */
  readonly runs: number;
}

/**
 * Observer of live actors. Calls come in order: `actor` first, and after that of its parent. It is called in the middle of a
 * turn: it MUST NOT throw, MUST NOT wait, and MUST NOT send an event to an actor.
 */
export interface Inspector {
  /** Called for each actor with its current state; again when a thread that was unloaded is loaded again. */
  actor(actor: InspectedActor, state: InspectedState): void;
  /** Called when an actor gets an event. `source` is the sender, if that is an actor. */
  event(actor: InspectedActor, event: InspectedEvent, source: string | null): void;
  /** Called when the state of an actor has changed, after `event`. */
  snapshot(actor: InspectedActor, state: InspectedState, event: InspectedEvent): void;
}
