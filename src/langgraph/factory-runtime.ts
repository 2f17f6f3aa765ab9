import type { JsonObject } from "../model/json.ts";

/** What a factory gets beside the configuration: what its graph is for, and a run's context. It is the SDK's `ServerRuntime`. */
export type FactoryRuntime =
  | {
      readonly accessContext: "threads.create_run";
      readonly executionRuntime: { readonly context: JsonObject | undefined };
    }
  | { readonly accessContext: "assistants.read" | "threads.update"; readonly executionRuntime: null };

export const READ_ONLY_RUNTIME: FactoryRuntime = { accessContext: "assistants.read", executionRuntime: null };
