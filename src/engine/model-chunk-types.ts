import type { JsonObject } from "../model/json.ts";
import type { CallChunk, MessageWriter, WholeCall } from "../graph/node-context.ts";
import type { ToolCall } from "../graph/tool-call.ts";
import type { Usage } from "../graph/token-usage.ts";
import type { ToolCallPart } from "./streamed-tool-calls.ts";

/**
 * What the readers of model streams write to: a {@link MessageWriter} with further methods, for example for
 * the metadata of the model's response.
 */
export interface MessageDraft extends MessageWriter {
  toolCall(call: WholeCall): ToolCall;
  toolCall(chunk: CallChunk): void;
  toolCall(part: ToolCallPart): ToolCall | undefined;
  hasCall(id: string): boolean;
  /** Leaves a tool call out of the message, because the Vercel AI SDK or the model's server has already executed it: the graph must not run it again. */
  dropCall(id: string): void;
  /** Adds the token counts of one chunk. */
  addUsage(share: Usage): void;
  /** Adds members to the response metadata. A member that is added later replaces an earlier one with the same name. */
  addMetadata(metadata: JsonObject): void;
  /** Adds members to `additional_kwargs`. If a member is added several times, its strings are concatenated. */
  addFields(fields: JsonObject): void;
}

/** A chunk of a model's stream, of unknown shape. */
export type ModelChunk = { readonly [field: string]: unknown };

/** Writes a chunk to the message. Returns false if the chunk does not have the form that this reader knows. */
export type ModelChunkReader = (chunk: ModelChunk, message: MessageDraft) => boolean;
