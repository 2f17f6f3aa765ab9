import { Errors } from "typebox/schema";
import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";

export interface FormError {
  /** The path of the field: names of members, joined by dots. */
  readonly at: string;
  readonly text: string;
  /** Whether the error is that a required value is missing. */
  readonly isMissing: boolean;
}

/**
 * Objects nested up to this depth are shown as fields. Deeper values, as in a recursive schema, are edited as JSON.
 */
const MAX_DEPTH = 4;
const MAX_REFERENCES = 10;

/** Returns the path of the member `name` of the object at the path `at`. */
export const joinFieldPath = (at: string, name: string): string => (at === "" ? name : `${at}.${name}`);

/**
 * Resolves `$ref`s, replaces a union of `null` and one other schema by that schema, and takes a missing type from the
 * default value.
 */
export function simplifySchema(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let plain = schema;
  for (let hop = 0; hop < MAX_REFERENCES; hop++) {
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

/**
 * Returns a schema for a form that edits these values. Values other than strings, numbers and booleans get no type.
 */
export function schemaOfValues(values: JsonRecord): JsonSchema {
  const typeOfValue = (value: unknown): JsonSchema => {
    const type = typeof value;
    return type === "string" || type === "number" || type === "boolean" ? { type } : {};
  };
  const properties = Object.entries(values).map(([name, value]) => [name, typeOfValue(value)] as const);
  return { type: "object", properties: Object.fromEntries(properties) };
}

/**
 * Returns the path of the form's field in which the value at the path `at` is edited; null if there is no such field,
 * or if there are several.
 */
export function fieldPathOf(schema: JsonSchema, at: string): string | null {
  let path = "";
  let inner: JsonSchema | undefined = schema;
  for (const name of at.split(".")) {
    const properties = propertiesOf(simplifySchema(inner, schema), path);
    if (properties === undefined) return path;
    inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (inner === undefined) return null;
    path = joinFieldPath(path, name);
  }
  return propertiesOf(simplifySchema(inner, schema), path) === undefined ? path : null;
}

/**
 * Returns the properties that are shown as fields; undefined if the value at the path `at` is edited in a single
 * field.
 */
export const propertiesOf = ({ properties }: JsonSchema, at: string): JsonSchema["properties"] =>
  at.split(".").length > MAX_DEPTH ? undefined : properties;

function found(ref: string, root: JsonSchema): JsonSchema | undefined {
  if (!ref.startsWith("#/")) return undefined;
  let part: unknown = root;
  for (const name of ref.slice(2).split("/"))
    part = isJsonRecord(part) && Object.hasOwn(part, name) ? part[name] : undefined;
  return isJsonRecord(part) ? part : undefined;
}

/**
 * Returns the type of a schema's default value. Undefined if `anyOf`, `oneOf` or `enum` says more, or if the default
 * value is no number, boolean or string.
 */
function typeOf({ anyOf, oneOf, enum: choices, default: initial }: JsonSchema): string | undefined {
  const isOpen = anyOf === undefined && oneOf === undefined && choices === undefined;
  return isOpen && ["number", "boolean", "string"].includes(typeof initial) ? typeof initial : undefined;
}

/** Returns the validation errors of a value, at most one for each field. */
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

/** Returns the text of an error, without terms of JSON Schema where possible. */
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
    // The schema itself is invalid, which the server will report.
    return null;
  }
}
