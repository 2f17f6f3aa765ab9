import type { JsonObject } from "../../model/json.ts";

const text = { type: "string" };

/** The JSON Schema of a list of messages. `langgraph_type` tells clients which key to show as a chat. */
export const messageListSchema: JsonObject = {
  type: "array",
  langgraph_type: "messages",
  items: {
    type: "object",
    properties: {
      type: { type: "string", enum: ["human", "ai", "tool", "system", "function"] },
      role: { ...text, description: 'May stand for the type: "user", "assistant", ...' },
      content: { anyOf: [text, { type: "array", items: { type: "object" } }] },
      id: text,
      name: { type: ["string", "null"] },
      additional_kwargs: { type: "object" },
      response_metadata: { type: "object" },
      tool_calls: { type: "array", items: { type: "object" } },
      tool_call_id: text,
    },
    required: ["content"],
  },
};

/** The JSON Schema that is derived from an initial value: the type of the value, and the value as the default. */
export function schemaOfInitial(initial: unknown): JsonObject {
  if (initial === undefined) return {};
  const type = initial === null ? undefined : Array.isArray(initial) ? "array" : typeof initial;
  return type === undefined ? { default: initial } : { type, default: initial };
}
