import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import { copiedObjectField, throwInvalidField, optionalStringField } from "./parse-state-fields.ts";

/** A tool call that a model requests. */
export interface ToolCall {
  readonly name: string;
  readonly args: JsonObject;
  readonly id: string | null;
  readonly type: "tool_call";
}

/**
 * A tool call that names no tool, or whose arguments are not the JSON text of an object. It is stored as the
 * model wrote it.
 */
export interface InvalidToolCall {
  readonly name: string | null;
  readonly args: string | null;
  readonly id: string | null;
  readonly error: string | null;
  readonly type: "invalid_tool_call";
}

export interface ToolCalls {
  readonly tool_calls: readonly ToolCall[];
  readonly invalid_tool_calls: readonly InvalidToolCall[];
}

/** Parses a tool call as a model wrote it. Its arguments are JSON text, which may be invalid. */
export function parseToolCall(name: string, text: string, id: string | null): ToolCall | InvalidToolCall {
  let error: string;
  try {
    // A model may send no text at all for a tool without parameters.
    const args: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    if (isObject(args) && name !== "") {
      return { name, args: toStorable(args, "args") as JsonObject, id, type: "tool_call" };
    }
    error = name === "" ? "The call names no tool" : "The arguments are not a JSON object";
  } catch (thrown) {
    error = `The arguments cannot be read: ${(thrown as Error).message}`;
  }
  return { name: name === "" ? null : name, args: text, id, error, type: "invalid_tool_call" };
}

/**
 * Reads a tool call in the form of the OpenAI API, `{ id, type: "function", function: { name, arguments } }`, or in the
 * form of Heddle and LangChain, `{ id, name, args }`.
 */
function toToolCall(call: unknown, at: string): ToolCall | InvalidToolCall {
  if (!isObject(call)) throwInvalidField(at, "must be an object with name, args and id");
  const id = optionalStringField(call["id"], `${at}.id`);
  const { function: named } = call;
  if (isObject(named)) {
    const name = optionalStringField(named["name"], `${at}.function.name`);
    if (name === null) throwInvalidField(`${at}.function.name`, "must be a string");
    const { arguments: args } = named;
    // Some servers have already parsed the arguments.
    if (isObject(args))
      return { name, args: copiedObjectField(args, `${at}.function.arguments`), id, type: "tool_call" };
    return parseToolCall(name, optionalStringField(args, `${at}.function.arguments`) ?? "", id);
  }
  const name = optionalStringField(call["name"], `${at}.name`);
  if (name === null) throwInvalidField(`${at}.name`, "must be a string");
  return { name, args: copiedObjectField(call["args"], `${at}.args`), id, type: "tool_call" };
}

function toInvalidToolCall(call: unknown, at: string): InvalidToolCall {
  if (!isObject(call)) throwInvalidField(at, "must be an object with name, args, id and error");
  const text = (field: string) => optionalStringField(call[field], `${at}.${field}`);
  return {
    name: text("name"),
    args: text("args"),
    id: text("id"),
    error: text("error"),
    type: "invalid_tool_call",
  };
}

/**
 * Reads the calls of an AI message and separates the valid from the invalid ones.
 * @throws ServiceError `state.invalid`, `value.unstorable`, with the path of the field
 */
export function toToolCalls(calls: readonly unknown[], invalid: readonly unknown[], at: string): ToolCalls {
  if (calls.length === 0 && invalid.length === 0) return { tool_calls: [], invalid_tool_calls: [] };
  const read = calls.map((call, i) => toToolCall(call, `${at}.tool_calls[${i}]`));
  const known = invalid.map((call, i) => toInvalidToolCall(call, `${at}.invalid_tool_calls[${i}]`));
  return {
    tool_calls: read.filter((call) => call.type === "tool_call"),
    invalid_tool_calls: [...known, ...read.filter((call) => call.type === "invalid_tool_call")],
  };
}
