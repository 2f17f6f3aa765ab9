import type { JsonObject } from "./json.ts";

/** A configured graph. Times are epoch milliseconds. */
export interface AssistantRecord {
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly version: number;
  readonly name: string;
  readonly description: string | null;
  readonly config: JsonObject;
  readonly context: JsonObject;
  readonly metadata: JsonObject;
  readonly created_at: number;
  readonly updated_at: number;
}
