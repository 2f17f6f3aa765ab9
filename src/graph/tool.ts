import { throwInvalidGraph } from "./definition-checks.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Ctx } from "./node-context.ts";
import { isSchema, type Schema } from "./standard-schema.ts";
import type { ToolCall } from "./tool-call.ts";

/**
 * A tool that a model may call, made by `tool()`. `run` gets the validated arguments, the node's `ctx` (with `signal` and
 * `interrupt`) and the call.
 *
 * The return value of `run` is the content of the tool message: a string, or data, which becomes JSON text. With `{ content,
 * artifact }`, the tool returns the content (text or content blocks) and an artifact that is not sent to the model. If `run` is an
 * async generator, what it returns is the content, and what it yields is progress, which readers of the stream mode `tools` get.
 */
export interface Tool<A = never> {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema<unknown, unknown>;
  /**
   * The JSON Schema of the arguments, for the model. If the library of the schema provides none, `parameters` allows
   * any object.
   */
  readonly parameters: JsonObject;
  run(args: A, ctx: Ctx, call: ToolCall): unknown;
}

const MAX_NAME = 128;

/**
 * Defines a tool. By default, `parameters` (a JSON Schema) is made from `schema`, if its library supports that: zod, arktype,
 * or valibot with its converter.
 * @throws ServiceError `graph.invalid`, with the name of the invalid part
 */
export function tool<A>(literal: {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema<unknown, A>;
  readonly parameters?: JsonObject;
  readonly run: (args: A, ctx: Ctx, call: ToolCall) => unknown;
}): Tool<A> {
  const { name, description, schema, parameters, run } = literal;
  if (typeof name !== "string" || name === "" || name.length > MAX_NAME) {
    throwInvalidGraph(`a tool's name must be a text of 1 to ${MAX_NAME} characters`);
  }
  if (typeof description !== "string") throwInvalidGraph(`tool "${name}": description must be a string`);
  if (!isSchema(schema)) throwInvalidGraph(`tool "${name}": schema must be a schema (zod, valibot, arktype)`);
  if (typeof run !== "function") throwInvalidGraph(`tool "${name}": run must be a function`);
  return Object.freeze({ name, description, schema, parameters: parameters ?? jsonSchemaOf(schema), run });
}

/**
 * Makes the JSON Schema of a schema with the Standard JSON Schema interface. If the schema's library does not have this
 * interface, the result allows any object.
 */
function jsonSchemaOf(schema: Schema): JsonObject {
  const standard = schema["~standard"] as { readonly validate: unknown; readonly jsonSchema?: unknown };
  const { input } = (standard.jsonSchema ?? {}) as { input?: unknown };
  try {
    const made: unknown = typeof input === "function" ? input({ target: "draft-07" }) : undefined;
    if (isObject(made)) return made;
  } catch {
    // The schema cannot be expressed in JSON Schema. The model then gets less detail; the validation stays the same.
  }
  return { type: "object" };
}
