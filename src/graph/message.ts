import { ServiceError } from "../model/errors.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";

/** A message as it is stored. Fields beyond these depend on the type. */
export interface Message {
  readonly type: "human" | "ai" | "tool" | "system" | "function";
  readonly content: string | readonly JsonObject[];
  readonly additional_kwargs: JsonObject;
  readonly response_metadata: JsonObject;
  readonly name: string | null;
  readonly id: string;
  readonly example: boolean;
  /** Of an ai message. */
  readonly tool_calls?: readonly ToolCall[];
  readonly invalid_tool_calls?: readonly unknown[];
  readonly usage_metadata?: Usage | null;
  /** Of a tool message. */
  readonly tool_call_id?: string;
  readonly artifact?: unknown;
  readonly status?: string;
}

export interface ToolCall {
  readonly name: string;
  readonly args: JsonObject;
  readonly id: string | null;
  readonly type: "tool_call";
}

export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly [detail: string]: unknown;
}

/** Takes the message with this id out; {@link REMOVE_ALL} takes out every one before it. */
export interface RemoveMessage {
  readonly type: "remove";
  readonly id: string;
}

export const REMOVE_ALL = "__remove_all__";

/** A message as a client or a node may write it: `"user"` and `"human"`, `"assistant"` and `"ai"` are the same. */
export interface MessageLiteral {
  readonly role?: string;
  readonly type?: string;
  readonly content?: string | readonly JsonObject[] | null;
  readonly id?: string | null | undefined;
  readonly name?: string | null | undefined;
  readonly [field: string]: unknown;
}

export type MessageLike = Message | RemoveMessage | MessageLiteral | string | readonly [string, string];

const types: ReadonlyMap<string, Message["type"] | "remove"> = new Map([
  ["human", "human"],
  ["user", "human"],
  ["ai", "ai"],
  ["assistant", "ai"],
  ["tool", "tool"],
  ["system", "system"],
  ["developer", "system"],
  ["function", "function"],
  ["remove", "remove"],
] as const);

/** `HumanMessage`, `AIMessageChunk` and the like, as some clients write the type. */
const CLASS_NAME = /^([A-Za-z]+)Message(Chunk)?$/;

function refuse(at: string, what: string): never {
  throw new ServiceError("state.invalid", `${at} ${what}`, { fields: [{ at, message: what }] });
}

function typeOf(named: unknown, at: string): Message["type"] | "remove" {
  if (typeof named !== "string") refuse(at, 'has no type: give it a "type" or a "role"');
  const short = CLASS_NAME.exec(named)?.[1] ?? named;
  const type = types.get(short.toLowerCase());
  if (type === undefined) {
    refuse(at, `is of the type ${JSON.stringify(named.slice(0, 64))}; use human, ai, system, tool or remove`);
  }
  return type;
}

/** The fields of a message, whatever form it came in. */
function literal(like: unknown, at: string): JsonObject {
  if (typeof like === "string") return { type: "human", content: like };
  if (Array.isArray(like) && like.length === 2 && typeof like[0] === "string") {
    return { type: like[0], content: like[1] };
  }
  if (typeof like !== "object" || like === null || Array.isArray(like)) {
    refuse(at, "is no message: it must be an object with a type (or role) and content, or a string");
  }
  const fields = like as JsonObject;
  // The form into which LangChain's classes are serialized.
  if (fields["type"] === "constructor" && Array.isArray(fields["id"]) && isObject(fields["kwargs"])) {
    const path: readonly unknown[] = fields["id"];
    return { ...fields["kwargs"], type: path.at(-1) };
  }
  return fields;
}

function contentOf(content: unknown, at: string): Message["content"] {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (!Array.isArray(content)) refuse(`${at}.content`, "must be a string or an array of content blocks");
  return content.map((block: unknown, i) => {
    if (typeof block === "string") return { type: "text", text: block };
    const copy = toStorable(block, `${at}.content[${i}]`);
    return isObject(copy) ? copy : refuse(`${at}.content[${i}]`, "must be a content block");
  });
}

function objectOf(value: unknown, at: string): JsonObject {
  if (value === undefined || value === null) return {};
  const copy = toStorable(value, at);
  return isObject(copy) ? copy : refuse(at, "must be an object");
}

function listOf(value: unknown, at: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  const copy = toStorable(value, at);
  return Array.isArray(copy) ? copy : refuse(at, "must be an array");
}

function toolCallOf(call: unknown, at: string): ToolCall {
  if (!isObject(call)) refuse(at, "must be an object with name, args and id");
  const { id } = call;
  const callId = typeof id === "string" ? id : null;
  const { function: named } = call;
  // The form of the OpenAI API: arguments as JSON text.
  if (isObject(named)) {
    const { name, arguments: text } = named;
    let args: unknown;
    try {
      args = JSON.parse(typeof text === "string" && text !== "" ? text : "{}");
    } catch {
      refuse(`${at}.function.arguments`, "is not JSON");
    }
    return {
      name: String(name),
      args: objectOf(args, `${at}.function.arguments`),
      id: callId,
      type: "tool_call",
    };
  }
  const { name, args } = call;
  if (typeof name !== "string") refuse(`${at}.name`, "must be a string");
  return { name, args: objectOf(args, `${at}.args`), id: callId, type: "tool_call" };
}

/**
 * A message in its stored form: a storable copy with every field of its type. One without an id gets `mint()`.
 * @throws ServiceError `state.invalid`, `value.unstorable`, naming the field by `at`
 */
export function toMessage(like: unknown, at: string, mint: () => string): Message | RemoveMessage {
  const fields = literal(like, at);
  const type = typeOf(fields["type"] ?? fields["role"], at);
  const { id, name, status } = fields;
  if (type === "remove") {
    if (typeof id !== "string" || id === "") refuse(at, "removes a message, but has no id");
    return Object.freeze({ type, id });
  }
  const base = {
    content: contentOf(fields["content"], at),
    additional_kwargs: objectOf(fields["additional_kwargs"], `${at}.additional_kwargs`),
    response_metadata: objectOf(fields["response_metadata"], `${at}.response_metadata`),
    type,
    name: typeof name === "string" ? name : null,
    id: typeof id === "string" && id !== "" ? id : mint(),
    example: fields["example"] === true,
  };
  if (type === "ai") {
    const calls = listOf(fields["tool_calls"], `${at}.tool_calls`);
    const usage = fields["usage_metadata"];
    return Object.freeze({
      ...base,
      tool_calls: calls.map((call, i) => toolCallOf(call, `${at}.tool_calls[${i}]`)),
      invalid_tool_calls: listOf(fields["invalid_tool_calls"], `${at}.invalid_tool_calls`),
      usage_metadata:
        usage === undefined || usage === null ? null : (objectOf(usage, `${at}.usage_metadata`) as Usage),
    });
  }
  if (type === "tool") {
    const call = fields["tool_call_id"];
    if (typeof call !== "string")
      refuse(`${at}.tool_call_id`, "must be a string: the id of the call it answers");
    return Object.freeze({
      ...base,
      tool_call_id: call,
      artifact: fields["artifact"] === undefined ? {} : toStorable(fields["artifact"], `${at}.artifact`),
      status: status === "error" ? "error" : "success",
    });
  }
  return Object.freeze(base);
}
