import type { JsonObject } from "./json.ts";

/** What a graph takes and gives, each as a JSON Schema; null where that is not known. */
export interface GraphSchemas {
  readonly graph_id: string;
  readonly input_schema: JsonObject | null;
  readonly output_schema: JsonObject | null;
  readonly state_schema: JsonObject | null;
  readonly config_schema: JsonObject | null;
  readonly context_schema: JsonObject | null;
}
