import { isObject, type JsonObject } from "../../model/json.ts";
import { usageDetails } from "../../graph/token-usage.ts";
import type { ModelChunkReader, MessageDraft } from "../model-chunk-types.ts";

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const countOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** Reads chunks of `POST /chat/completions` with `stream: true`, from OpenAI and compatible servers. */
export const readOpenAi: ModelChunkReader = (chunk, message) => {
  const { choices, error, object, usage } = chunk;
  if (isObject(error) && choices === undefined && chunk["type"] === undefined) {
    throw new Error(textOf(error["message"]) || "The model's server answered with an error");
  }
  if (!Array.isArray(choices) && object !== "chat.completion.chunk") return false;
  writeMetadata(chunk, message);
  for (const choice of (choices ?? []) as readonly unknown[]) {
    // Reads only the first choice. With `n` above 1, there are more.
    if (!isObject(choice) || (choice["index"] ?? 0) !== 0) continue;
    if (isObject(choice["delta"])) writeDelta(choice["delta"], message);
    if (typeof choice["finish_reason"] === "string")
      message.addMetadata({ finish_reason: choice["finish_reason"] });
  }
  if (isObject(usage)) message.usage(usageOf(usage));
  return true;
};

function writeMetadata({ id, model, system_fingerprint }: JsonObject, message: MessageDraft): void {
  if (typeof id === "string" && id !== "") message.addMetadata({ id });
  if (typeof model === "string" && model !== "") message.addMetadata({ model_name: model });
  if (typeof system_fingerprint === "string") message.addMetadata({ system_fingerprint });
}

function writeDelta(delta: JsonObject, message: MessageDraft): void {
  const { content, refusal, tool_calls } = delta;
  const reasoning = textOf(delta["reasoning_content"]) || textOf(delta["reasoning"]);
  if (reasoning !== "") message.write({ type: "reasoning", reasoning });
  if (typeof content === "string") message.write(content);
  else if (Array.isArray(content)) for (const part of content) message.write(part as JsonObject);
  if (typeof refusal === "string" && refusal !== "") message.addFields({ refusal });
  if (!Array.isArray(tool_calls)) return;
  for (const call of tool_calls as readonly unknown[]) {
    if (!isObject(call)) continue;
    const named = isObject(call["function"]) ? call["function"] : {};
    message.toolCall({
      name: textOf(named["name"]) || undefined,
      args: isObject(named["arguments"]) ? JSON.stringify(named["arguments"]) : textOf(named["arguments"]),
      id: textOf(call["id"]) || undefined,
      index: countOf(call["index"]),
    });
  }
}

function usageOf(usage: JsonObject) {
  const input = isObject(usage["prompt_tokens_details"]) ? usage["prompt_tokens_details"] : {};
  const output = isObject(usage["completion_tokens_details"]) ? usage["completion_tokens_details"] : {};
  return {
    input_tokens: countOf(usage["prompt_tokens"]),
    output_tokens: countOf(usage["completion_tokens"]),
    total_tokens: countOf(usage["total_tokens"]),
    ...usageDetails("input_token_details", {
      audio: input["audio_tokens"],
      cache_read: input["cached_tokens"],
    }),
    ...usageDetails("output_token_details", {
      audio: output["audio_tokens"],
      reasoning: output["reasoning_tokens"],
    }),
  };
}
