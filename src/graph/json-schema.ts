import { isObject, type JsonObject } from "../model/json.ts";
import type { Schema } from "./standard-schema.ts";

/** The side of a schema: the values that it accepts, or those that it returns. Defaults and transforms make them differ. */
export type SchemaSide = "input" | "output";

export const JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema";

/**
 * Options of the schema libraries for a part that JSON Schema cannot express, such as a date: it becomes "any value" instead
 * of an error. Each library ignores the options of the others.
 */
const libraryOptions = {
  unrepresentable: "any",
  fallback: ({ base }: { readonly base: JsonObject }) => base,
};

type Describe = (options: { readonly target: string; readonly libraryOptions: object }) => unknown;

/**
 * Converts a schema to JSON Schema (draft 2020-12), by the Standard JSON Schema interface: zod and arktype schemas have it,
 * those of valibot by `toStandardJsonSchema`. Null if the schema lacks it or cannot be converted.
 */
export function jsonSchemaOf(schema: Schema, side: SchemaSide): JsonObject | null {
  const { jsonSchema } = schema["~standard"] as {
    readonly jsonSchema?: { readonly [S in SchemaSide]?: Describe };
  };
  try {
    const described = jsonSchema?.[side]?.({ target: "draft-2020-12", libraryOptions });
    // A copy without non-JSON values and hidden properties: libraries add both.
    return described === undefined ? null : objectOf(JSON.parse(JSON.stringify(described)));
  } catch {
    return null;
  }
}

const objectOf = (value: unknown) => (isObject(value) ? value : null);

/** Embeds a JSON Schema in another one at `pointer`: its internal references are rewritten. */
export function embedSchema(schema: JsonObject, pointer: string): JsonObject {
  const { $schema: _, ...rest } = schema;
  return rewriteRefs(rest, pointer) as JsonObject;
}

function rewriteRefs(value: unknown, pointer: string): unknown {
  if (Array.isArray(value)) return value.map((item) => rewriteRefs(item, pointer));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const isOwn = name === "$ref" && typeof member === "string" && member.startsWith("#");
      return [name, isOwn ? `#${pointer}${member.slice(1)}` : rewriteRefs(member, pointer)];
    }),
  );
}
