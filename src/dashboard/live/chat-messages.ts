import { isJsonRecord, type JsonRecord } from "../api/records.ts";

/** A tool call in a message. While the message is streamed, its arguments may be incomplete. */
export interface ChatToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, possibly incomplete. */
  readonly args: string;
  /** The number by which chunks of a streamed message refer to this call. */
  readonly index?: number;
}

/** A message, in the form in which the dashboard shows it. */
export interface ChatMessage {
  readonly id: string;
  readonly type: string;
  readonly name: string | null;
  readonly text: string;
  readonly calls: readonly ChatToolCall[];
  readonly toolCallId: string | null;
  readonly failed: boolean;
  readonly usage: JsonRecord | null;
  /**
   * The names of the model that wrote the message, such as the requested name and the exact version. Empty if they are
   * not known.
   */
  readonly models: readonly string[];
}

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: unknown) => {
      if (typeof block === "string") return block;
      if (!isJsonRecord(block)) return "";
      const { text, type } = block;
      if (typeof text === "string") return text;
      return type === "tool_use" || type === "input_json_delta" || type === "tool_call"
        ? ""
        : `[${String(type)}]`;
    })
    .join("");
};

/** Returns the objects in a list. Other elements are malformed, and left out. */
const recordsOf = (value: unknown): readonly JsonRecord[] =>
  Array.isArray(value) ? value.filter((item) => isJsonRecord(item)) : [];

const str = (value: unknown): string => (typeof value === "string" ? value : "");

/** Returns the type of a message in a normalised form: `ai` for `AIMessageChunk`, `ai` and `assistant`. */
export function messageTypeOf({ type, role }: JsonRecord): string {
  const plain = str(type ?? role)
    .replace(/Message(Chunk)?$/, "")
    .toLowerCase();
  return { user: "human", assistant: "ai" }[plain] ?? plain;
}

/**
 * Converts a message, or a chunk of a streamed message. A chunk's `tool_call_chunks` are left out: {@link appendChunk}
 * adds them.
 */
export function toChatMessage(raw: JsonRecord): ChatMessage {
  return {
    id: str(raw["id"]),
    type: messageTypeOf(raw),
    name: typeof raw["name"] === "string" ? raw["name"] : null,
    text: textOf(raw["content"]),
    calls: recordsOf(raw["tool_calls"]).map(({ id, name, args }) => ({
      id: str(id),
      name: str(name),
      args: JSON.stringify(args ?? {}),
    })),
    toolCallId: typeof raw["tool_call_id"] === "string" ? raw["tool_call_id"] : null,
    failed: raw["status"] === "error",
    usage: isJsonRecord(raw["usage_metadata"]) ? raw["usage_metadata"] : null,
    models: modelNamesIn(raw["response_metadata"], ["model_name", "model"]),
  };
}

/**
 * Returns the model names in the given fields of a message's metadata. A chunk may contain none, because some models
 * send their name only with the first chunk.
 */
export function modelNamesIn(metadata: unknown, fields: readonly string[]): readonly string[] {
  if (!isJsonRecord(metadata)) return [];
  return fields.map((field) => str(metadata[field])).filter((name) => name !== "");
}

export const uniqueNames = (...lists: readonly (readonly string[])[]): readonly string[] => [
  ...new Set(lists.flat()),
];

/**
 * Adds token counts of two chunks. Some models send the input tokens with the first chunk and the output tokens with
 * the last.
 */
function addUsage(before: JsonRecord | null, next: JsonRecord | null): JsonRecord | null {
  if (before === null || next === null) return before ?? next;
  const sum: { [field: string]: unknown } = { ...before };
  for (const [field, value] of Object.entries(next)) {
    const known = sum[field];
    if (typeof known === "number" && typeof value === "number") sum[field] = known + value;
    else sum[field] = isJsonRecord(known) && isJsonRecord(value) ? addUsage(known, value) : value;
  }
  return sum;
}

/** Returns the message with a streamed chunk appended. `message` is undefined for the first chunk. */
export function appendChunk(message: ChatMessage | undefined, raw: JsonRecord): ChatMessage {
  const next = toChatMessage(raw);
  const chunks = recordsOf(raw["tool_call_chunks"]);
  const calls = chunks.length > 0 ? joined(message?.calls ?? [], chunks) : null;
  if (message === undefined) return calls === null ? next : { ...next, calls };
  return {
    ...message,
    text: message.text + next.text,
    calls: calls ?? (next.calls.length > 0 ? next.calls : message.calls),
    name: message.name ?? next.name,
    usage: addUsage(message.usage, next.usage),
    models: uniqueNames(message.models, next.models),
  };
}

/**
 * Merges chunks into tool calls. A chunk with an `index` continues the call with this index. Without an index, it
 * begins a new call if it has an id, and otherwise continues the last call.
 */
function joined(calls: readonly ChatToolCall[], chunks: readonly JsonRecord[]): readonly ChatToolCall[] {
  const all = [...calls];
  for (const { index, id, name, args } of chunks) {
    const isNumbered = typeof index === "number";
    const found = isNumbered
      ? all.findIndex((call) => call.index === index)
      : all.length - (str(id) === "" ? 1 : 0);
    const before = all[found];
    const call = {
      id: before?.id === undefined || before.id === "" ? str(id) : before.id,
      name: (before?.name ?? "") + str(name),
      args: (before?.args ?? "") + str(args),
      ...(isNumbered ? { index } : before?.index !== undefined && { index: before.index }),
    };
    if (before === undefined) all.push(call);
    else all[found] = call;
  }
  return all;
}

const TYPES = new Set(["human", "user", "ai", "assistant", "system", "tool", "function", "developer"]);

export const isMessage = (value: unknown): value is JsonRecord =>
  isJsonRecord(value) && Object.hasOwn(value, "content") && TYPES.has(str(value["type"] ?? value["role"]));

/**
 * Returns the key of the state value that contains the conversation; null if there is none. A key `messages` is
 * preferred.
 */
export function conversationKey(values: JsonRecord): string | null {
  const keys = Object.keys(values).toSorted((a, b) => Number(b === "messages") - Number(a === "messages"));
  return (
    keys.find((key) => {
      const list = values[key];
      return Array.isArray(list) && list.length > 0 && list.every(isMessage);
    }) ?? null
  );
}
