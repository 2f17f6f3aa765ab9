import { isObject, type JsonObject } from "../model/json.ts";
import type { Schema } from "./standard-schema.ts";

/** What goes in, or what comes out: defaults and transforms make them differ. */
export type Side = "input" | "output";

export const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/**
 * What a library makes of a part that JSON Schema has no word for, such as a date: anything goes, instead of an error. An
 * option of another library is passed over.
 */
const libraryOptions = {
  unrepresentable: "any",
  fallback: ({ base }: { readonly base: JsonObject }) => base,
};

type Describe = (options: { readonly target: string; readonly libraryOptions: object }) => unknown;

/**
 * A schema as JSON Schema (draft 2020-12), where its library can say it: by the Standard JSON Schema interface, which zod and
 * arktype schemas have, and valibot's by `toStandardJsonSchema`. Null where it cannot.
 */
export function jsonSchemaOf(schema: Schema, side: Side): JsonObject | null {
  const { jsonSchema } = schema["~standard"] as {
    readonly jsonSchema?: { readonly [S in Side]?: Describe };
  };
  try {
    const described = jsonSchema?.[side]?.({ target: "draft-2020-12", libraryOptions });
    // A copy without what is no JSON, or what is hidden: libraries add both.
    return described === undefined ? null : objectOf(JSON.parse(JSON.stringify(described)));
  } catch {
    return null;
  }
}

const objectOf = (value: unknown) => (isObject(value) ? value : null);

/** A JSON Schema to stand within another one, at `pointer`: what it says of its own parts points there. */
export function moved(schema: JsonObject, pointer: string): JsonObject {
  const { $schema: _, ...rest } = schema;
  return repointed(rest, pointer) as JsonObject;
}

function repointed(value: unknown, pointer: string): unknown {
  if (Array.isArray(value)) return value.map((item) => repointed(item, pointer));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const isOwn = name === "$ref" && typeof member === "string" && member.startsWith("#");
      return [name, isOwn ? `#${pointer}${member.slice(1)}` : repointed(member, pointer)];
    }),
  );
}
