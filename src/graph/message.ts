import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import {
  listField,
  copiedObjectField,
  throwInvalidField,
  optionalStringField,
} from "./parse-state-fields.ts";
import { toToolCalls, type InvalidToolCall, type ToolCall } from "./tool-call.ts";
import { toUsage, type Usage } from "./token-usage.ts";

/** A message in its stored form. The optional fields depend on the type. */
export interface Message {
  readonly type: "human" | "ai" | "tool" | "system" | "function";
  readonly content: string | readonly JsonObject[];
  readonly additional_kwargs: JsonObject;
  readonly response_metadata: JsonObject;
  readonly name: string | null;
  readonly id: string;
  readonly example: boolean;
  /** Only in `ai` messages, like the next two fields. */
  readonly tool_calls?: readonly ToolCall[];
  readonly invalid_tool_calls?: readonly InvalidToolCall[];
  readonly usage_metadata?: Usage | null;
  /** Only in `tool` messages, like the next two fields. */
  readonly tool_call_id?: string;
  readonly artifact?: unknown;
  readonly status?: "success" | "error";
}

/** Removes the message with this id. With the id {@link REMOVE_ALL}, removes all messages before this one. */
export interface RemoveMessage {
  readonly type: "remove";
  readonly id: string;
}

/** The id of a `remove` message that removes all messages before it. */
export const REMOVE_ALL = "__remove_all__";

/**
 * A message as a client or a node may write it, with `type` or `role` (`"user"` means `"human"`,
 * `"assistant"` means `"ai"`). Tool calls may have the form of the OpenAI API. The message may also be a
 * serialized instance of a LangChain message class.
 */
export interface MessageLiteral {
  readonly role?: string;
  readonly type?: string;
  readonly content?: string | readonly (JsonObject | string)[] | null;
  readonly id?: string | null | undefined;
  readonly name?: string | null | undefined;
  readonly [field: string]: unknown;
}

export type MessageLike =
  | Message
  | RemoveMessage
  | MessageLiteral
  | string
  | readonly [role: string, content: string | readonly JsonObject[]];

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

/** A class name such as `HumanMessage` or `AIMessageChunk`, which some clients send as the type. */
const CLASS_NAME = /^([A-Za-z]+)Message(Chunk)?$/;

function messageTypeOf(named: string): Message["type"] | "remove" | undefined {
  return types.get(named) ?? types.get((CLASS_NAME.exec(named)?.[1] ?? named).toLowerCase());
}

function toMessageType(named: unknown, at: string): Message["type"] | "remove" {
  if (typeof named !== "string") throwInvalidField(at, 'has no type: give it a "type" or a "role"');
  return (
    messageTypeOf(named) ??
    throwInvalidField(
      at,
      `is of the type ${JSON.stringify(named.slice(0, 64))}; use human, ai, system, tool or remove`,
    )
  );
}

/** True for a pair of role and content, such as `["user", "hi"]`: one message, not two. */
export function isRolePair(value: unknown): value is readonly [role: string, content: unknown] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [role, content] = value as readonly unknown[];
  if (typeof role !== "string" || messageTypeOf(role) === undefined) return false;
  return typeof content === "string" || (Array.isArray(content) && content.every(isObject));
}

/** The fields of a serialized instance of a LangChain class; undefined for any other object. */
function fromConstructor({ type, id, kwargs }: JsonObject): JsonObject | undefined {
  if (type !== "constructor" || !Array.isArray(id) || !isObject(kwargs)) return undefined;
  const path: readonly unknown[] = id;
  return { ...kwargs, type: path.at(-1) };
}

/** Returns the fields of a message, which may be given in any of the accepted forms. */
function messageFieldsOf(like: unknown, at: string): JsonObject {
  if (typeof like === "string") return { type: "human", content: like };
  if (isRolePair(like)) return { type: like[0], content: like[1] };
  if (typeof like !== "object" || like === null || Array.isArray(like)) {
    throwInvalidField(
      at,
      "is no message: it must be an object with a type (or role) and content, or a string",
    );
  }
  let fields = like as JsonObject;
  // An instance of a LangChain message class has a `toJSON`.
  const { toJSON } = like as { toJSON?: unknown };
  if (typeof toJSON === "function") {
    const shown: unknown = toJSON.call(like);
    if (isObject(shown)) fields = shown;
  }
  const made = fromConstructor(fields);
  if (made !== undefined) return made;
  // In LangChain's storage form, the fields are in `data`.
  const { data, type } = fields;
  return isObject(data) && fields["content"] === undefined ? { ...data, type } : fields;
}

function toContent(content: unknown, at: string): Message["content"] {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (!Array.isArray(content)) throwInvalidField(at, "must be a string or an array of content blocks");
  return content.map((block: unknown, i) => toContentBlock(block, `${at}[${i}]`));
}

/**
 * An unchanged copy of a content block of any type (text, image_url, file, reasoning, ...). A string becomes
 * a text block.
 */
export function toContentBlock(block: unknown, at: string): JsonObject {
  if (typeof block === "string") return { type: "text", text: block };
  const copy = toStorable(block, at);
  return isObject(copy) ? copy : throwInvalidField(at, "must be a content block: an object with a type");
}

function toExampleFlag(value: unknown, at: string): boolean {
  if (value === undefined || value === null) return false;
  return typeof value === "boolean" ? value : throwInvalidField(at, "must be true or false");
}

function toToolStatus(value: unknown, at: string): "success" | "error" {
  if (value === undefined || value === null) return "success";
  return value === "success" || value === "error"
    ? value
    : throwInvalidField(at, 'must be "success" or "error"');
}

/**
 * The `additional_kwargs` of a message. A message with OpenAI's role `developer` is stored as a system message. Its
 * role is kept in `additional_kwargs`, for clients that send the message on to OpenAI.
 */
function toAdditionalKwargs(fields: JsonObject, named: unknown, at: string): JsonObject {
  const kwargs = copiedObjectField(fields["additional_kwargs"], at);
  return named === "developer" ? { __openai_role__: "developer", ...kwargs } : kwargs;
}

/**
 * Converts a message to its stored form: a storable copy with all fields of its type. `mint` makes an id if the message has none.
 * @param at the path of the message, for errors
 * @throws ServiceError `state.invalid`, `value.unstorable`, with the path of the field
 */
export function toMessage(like: unknown, at: string, mint: () => string): Message | RemoveMessage {
  const fields = messageFieldsOf(like, at);
  const named = fields["type"] ?? fields["role"];
  const type = toMessageType(named, at);
  const id = optionalStringField(fields["id"], `${at}.id`);
  if (type === "remove") {
    if (id === null || id === "") throwInvalidField(at, "removes a message, but has no id");
    return Object.freeze({ type, id });
  }
  const base = {
    content: toContent(fields["content"], `${at}.content`),
    additional_kwargs: toAdditionalKwargs(fields, named, `${at}.additional_kwargs`),
    response_metadata: copiedObjectField(fields["response_metadata"], `${at}.response_metadata`),
    type,
    name: optionalStringField(fields["name"], `${at}.name`),
    id: id === null || id === "" ? mint() : id,
    example: toExampleFlag(fields["example"], `${at}.example`),
  };
  if (type === "ai")
    return Object.freeze(Object.assign({}, base, aiFields(fields, base.additional_kwargs, at)));
  if (type === "tool") return Object.freeze(Object.assign({}, base, toolFields(fields, at)));
  return Object.freeze(base);
}

function aiFields(fields: JsonObject, kwargs: JsonObject, at: string) {
  const given = listField(fields["tool_calls"], `${at}.tool_calls`);
  const invalid = listField(fields["invalid_tool_calls"], `${at}.invalid_tool_calls`);
  const { tool_calls: raw } = kwargs;
  // Some clients send the calls only in `additional_kwargs`, as LangChain's OpenAI classes do.
  const calls = given.length === 0 && invalid.length === 0 && Array.isArray(raw) ? raw : given;
  const { tool_calls, invalid_tool_calls } = toToolCalls(calls, invalid, at);
  return {
    tool_calls,
    invalid_tool_calls,
    usage_metadata: toUsage(fields["usage_metadata"], `${at}.usage_metadata`),
  };
}

function toolFields(fields: JsonObject, at: string) {
  const { tool_call_id, artifact } = fields;
  if (typeof tool_call_id !== "string") {
    throwInvalidField(`${at}.tool_call_id`, "must be a string: the id of the call it answers");
  }
  return {
    tool_call_id,
    artifact: artifact === undefined || artifact === null ? {} : toStorable(artifact, `${at}.artifact`),
    status: toToolStatus(fields["status"], `${at}.status`),
  };
}
