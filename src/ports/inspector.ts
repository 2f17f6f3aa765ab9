import type { JsonObject } from "../model/json.ts";
import type { Permits } from "../model/permitted-resources.ts";

export type ActorKind = "thread" | "run" | "task" | "graph";

/** A live actor, as the inspector shows it. Its ids are those of the API, so they stay the same after a restart. */
export interface InspectedActor {
  /**
   * The id of the thread, run or task. For a subgraph `subgraph:` and the id of the task that runs the subgraph; for a graph `graph:` and
   * the id of the run.
   */
  readonly id: string;
  readonly kind: ActorKind;
  readonly name: string;
  /** The id of the actor that started this actor; null for a thread. */
  readonly parent: string | null;
  readonly thread: string;
  readonly run: string | null;
  /** The statechart that the actor runs: `thread`, `run`, `task`, or `graph:` and the graph's name. */
  readonly machine: string;
}

/** A state value, as in XState: the name of a state, or an object with the state value inside each parent state or region. */
export type InspectedStateValue = string | { readonly [state: string]: InspectedStateValue };

export interface InspectedState {
  readonly status: "active" | "done" | "error" | "stopped";
  readonly value: InspectedStateValue;
  /** The actor's context; long lists are cut off. A graph has its state in `values` instead. */
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
  /** Which threads may be inspected, judged by their metadata when their actors are created; absent: all. */
  readonly permits?: Permits | undefined;
}

export interface LiveThreadList {
  /** Up to `limit` threads of the tenant whose actors are in memory, busy threads first. With `permits`, only threads that it accepts. */
  list(tenant: string, limit: number, permits?: Permits): readonly LiveThreadSummary[];
  /** The id of the thread in memory that has this run in progress or queued; undefined if there is none. */
  threadOf(tenant: string, run: string): string | undefined;
}

/** Summary of a thread whose actor is in memory. */
export interface LiveThreadSummary {
  readonly thread: string;
  readonly value: InspectedStateValue;
  /** Number of runs in progress or queued. */
  readonly runs: number;
}

/**
 * Observer of live actors. For each actor, the method {@link Inspector.actor} is called before the other methods; the call for a parent
 * comes before the calls for its children. The methods are called while actors handle an event: they MUST NOT throw, wait, or send an event
 * to an actor.
 */
export interface Inspector {
  /** Called when an actor is created, with its current state: also when a thread that was unloaded is loaded again. */
  actor(actor: InspectedActor, state: InspectedState): void;
  /** Called when an actor receives an event. `source`: the id of the actor that sent the event; null if no actor did. */
  event(actor: InspectedActor, event: InspectedEvent, source: string | null): void;
  /**
   * Called when the state of an actor has changed. The parameter `event` is the last event that the actor received, which the method
   * {@link Inspector.event} has already reported; it is `xstate.init` if the actor received no event since its inspection began.
   */
  snapshot(actor: InspectedActor, state: InspectedState, event: InspectedEvent): void;
}
