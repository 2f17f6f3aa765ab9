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

type Graph = GraphDef | LangGraph;

/**
 * A graph that a program gives to a server: what `graph()` returns, a graph of LangGraph.js, its builder or an agent, or a function that
 * gives one of these. A function of a LangGraph.js graph that takes the configuration is called again for each run.
 */
export type GivenGraph =
  | Graph
  // The configuration has the type that the graph's own project gives it.
  // oxlint-disable-next-line typescript/no-explicit-any
  | ((config: any, runtime: FactoryRuntime) => Graph | Promise<Graph>);
