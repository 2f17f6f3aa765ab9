import { ServiceError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Ctx } from "./node-context.ts";
import { isSchema, type Schema } from "./standard-schema.ts";
import type { ToolCall } from "./tool-call.ts";

/**
 * Something that a model may call: what `tool()` makes. `run` gets the arguments, checked, the node's ctx (with its `signal`;
 * it may also ask by `ctx.interrupt`), and the call.
 *
 * What it returns is the content of the tool message: a text, or data as JSON text; `{ content, artifact }` sets the content
 * (text or blocks) apart from an artifact that is for the program alone.
 */
export interface Tool<A = never> {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema<unknown, unknown>;
  /** The arguments as JSON Schema, to tell a model; of any object where the schema's library gives none. */
  readonly parameters: JsonObject;
  run(args: A, ctx: Ctx, call: ToolCall): unknown;
}

const MAX_NAME = 128;

/**
 * Defines a tool. `parameters` (JSON Schema) is taken from the schema where its library gives it (zod, arktype, valibot with its
 * converter).
 * @throws ServiceError `graph.invalid`, naming the part that is wrong
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
    refuse(`a tool's name must be a text of 1 to ${MAX_NAME} characters`);
  }
  if (typeof description !== "string") refuse(`tool "${name}": description must be a string`);
  if (!isSchema(schema)) refuse(`tool "${name}": schema must be a schema (zod, valibot, arktype)`);
  if (typeof run !== "function") refuse(`tool "${name}": run must be a function`);
  return Object.freeze({ name, description, schema, parameters: parameters ?? jsonSchemaOf(schema), run });
}

function refuse(what: string): never {
  throw new ServiceError("graph.invalid", what);
}

/** By the Standard JSON Schema interface, which the libraries are beginning to have. */
function jsonSchemaOf(schema: Schema): JsonObject {
  const standard = schema["~standard"] as { readonly validate: unknown; readonly jsonSchema?: unknown };
  const { input } = (standard.jsonSchema ?? {}) as { input?: unknown };
  try {
    const made: unknown = typeof input === "function" ? input({ target: "draft-07" }) : undefined;
    if (isObject(made)) return made;
  } catch {
    // It has parts that JSON Schema cannot say: the model is told less, the check is the same.
  }
  return { type: "object" };
}
