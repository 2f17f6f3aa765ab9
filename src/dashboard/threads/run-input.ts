import type { AssistantSchemas, JsonRecord, JsonSchema } from "../api/records.ts";
import { validateFormValue, simplifySchema } from "../components/form-schema.ts";

/**
 * Returns the input schema for a thread with these state values. Unlike the graph's input schema, it also requires what
 * the state needs and `values` lack.
 */
export function inputSchemaFor(
  { input_schema: input, state_schema: state }: AssistantSchemas,
  values: JsonRecord,
): JsonSchema | null {
  const missing = (state?.required ?? []).filter((name) => !Object.hasOwn(values, name));
  const own = missing.filter((name) => Object.hasOwn(input?.properties ?? {}, name));
  return input === null || own.length === 0
    ? input
    : { ...input, required: [...new Set([...(input.required ?? []), ...own])] };
}

/**
 * Returns an example input for a graph: a greeting if the graph takes messages, and an example of each required value.
 * Null if the result does not match the schema.
 */
export function exampleInput(schema: JsonSchema | null): JsonRecord | null {
  const root = schema ?? {};
  const talk = messagesProperty(schema);
  const input: { [name: string]: unknown } = talk === null ? {} : withMessage({}, talk, "Hello");
  for (const name of root.required ?? []) {
    const one = root.properties?.[name];
    if (name !== talk && one !== undefined) input[name] = exampleOf(simplifySchema(one, root));
  }
  return validateFormValue(root, input).length === 0 ? input : null;
}

function exampleOf({ type, enum: choices, default: initial }: JsonSchema): unknown {
  if (initial !== undefined) return initial;
  if (choices !== undefined) return choices[0];
  if (type === "string") return "an example";
  if (type === "number" || type === "integer") return 1;
  return type === "boolean" ? false : undefined;
}

/** Returns the name of the first property of the input that takes messages; null if there is none. */
export function messagesProperty(schema: JsonSchema | null): string | null {
  const entries = Object.entries(schema?.properties ?? {});
  return entries.find(([name, one]) => one.langgraph_type === "messages" || name === "messages")?.[0] ?? null;
}

export const withMessage = (input: JsonRecord, key: string, text: string): JsonRecord => ({
  ...input,
  [key]: [{ role: "user", content: text }],
});
