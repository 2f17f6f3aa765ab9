import type { Fact } from "../model/run-event.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { EMPTY_MESSAGE_FIELDS } from "./render-data-loader.ts";

type MessageFact = Extract<Fact, { t: "message" }>;
export type PieceFact = Extract<Fact, { t: "token" | "piece" }>;

/**
 * The messages that are being streamed at one position of a run's event log, each as received so far. The key of a message is the id of the
 * fact that began it. Readers share a map once its chunk is rendered, so it is not changed any more.
 */
export type PartialMessages = ReadonlyMap<number, JsonObject>;

export function startMessage({ id, name }: MessageFact): JsonObject {
  return { content: "", ...EMPTY_MESSAGE_FIELDS, id, type: "ai", example: false, name };
}

/** Adds one piece to a message, by the rules by which clients join pieces. */
export function extendMessage(message: JsonObject, fact: PieceFact): JsonObject {
  if (fact.t === "token") return { ...message, content: joinContent(message["content"], fact.text) };
  const {
    content,
    tool_calls,
    tool_call_chunks,
    usage_metadata,
    additional_kwargs,
    response_metadata,
    ...rest
  } = fact.chunk;
  return {
    ...message,
    ...rest,
    content: content === undefined ? message["content"] : joinContent(message["content"], content),
    tool_calls: joinCalls(message["tool_calls"], tool_calls),
    tool_call_chunks: joinByIndex(message["tool_call_chunks"], tool_call_chunks),
    additional_kwargs: { ...asObject(message["additional_kwargs"]), ...asObject(additional_kwargs) },
    response_metadata: { ...asObject(message["response_metadata"]), ...asObject(response_metadata) },
    ...(usage_metadata !== undefined && {
      usage_metadata: isObject(usage_metadata)
        ? addUp(asObject(message["usage_metadata"]), usage_metadata)
        : (message["usage_metadata"] ?? usage_metadata),
    }),
    // A later piece does not replace these members.
    id: message["id"],
    type: message["type"],
    example: message["example"],
    name: message["name"],
  };
}

const asObject = (value: unknown): JsonObject => (isObject(value) ? value : {});
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

/** Joins two contents. Two texts give a text; if one or both are lists of blocks, the result is a list of blocks. */
function joinContent(before: unknown, more: unknown): unknown {
  if (typeof before === "string" && typeof more === "string") return before + more;
  return joinByIndex(blocksOf(before), blocksOf(more));
}

function blocksOf(content: unknown): readonly unknown[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return asList(content);
}

/** Joins two lists of complete tool calls. A call replaces an earlier call with the same id. */
function joinCalls(before: unknown, more: unknown): readonly unknown[] {
  const calls = [...asList(before)];
  for (const call of asList(more)) {
    const id = asObject(call)["id"];
    const at = typeof id === "string" ? calls.findIndex((known) => asObject(known)["id"] === id) : -1;
    if (at < 0) calls.push(call);
    else calls[at] = call;
  }
  return calls;
}

/** Joins two lists of content blocks or of tool call chunks. An entry is joined to an earlier entry with the same `index`. */
function joinByIndex(before: unknown, more: unknown): readonly unknown[] {
  const parts = [...asList(before)];
  for (const part of asList(more)) {
    const { index } = asObject(part);
    const at = index === undefined ? -1 : parts.findIndex((known) => asObject(known)["index"] === index);
    if (at < 0) parts.push(part);
    else parts[at] = joinPart(asObject(parts[at]), asObject(part));
  }
  return parts;
}

/**
 * Members whose values arrive in pieces that have to be appended. The values of all other members, such as a name or a type, arrive
 * complete.
 */
const BIT_BY_BIT: ReadonlySet<string> = new Set(["args", "text", "thinking", "reasoning", "input"]);

function joinPart(before: JsonObject, more: JsonObject): JsonObject {
  const joined = new Map(Object.entries(before));
  for (const [key, value] of Object.entries(more)) {
    const known = joined.get(key);
    if (typeof known === "string" && typeof value === "string" && BIT_BY_BIT.has(key)) {
      joined.set(key, known + value);
    } else if (value !== null && value !== undefined) joined.set(key, value);
  }
  return Object.fromEntries(joined);
}

function addUp(before: JsonObject, more: JsonObject): JsonObject {
  const sums = new Map(Object.entries(before));
  for (const [key, value] of Object.entries(more)) {
    const known = sums.get(key);
    if (typeof known === "number" && typeof value === "number") sums.set(key, known + value);
    else sums.set(key, isObject(known) && isObject(value) ? addUp(known, value) : value);
  }
  return Object.fromEntries(sums);
}
