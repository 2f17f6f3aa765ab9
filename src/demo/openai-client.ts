import type { Message, Tool } from "../index.ts";

type Json = { readonly [field: string]: unknown };

export interface ModelAccess {
  readonly key: string;
  readonly baseUrl: string;
  readonly model: string;
}

/**
 * The API key and the URL of the model API from the environment, and the name of the model: `model`, or else
 * `OPENAI_MODEL`, or else a default. Undefined without `OPENAI_API_KEY`.
 */
export function readModelAccess(model: string | undefined): ModelAccess | undefined {
  const { OPENAI_API_KEY: key, OPENAI_BASE_URL, OPENAI_MODEL } = process.env;
  if (key === undefined || key === "") return undefined;
  const baseUrl = (OPENAI_BASE_URL || "https://api.openai.com/v1").replace(/\/+$/, "");
  return { key, baseUrl, model: model || OPENAI_MODEL || "gpt-4o-mini" };
}

/** Streams the chunks of one call of `POST /chat/completions`, for `ctx.message.from`. */
export async function* streamChat(
  { key, baseUrl, model }: ModelAccess,
  messages: readonly Message[],
  tools: readonly Tool[],
  signal: AbortSignal,
): AsyncGenerator<Json> {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model,
      messages: messages.map(asOpenAi),
      tools: tools.map(({ name, description, parameters }) => ({
        type: "function",
        function: { name, description, parameters },
      })),
      stream: true,
      stream_options: { include_usage: true },
    }),
    signal,
  });
  if (!response.ok || response.body === null) {
    throw new Error(`The model's API answered ${response.status}: ${(await response.text()).slice(0, 500)}`);
  }
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      yield JSON.parse(data) as Json;
    }
  }
}

const roles: Readonly<Record<string, string>> = {
  human: "user",
  ai: "assistant",
  system: "system",
  tool: "tool",
};

/** Converts a message of the state to the message format of the OpenAI API. */
function asOpenAi({ type, content, tool_calls = [], invalid_tool_calls = [], tool_call_id }: Message): Json {
  const calls = [
    ...tool_calls.map(({ id, name, args }) => ({ id, name, text: JSON.stringify(args) })),
    ...invalid_tool_calls.map(({ id, name, args }) => ({ id, name, text: args ?? "" })),
  ];
  return {
    role: roles[type] ?? "user",
    content: typeof content === "string" ? content : content.filter((block) => sent.has(block["type"])),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, text }) => ({
        id,
        type: "function",
        function: { name, arguments: text },
      })),
    }),
    ...(tool_call_id !== undefined && { tool_call_id }),
  };
}

/** Types of content blocks that the API accepts; others, such as reasoning, are not sent. */
const sent: ReadonlySet<unknown> = new Set(["text", "image_url", "input_audio", "file"]);
