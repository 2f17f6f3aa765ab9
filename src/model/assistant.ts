import { contains, type JsonObject } from "./json.ts";
import type { Permits } from "./permitted-resources.ts";

/** An assistant: a graph with its own config, context and metadata. Times are epoch milliseconds. */
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

/** A version of an assistant, made at `created_at`. A version never changes, and its number is never used again. */
export interface AssistantVersion extends Omit<AssistantRecord, "updated_at"> {}

/** A filter of assistants. An assistant must match every given member. */
export interface AssistantFilter {
  readonly graph_id?: string;
  /** A part of the assistant's name. Upper and lower case are not distinguished. */
  readonly name?: string;
  /** The assistant's metadata must contain every member of this object. */
  readonly metadata?: JsonObject;
  /** Returns whether an assistant with this metadata may be found; absent: all assistants may be found. */
  readonly permits?: Permits | undefined;
}

export function matchesAssistant(
  assistant: AssistantRecord,
  { graph_id, name, metadata, permits }: AssistantFilter,
): boolean {
  if (permits !== undefined && !permits(assistant.metadata)) return false;
  if (graph_id !== undefined && assistant.graph_id !== graph_id) return false;
  if (name !== undefined && !assistant.name.toLowerCase().includes(name.toLowerCase())) return false;
  return metadata === undefined || contains(assistant.metadata, metadata);
}

/** The initial settings of each graph's default assistant, by the name of the graph. Without a setting, it is empty. */
export interface AssistantDefaults {
  readonly [graph: string]: Partial<Pick<AssistantRecord, "config" | "context" | "description">>;
}
