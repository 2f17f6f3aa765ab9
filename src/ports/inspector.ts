import type { JsonObject } from "../model/json.ts";

export type ActorKind = "thread" | "run" | "task" | "graph";

/** A live actor as it is shown. Its names are those of the wire, not those of a process: they hold over restarts. */
export interface ShownActor {
  /** `thread_id`, `run_id`, a task's id, `subgraph:` and the task that runs it, or `graph:` and the run's id. */
  readonly id: string;
  readonly kind: ActorKind;
  readonly name: string;
  /** Id of the actor that has started it; null for a thread. */
  readonly parent: string | null;
  readonly thread: string;
  readonly run: string | null;
  /** The chart that it follows: `thread`, `run`, `task`, or `graph:` and the graph's name. */
  readonly machine: string;
}

/** As XState has it: a state, or by region or parent what is inside it. */
export type ShownValue = string | { readonly [state: string]: ShownValue };

export interface ShownState {
  readonly status: "active" | "done" | "error" | "stopped";
  readonly value: ShownValue;
  /** Small: lists are cut off. No state of a graph, unless `values` says so. */
  readonly context: JsonObject;
  /** Names of its children. */
  readonly children: readonly string[];
  readonly tags: readonly string[];
  readonly output?: JsonObject;
  /** A graph's state. Present only where values are asked for. */
  readonly values?: JsonObject;
}

export interface Shown {
  readonly actor: ShownActor;
  readonly state: ShownState;
}

export type ShownEvent = JsonObject & { readonly type: string };

/** Which actors are wanted. */
export interface InspectScope {
  readonly tenant: string;
  /** Null: every thread of the tenant. */
  readonly thread: string | null;
  /** With the states of graphs. */
  readonly values: boolean;
}

export interface LiveThreads {
  /** Those of a tenant: those at work first. */
  list(tenant: string, limit: number): readonly LiveThread[];
  /** The one that has this run, which has not ended. */
  threadOf(tenant: string, run: string): string | undefined;
}

/** A thread whose actor lives, in short. */
export interface LiveThread {
  readonly thread: string;
  readonly value: ShownValue;
  /** Runs that have not ended. */
  readonly runs: number;
}

/**
 * Is shown actors as they live, in order: an actor before anything else of it, after the one that has started it. It is called in
 * the middle of a turn: it MUST NOT throw, MUST NOT wait, and MUST NOT tell an actor anything.
 */
export interface Inspector {
  /** An actor, as it stands. Told again when a thread that was let go wakes. */
  actor(actor: ShownActor, state: ShownState): void;
  /** It is told something, by `source` where that is another actor. */
  event(actor: ShownActor, event: ShownEvent, source: string | null): void;
  /** It stands otherwise than it was shown, after `event`. */
  snapshot(actor: ShownActor, state: ShownState, event: ShownEvent): void;
}
