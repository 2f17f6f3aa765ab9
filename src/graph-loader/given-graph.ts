import type { GraphDef } from "../graph/graph-builder.ts";
import type { FactoryRuntime } from "../langgraph/factory-runtime.ts";

// The types of this file are of the public interface: they name no package that a user may not have.

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

type Graph = GraphDef | LangGraph | StateMachine;

/**
 * A graph that a program gives to a server: what `graph()` returns, a graph of LangGraph.js, its builder or an agent, a machine of XState,
 * or a function that gives one of these. A function of a LangGraph.js graph that takes the configuration is called again for each run.
 */
export type GivenGraph =
  | Graph
  // The configuration has the type that the graph's own project gives it.
  // oxlint-disable-next-line typescript/no-explicit-any
  | ((config: any, runtime: FactoryRuntime) => Graph | Promise<Graph>);
