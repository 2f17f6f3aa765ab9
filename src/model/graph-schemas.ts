import type { JsonObject } from "./json.ts";

/** JSON Schemas of a graph's input, output, state, configuration and context; null when not known. */
export interface GraphSchemas {
  readonly graph_id: string;
  readonly input_schema: JsonObject | null;
  readonly output_schema: JsonObject | null;
  readonly state_schema: JsonObject | null;
  readonly config_schema: JsonObject | null;
  readonly context_schema: JsonObject | null;
}
