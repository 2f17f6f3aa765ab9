import { Errors } from "typebox/schema";
import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";

/** A validation error of one field. */
export interface FormError {
  /** The path to the field, joined by dots. */
  readonly at: string;
  readonly text: string;
  /** True if a required value is missing. */
  readonly isMissing: boolean;
}

/**
 * The number of levels of nested objects that are shown as fields. Deeper values, as in a recursive schema, are edited
 * as JSON.
 */
const DEEPEST = 4;
const HOPS = 10;

/** Returns the path of a field within the object at `at`. */
export const joinFieldPath = (at: string, name: string): string => (at === "" ? name : `${at}.${name}`);

/** Resolves references and removes `null` from unions. A default value supplies a missing type. */
export function simplifySchema(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let plain = schema;
  for (let hop = 0; hop < HOPS; hop++) {
    const { $ref, anyOf, oneOf, ...rest } = plain;
    const some = (anyOf ?? oneOf ?? []).filter(({ type }) => type !== "null");
    const next = $ref !== undefined ? found($ref, root) : some.length === 1 ? some[0] : undefined;
    if (next === undefined) break;
    plain = { ...next, ...rest };
  }
  const types = typeof plain.type === "string" ? [plain.type] : (plain.type ?? []);
  const some = types.filter((name) => name !== "null");
  const type = some.length === 1 ? some[0] : types.length === 0 ? typeOf(plain) : undefined;
  const { type: _, ...rest } = plain;
  return type === undefined ? rest : { ...rest, type };
}

/** Derives a schema from values, for a form that edits them. */
export function schemaOfValues(values: JsonRecord): JsonSchema {
  const typeOfValue = (value: unknown): JsonSchema => {
    const type = typeof value;
    return type === "string" || type === "number" || type === "boolean" ? { type } : {};
  };
  const properties = Object.entries(values).map(([name, value]) => [name, typeOfValue(value)] as const);
  return { type: "object", properties: Object.fromEntries(properties) };
}

/** Returns the properties to show as fields; undefined if the value is edited in a single field. */
export const propertiesOf = ({ properties }: JsonSchema, at: string): JsonSchema["properties"] =>
  at.split(".").length > DEEPEST ? undefined : properties;

function found(ref: string, root: JsonSchema): JsonSchema | undefined {
  if (!ref.startsWith("#/")) return undefined;
  let part: unknown = root;
  for (const name of ref.slice(2).split("/"))
    part = isJsonRecord(part) && Object.hasOwn(part, name) ? part[name] : undefined;
  return isJsonRecord(part) ? part : undefined;
}

/**
 * Infers the type of a schema without `type` from its default value. State values that no schema describes have nothing
 * else that shows their type.
 */
function typeOf({ anyOf, oneOf, enum: choices, default: initial }: JsonSchema): string | undefined {
  const isOpen = anyOf === undefined && oneOf === undefined && choices === undefined;
  return isOpen && ["number", "boolean", "string"].includes(typeof initial) ? typeof initial : undefined;
}

/** Returns the validation errors of a value: the first error of each field. */
export function validateFormValue(
  schema: JsonSchema,
  value: unknown,
  root = schema,
  at = "",
): readonly FormError[] {
  const plain = simplifySchema(schema, root);
  const properties = propertiesOf(plain, at);
  if (properties === undefined || (value !== undefined && !isJsonRecord(value))) {
    const text = value === undefined ? null : settingsFault(value, schema, plain, root);
    return text === null ? [] : [{ at, text, isMissing: false }];
  }
  const given: JsonRecord = value ?? {};
  return Object.entries(properties).flatMap(([name, inner]) => {
    const there = Object.hasOwn(given, name) ? given[name] : undefined;
    if (there !== undefined) return validateFormValue(inner, there, root, joinFieldPath(at, name));
    const isNeeded =
      (plain.required?.includes(name) ?? false) && simplifySchema(inner, root).default === undefined;
    if (!isNeeded) return [];
    const deeper = propertiesOf(simplifySchema(inner, root), joinFieldPath(at, name));
    if (deeper !== undefined) return validateFormValue(inner, undefined, root, joinFieldPath(at, name));
    return [{ at: joinFieldPath(at, name), text: "is required", isMissing: true }];
  });
}

/** Says an error for people who do not read schemas. */
function inWords(error: ReturnType<typeof Errors>[1][number]): string {
  switch (error.keyword) {
    case "minimum":
      return `must be at least ${error.params.limit}`;
    case "maximum":
      return `must be at most ${error.params.limit}`;
    case "exclusiveMinimum":
      return `must be more than ${error.params.limit}`;
    case "exclusiveMaximum":
      return `must be less than ${error.params.limit}`;
    case "const":
      return `must be ${JSON.stringify(error.params.allowedValue)}`;
    case "type": {
      const { type } = error.params;
      return typeof type === "string" ? `must be ${/^[aio]/.test(type) ? "an" : "a"} ${type}` : error.message;
    }
    default:
      return error.message;
  }
}

function settingsFault(
  value: unknown,
  schema: JsonSchema,
  plain: JsonSchema,
  root: JsonSchema,
): string | null {
  const isTold = [schema.type, schema.anyOf, schema.oneOf, schema.enum, schema.$ref].some(
    (one) => one !== undefined,
  );
  const { $defs, definitions } = root;
  const whole = { ...(isTold ? schema : plain), $defs: $defs ?? {}, definitions: definitions ?? {} };
  try {
    const [, [first]] = Errors(whole, value);
    if (first === undefined) return null;
    return first.keyword === "enum" ? `must be one of ${plain.enum?.join(", ")}` : inWords(first);
  } catch {
    // The schema is invalid: the server will report it.
    return null;
  }
}
