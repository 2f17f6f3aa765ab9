import type { JsonObject } from "../model/json.ts";
import type { CallChunk, MessageWriter, WholeCall } from "../graph/node-context.ts";
import type { ToolCall } from "../graph/tool-call.ts";
import type { Usage } from "../graph/token-usage.ts";
import type { CallPart } from "./tool-call-stream.ts";

/** The writing end as those know it who read what a model says: it also tells about the answer. */
export interface Draft extends MessageWriter {
  toolCall(call: WholeCall): ToolCall;
  toolCall(chunk: CallChunk): void;
  toolCall(part: CallPart): ToolCall | undefined;
  hasCall(id: string): boolean;
  /** The call has been answered by whoever made it: nobody else is to do so. */
  answered(id: string): void;
  /** Adds the share of one more piece. */
  addUsage(share: Usage): void;
  /** Adds to the response's metadata; the last word counts. */
  note(metadata: JsonObject): void;
  /** Adds to the additional fields; texts are joined. */
  add(fields: JsonObject): void;
}

/** A chunk of a model's stream, of a shape that is yet to be found out. */
export type Chunk = { readonly [field: string]: unknown };

/** Takes a chunk in; false when it is not of the reader's shape. */
export type ChunkReader = (chunk: Chunk, message: Draft) => boolean;
