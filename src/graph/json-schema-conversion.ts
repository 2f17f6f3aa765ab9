import { isObject, type JsonObject } from "../model/json.ts";
import type { Schema } from "./standard-schema.ts";

/**
 * The side of a schema: the values that it accepts (`input`), or those that it returns (`output`). The two differ if
 * the schema has defaults or transforms.
 */
export type SchemaSide = "input" | "output";

export const JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema";

/**
 * Options for the schema libraries: a part that JSON Schema cannot express, such as a date, becomes "any value" instead of an
 * error. Each library ignores the options of the others.
 */
const libraryOptions = {
  unrepresentable: "any",
  fallback: ({ base }: { readonly base: JsonObject }) => base,
};

type Describe = (options: { readonly target: string; readonly libraryOptions: object }) => unknown;

/**
 * Converts a schema to JSON Schema (draft 2020-12) with the Standard JSON Schema interface. Schemas of zod and arktype
 * have this interface; schemas of valibot get it from `toStandardJsonSchema`. Null if the schema does not have the
 * interface, or cannot be converted.
 */
export function jsonSchemaOf(schema: Schema, side: SchemaSide): JsonObject | null {
  const { jsonSchema } = schema["~standard"] as {
    readonly jsonSchema?: { readonly [S in SchemaSide]?: Describe };
  };
  try {
    const described = jsonSchema?.[side]?.({ target: "draft-2020-12", libraryOptions });
    // Makes a copy with JSON values only: libraries add other values and hidden properties.
    return described === undefined ? null : objectOf(JSON.parse(JSON.stringify(described)));
  } catch {
    return null;
  }
}

const objectOf = (value: unknown) => (isObject(value) ? value : null);

/**
 * Prepares a JSON Schema to be embedded in another one at `pointer`: removes `$schema`, and rewrites internal
 * references.
 */
export function embedSchema(schema: JsonObject, pointer: string): JsonObject {
  const { $schema: _, ...rest } = schema;
  return rewriteRefs(rest, pointer) as JsonObject;
}

/**
 * Undoes {@link embedSchema}: rewrites the internal references of a schema that is embedded at `pointer`, so that the
 * schema can stand alone.
 */
export function extractSchema(schema: JsonObject, pointer: string): JsonObject {
  return rewriteRefs(schema, "", pointer) as JsonObject;
}

/** Replaces the pointer `before` at the beginning of internal references by `pointer`. */
function rewriteRefs(value: unknown, pointer: string, before = ""): unknown {
  if (Array.isArray(value)) return value.map((item) => rewriteRefs(item, pointer, before));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      // A reference to an `$anchor` (`#name`) is no pointer, and stays as it is.
      const isOwn =
        name === "$ref" &&
        typeof member === "string" &&
        (member === `#${before}` || member.startsWith(`#${before}/`));
      return [
        name,
        isOwn ? `#${pointer}${member.slice(before.length + 1)}` : rewriteRefs(member, pointer, before),
      ];
    }),
  );
}
