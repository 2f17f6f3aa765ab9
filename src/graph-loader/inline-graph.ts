import type { GraphDef } from "../graph/graph-builder.ts";
import type { FactoryRuntime } from "../langgraph/factory-runtime.ts";

// The types in this file are public, so they must not import packages that a user may not have installed.

/** The shape of a LangGraph.js graph. Its own type is not imported, because the package may not be installed. */
type LangGraph =
  // A compiled graph, or an entrypoint.
  | { readonly lg_is_pregel: boolean }
  // A builder.
  | { compile(): { readonly lg_is_pregel: boolean } }
  // An agent of `createAgent`.
  | { readonly graph: { readonly lg_is_pregel: boolean } };

/** The shape of an XState 5 machine. Its own type is not imported, because the package may not be installed. */
interface StateMachine {
  readonly config: object;
  readonly root: object;
  readonly implementations: object;
}

/**
 * The active states of a machine, as in XState: the name of a state; or an object with the active states in
 * each region, or in each active state that has child states.
 */
type StateValue = string | { readonly [state: string]: StateValue | undefined };

/** XState's snapshot of a machine, as it is stored. */
export interface MachineSnapshot {
  readonly value: StateValue;
  readonly context: { readonly [key: string]: unknown };
  readonly status: "active" | "done" | "error" | "stopped";
  readonly output?: unknown;
  readonly error?: unknown;
  /** What history states remember: the ids of states. */
  readonly historyValue?: { readonly [id: string]: readonly { readonly id: string }[] };
  /** Child actors, by id. */
  readonly children?: {
    readonly [id: string]:
      | { readonly src: string; readonly snapshot: object; readonly systemId?: string | undefined }
      | undefined;
  };
}

/** Versions of one machine. The last of them is the current one. */
interface MachineVersions {
  readonly versions: readonly StateMachine[];
  /**
   * Converts a snapshot of a version that is not listed here to a snapshot of the current version. `from` is null for a
   * machine without a version.
   */
  migrate?(snapshot: MachineSnapshot, from: string | null): Pick<MachineSnapshot, "value" | "context">;
}

type Graph = GraphDef | LangGraph | StateMachine | MachineVersions;

/**
 * A graph that a program passes to a server, rather than one that is loaded from a file: the result of `graph()`, a graph of LangGraph.js,
 * its builder or an agent, an XState machine or versions of one, or a function that returns one of these. A function that takes the
 * configuration and returns a graph of LangGraph.js is called again for each run.
 */
export type InlineGraph =
  | Graph
  // `any`, because the graph's own project declares the type of the configuration.
  // oxlint-disable-next-line typescript/no-explicit-any
  | ((config: any, runtime: FactoryRuntime) => Graph | Promise<Graph>);
