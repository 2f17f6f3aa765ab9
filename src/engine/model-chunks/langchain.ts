import { isObject, type JsonObject } from "../../model/json.ts";
import { toUsage } from "../../graph/token-usage.ts";
import type { ModelChunk, ModelChunkReader, MessageDraft } from "../model-chunk-types.ts";

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** True for an AI message of any LangChain version: a chunk, or the whole message of a model that does not stream. */
function isAi(chunk: ModelChunk): boolean {
  if (!("content" in chunk)) return false;
  if (Array.isArray(chunk["tool_call_chunks"])) return true;
  const { type, getType, _getType } = chunk;
  if (type === "ai" || type === "AIMessageChunk" || type === "AIMessage") return true;
  const asked = getType ?? _getType;
  return typeof asked === "function" && asked.call(chunk) === "ai";
}

/** Reads LangChain's AIMessageChunks, as `model.stream()` yields them. */
export const readLangChain: ModelChunkReader = (chunk, message) => {
  if (!isAi(chunk)) return false;
  const { content, tool_call_chunks, tool_calls, response_metadata, additional_kwargs, usage_metadata } =
    chunk;
  if (typeof content === "string") message.write(content);
  else if (Array.isArray(content)) {
    for (const block of content) message.write(block as string | JsonObject);
  }
  if (Array.isArray(tool_call_chunks) && tool_call_chunks.length > 0) {
    for (const call of tool_call_chunks) if (isObject(call)) writeCallChunk(call, message);
  } else if (Array.isArray(tool_calls)) {
    for (const call of tool_calls) if (isObject(call)) writeWholeCall(call, message);
  }
  if (isObject(response_metadata)) message.addMetadata(response_metadata);
  if (isObject(additional_kwargs)) {
    // Leaves out tool calls, which are read from their own fields.
    const { tool_calls: _, ...others } = additional_kwargs;
    if (Object.keys(others).length > 0) message.addFields(others);
  }
  // Each chunk has the counts of its own tokens, so the counts are added up.
  const usage = toUsage(usage_metadata, "usage_metadata");
  if (usage !== null) message.addUsage(usage);
  return true;
};

function writeCallChunk({ name, args, id, index }: JsonObject, message: MessageDraft): void {
  message.toolCall({
    name: textOf(name),
    args: textOf(args) ?? "",
    id: textOf(id),
    index: typeof index === "number" ? index : undefined,
  });
}

function writeWholeCall({ name, args, id }: JsonObject, message: MessageDraft): void {
  message.toolCall({ name: textOf(name) ?? "", args: isObject(args) ? args : {}, id: textOf(id) });
}
