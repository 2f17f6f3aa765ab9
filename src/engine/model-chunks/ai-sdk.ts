import { isObject, type JsonObject } from "../../model/json.ts";
import { usageDetails } from "../../graph/token-usage.ts";
import type { ModelChunk, ModelChunkReader, MessageDraft } from "../model-chunk-types.ts";

type PartReader = (part: ModelChunk, message: MessageDraft) => void;

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const ignore: PartReader = () => undefined;

/**
 * Readers of the stream parts of the AI SDK, versions 5 and 6, by type. They read the parts of `streamText().fullStream`, and the parts of
 * the SDK's model providers, in which text pieces are named `delta` and arguments are JSON text.
 */
const readers: ReadonlyMap<string, PartReader> = new Map<string, PartReader>([
  ["text-delta", (part, message) => message.write(textOf(part["text"] ?? part["delta"]))],
  [
    "reasoning-delta",
    (part, message) => {
      const reasoning = textOf(part["text"] ?? part["delta"]);
      if (reasoning !== "") message.write({ type: "reasoning", reasoning });
    },
  ],
  [
    "tool-input-start",
    (part, message) => message.toolCall({ name: textOf(part["toolName"]), args: "", id: textOf(part["id"]) }),
  ],
  [
    "tool-input-delta",
    (part, message) => message.toolCall({ args: textOf(part["delta"]), id: textOf(part["id"]) }),
  ],
  ["tool-call", toolCall],
  ["tool-result", (part, message) => answer(part, "success", part["output"], message)],
  ["tool-error", (part, message) => answer(part, "error", String(part["error"]), message)],
  ["file", file],
  ["source", (part, message) => message.write(part)],
  ["response-metadata", (part, message) => noteResponse(part, message)],
  ["finish-step", finish],
  ["finish", finish],
  [
    "error",
    ({ error }) => {
      throw error instanceof Error
        ? error
        : new Error(textOf(error) || "The model's stream failed", { cause: error });
    },
  ],
  [
    "abort",
    () => {
      throw new DOMException("The model's stream was aborted", "AbortError");
    },
  ],
  ...[
    "start",
    "start-step",
    "stream-start",
    "text-start",
    "text-end",
    "reasoning-start",
    "reasoning-end",
    "tool-input-end",
    "tool-approval-request",
    "tool-output-denied",
    "raw",
  ].map((type): [string, PartReader] => [type, ignore]),
]);

export const readAiSdk: ModelChunkReader = (part, message) => {
  const { type } = part;
  const take = typeof type === "string" ? readers.get(type) : undefined;
  take?.(part, message);
  return take !== undefined;
};

function toolCall(part: ModelChunk, message: MessageDraft): void {
  const { input } = part;
  const call = { name: textOf(part["toolName"]), id: textOf(part["toolCallId"]) };
  if (isObject(input)) message.toolCall({ ...call, args: input });
  // Skips JSON text of a call that the message already has, because this text was already streamed piece by
  // piece.
  else if (!message.hasCall(call.id)) message.toolCall({ ...call, args: textOf(input) });
}

/** Writes the result of a tool that the SDK or the model's server itself has called. The result is part of the message. */
function answer(part: ModelChunk, status: "success" | "error", output: unknown, message: MessageDraft): void {
  if (part["preliminary"] === true) return;
  const { toolCallId, toolName, input } = part;
  const id = textOf(toolCallId);
  message.dropCall(id);
  message.write({ type: "server_tool_call", id, name: textOf(toolName), args: isObject(input) ? input : {} });
  message.write({ type: "server_tool_call_result", toolCallId: id, status, output: output ?? null });
}

function file({ file }: ModelChunk, message: MessageDraft): void {
  if (typeof file !== "object" || file === null) return;
  const { mediaType, base64 } = file as ModelChunk;
  const mime_type = textOf(mediaType) || "application/octet-stream";
  const type = mime_type.startsWith("image/") ? "image" : "file";
  message.write({ type, source_type: "base64", mime_type, data: textOf(base64) });
}

function noteResponse({ id, modelId }: ModelChunk, message: MessageDraft): void {
  if (typeof id === "string") message.addMetadata({ id });
  if (typeof modelId === "string") message.addMetadata({ model_name: modelId });
}

function finish({ response, finishReason, totalUsage, usage }: ModelChunk, message: MessageDraft): void {
  if (isObject(response)) noteResponse(response, message);
  const reason = isObject(finishReason) ? finishReason["unified"] : finishReason;
  if (typeof reason === "string") message.addMetadata({ finish_reason: reason });
  const counts = totalUsage ?? usage;
  if (isObject(counts)) message.usage(usageOf(counts));
}

/** Reads token counts. In version 6, providers give an object for each count; otherwise it is a number. */
function usageOf(usage: JsonObject) {
  const { inputTokens, outputTokens, inputTokenDetails, outputTokenDetails } = usage;
  const input = isObject(inputTokens) ? inputTokens : isObject(inputTokenDetails) ? inputTokenDetails : {};
  const output = isObject(outputTokens)
    ? outputTokens
    : isObject(outputTokenDetails)
      ? outputTokenDetails
      : {};
  const total = usage["totalTokens"];
  return {
    input_tokens: countOf(isObject(inputTokens) ? inputTokens["total"] : inputTokens),
    output_tokens: countOf(isObject(outputTokens) ? outputTokens["total"] : outputTokens),
    total_tokens: countOf(total),
    ...usageDetails("input_token_details", {
      cache_read: input["cacheReadTokens"] ?? input["cacheRead"] ?? usage["cachedInputTokens"],
      cache_creation: input["cacheWriteTokens"] ?? input["cacheWrite"],
    }),
    ...usageDetails("output_token_details", {
      reasoning: output["reasoningTokens"] ?? output["reasoning"] ?? usage["reasoningTokens"],
    }),
  };
}

function countOf(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 ? value : undefined;
}
