import type { JsonObject } from "../model/json.ts";

/**
 * The second argument of a graph factory, after the configuration: what the graph is needed for, and the context of the run. It has the
 * form of `ServerRuntime` in `@langchain/langgraph-sdk`.
 */
export type FactoryRuntime =
  | {
      readonly accessContext: "threads.create_run";
      readonly executionRuntime: { readonly context: JsonObject | undefined };
    }
  | { readonly accessContext: "assistants.read" | "threads.update"; readonly executionRuntime: null };

export const READ_ONLY_RUNTIME: FactoryRuntime = { accessContext: "assistants.read", executionRuntime: null };
