import { isObject, type JsonObject } from "../model/json.ts";
import type { LangGraphLibrary } from "./user-library.ts";

/** The data of an object. `kind`: the name of its class, or null for an object without a class that can be restored. */
export interface ObjectData {
  readonly kind: string | null;
  /** The members of the object, or the value that its `toJSON` returns. */
  readonly members: unknown;
}

/** The prefix of `kind` for message classes. */
const MESSAGE_PREFIX = "message:";

/** JavaScript's error classes that are restored by their name. */
const ERRORS = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError } as const;

interface Message {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The symbol with which LangChain marks messages. It is the same in every copy of the package. */
const MESSAGE_SYMBOL = Symbol.for("langchain.message");

function isMessage(value: object): value is Message {
  return MESSAGE_SYMBOL in value && "type" in value && typeof value.type === "string";
}

export function toObjectData(value: object): ObjectData {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return { kind: null, members: jsonOf(value) };
  if (isMessage(value)) return messageOf(value);
  if (value instanceof Error) {
    const { name, message, stack: _, ...rest } = value;
    return { kind: "error", members: { name, message, ...rest } };
  }
  switch ((value as { readonly lg_name?: unknown }).lg_name) {
    case "Send":
    case "DeltaSnapshot":
    case "Overwrite": {
      const { lg_name: kind } = value as { readonly lg_name: string };
      return { kind, members: { ...value } };
    }
  }
  return { kind: null, members: jsonOf(value) };
}

/** The JSON form of an object: the result of its `toJSON`, or its own members. */
function jsonOf(value: object): unknown {
  const { toJSON } = value as { readonly toJSON?: unknown };
  return typeof toJSON === "function" ? (toJSON.call(value, "") as unknown) : asObject(value);
}

/** An object's own members, as a plain object. */
function asObject(value: object): JsonObject {
  return isObject(value) ? value : { ...value };
}

/** Names under which a constructor takes the content of a message as a list of blocks. The message has it as its `content`. */
const CONTENT_BLOCKS: ReadonlySet<string> = new Set(["contentBlocks", "content_blocks"]);

/** A message in the form of the API. Members whose names begin with `lc_` are internal to LangChain, and left out. */
function messageOf(message: Message): ObjectData {
  const members: Record<string, unknown> = {};
  for (const key of Object.keys(message)) if (!key.startsWith("lc_")) members[key] = message[key];
  // LangChain keeps members that it does not know, and `example`, only in the arguments of the constructor.
  const { lc_kwargs: given } = message;
  if (isObject(given)) {
    for (const key of Object.keys(given))
      if (!(key in members) && !key.startsWith("lc_") && !CONTENT_BLOCKS.has(key)) members[key] = given[key];
  }
  const { type } = message;
  if (type !== "remove") {
    members["name"] ??= null;
    members["example"] ??= false;
  }
  if (type === "ai") members["usage_metadata"] ??= null;
  const { lc_name: named } = message.constructor as { readonly lc_name?: () => string };
  return { kind: MESSAGE_PREFIX + (named?.call(message.constructor) ?? ""), members };
}

/**
 * Creates an object of a class of the library from the name and members that {@link toObjectData} has returned. Undefined if the class is
 * unknown, or its constructor throws: the value then becomes plain data.
 */
export function createInstance(
  library: LangGraphLibrary,
  kind: string,
  members: JsonObject,
): object | undefined {
  if (kind.startsWith(MESSAGE_PREFIX))
    return messageFrom(library, kind.slice(MESSAGE_PREFIX.length), members);
  switch (kind) {
    case "error":
      return errorFrom(members);
    case "Send": {
      const { node, args, timeout } = members;
      const { Send } = library.langgraph;
      const options = timeout === undefined ? [] : [{ timeout } as ConstructorParameters<typeof Send>[2]];
      return new Send(String(node), args, ...options);
    }
    case "DeltaSnapshot":
      return construct(library.checkpoint.DeltaSnapshot, members["value"]);
    case "Overwrite":
      return construct(library.langgraph.Overwrite, members["__overwrite__"]);
    default:
      return undefined;
  }
}

/** Constructs an object. Undefined if the library has no such class, because it is older than the library that stored the value. */
function construct<T extends object>(
  known: (new (value: unknown) => T) | undefined,
  value: unknown,
): T | undefined {
  return known === undefined ? undefined : new known(value);
}

/**
 * Matches names of message classes that can be constructed. A class without a name of its own has the name `BaseMessage`, which does not
 * match.
 */
const CLASS = /^(?!Base)[A-Z][A-Za-z]*Message(Chunk)?$/;

/** The class for each message type, used if a message's own class is not a class of the library. */
const BY_TYPE: { readonly [type: string]: string } = {
  ai: "AIMessage",
  human: "HumanMessage",
  system: "SystemMessage",
  tool: "ToolMessage",
  function: "FunctionMessage",
  generic: "ChatMessage",
  remove: "RemoveMessage",
};

function messageFrom({ messages }: LangGraphLibrary, name: string, members: JsonObject): object | undefined {
  const { type, name: named, example, usage_metadata: usage, ...fields } = members;
  if (type === "remove") delete (fields as { content?: unknown }).content;
  const known = CLASS.test(name) && Object.hasOwn(messages, name);
  const key = known ? name : typeof type === "string" && Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : "";
  const found = (messages as unknown as { readonly [name: string]: unknown })[key ?? ""];
  if (typeof found !== "function") return undefined;
  const made = {
    ...fields,
    ...((named ?? null) !== null && { name: named }),
    ...((usage ?? null) !== null && { usage_metadata: usage }),
    ...(example === true && { example }),
  };
  try {
    return new (found as new (fields: object) => object)(made);
  } catch {
    return undefined;
  }
}

function errorFrom({ name, message, ...rest }: JsonObject): Error {
  const known = typeof name === "string" && Object.hasOwn(ERRORS, name);
  const made = known ? new ERRORS[name as keyof typeof ERRORS](String(message)) : new Error(String(message));
  if (typeof name === "string" && made.name !== name) made.name = name;
  return Object.assign(made, isObject(rest) ? rest : {});
}
