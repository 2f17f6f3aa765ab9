import type { GraphDef } from "../graph/graph-builder.ts";
import type { FactoryRuntime } from "../langgraph/factory-runtime.ts";

// The types in this file are public, so they must not import packages that a user may not have installed.

/** A graph of LangGraph.js by its shape. */
type LangGraph =
  // A compiled graph, or an entrypoint.
  | { readonly lg_is_pregel: boolean }
  // A builder.
  | { compile(): { readonly lg_is_pregel: boolean } }
  // An agent of `createAgent`.
  | { readonly graph: { readonly lg_is_pregel: boolean } };

/** A machine of XState 5 by its shape. */
interface StateMachine {
  readonly config: object;
  readonly root: object;
  readonly implementations: object;
}

/** Versions of one machine. The last of them is the current one. */
interface MachineVersions {
  readonly versions: readonly StateMachine[];
  /**
   * Converts a snapshot of a version that is not among `versions` to one of the current version. `from` is the version of the snapshot; null
   * for a machine without a version.
   */
  // The snapshot has the type that the machine gives it.
  // oxlint-disable-next-line typescript/no-explicit-any
  migrate?(snapshot: any, from: string | null): object;
}

type Graph = GraphDef | LangGraph | StateMachine | MachineVersions;

/**
 * A graph that a program passes to a server, rather than one that is loaded from a file: the result of `graph()`, a graph of LangGraph.js,
 * its builder or an agent, an XState machine or versions of one, or a function that returns one of these. A function that takes the
 * configuration and returns a graph of LangGraph.js is called again for each run.
 */
export type InlineGraph =
  | Graph
  // The configuration has the type that the graph's own project gives it.
  // oxlint-disable-next-line typescript/no-explicit-any
  | ((config: any, runtime: FactoryRuntime) => Graph | Promise<Graph>);
