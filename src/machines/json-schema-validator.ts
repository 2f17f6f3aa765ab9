import { Compile, type Validator } from "typebox/schema";
import type { Schema, SchemaResult } from "../graph/standard-schema.ts";
import { isObject, type JsonObject, MAX_DEPTH } from "../model/json.ts";
import { jsonSchemaFieldErrors } from "../model/json-schema-errors.ts";

/** Keywords whose value is a schema. The sets below are of keywords with other kinds of values. */
const SCHEMA_KEYWORDS = new Set(
  "additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems unevaluatedProperties".split(
    " ",
  ),
);
const SCHEMA_MAP_KEYWORDS = new Set(
  "$defs definitions dependentSchemas patternProperties properties".split(" "),
);
const SCHEMA_LIST_KEYWORDS = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const NUMBER_KEYWORDS = new Set(
  "exclusiveMaximum exclusiveMinimum maxContains maximum maxItems maxLength maxProperties minContains minimum minItems minLength minProperties multipleOf".split(
    " ",
  ),
);
const OTHER_KEYWORDS = new Set(
  "$anchor $comment $dynamicAnchor $id $recursiveAnchor $schema const default dependentRequired deprecated description enum examples format pattern readOnly required title type uniqueItems writeOnly".split(
    " ",
  ),
);
const REFERENCE_KEYWORDS = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
const KEYWORD_SETS = [
  SCHEMA_KEYWORDS,
  SCHEMA_MAP_KEYWORDS,
  SCHEMA_LIST_KEYWORDS,
  NUMBER_KEYWORDS,
  OTHER_KEYWORDS,
  REFERENCE_KEYWORDS,
];

const TYPES: readonly unknown[] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/**
 * What is wrong with a JSON Schema, as a sentence that begins with the path of the broken part; undefined if the schema has no fault. This
 * check is needed because the validator ignores a broken keyword, and would then accept every value. `at`: the path of the schema.
 */
export function jsonSchemaFault(schema: JsonObject, at: string): string | undefined {
  if (!Object.keys(schema).some((name) => KEYWORD_SETS.some((set) => set.has(name))))
    return `${at} is no JSON Schema: it has none of its keywords, only ${Object.keys(schema).join(", ")}`;
  return faultIn(schema, at, schema, 0) ?? circleFault(schema, at);
}

function faultIn(schema: unknown, at: string, root: JsonObject, depth: number): string | undefined {
  if (typeof schema === "boolean") return undefined;
  if (!isObject(schema)) return `${at} must be a JSON Schema`;
  if (depth > MAX_DEPTH) return `${at} is nested deeper than ${MAX_DEPTH} levels`;
  for (const [name, value] of Object.entries(schema)) {
    const fault = faultOfKeyword(name, value, `${at}.${name}`, root, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultOfKeyword(
  name: string,
  value: unknown,
  at: string,
  root: JsonObject,
  depth: number,
): string | undefined {
  const inEach = (entries: readonly (readonly [path: string, schema: unknown])[]) => {
    for (const [path, inner] of entries) {
      const fault = faultIn(inner, path, root, depth);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };
  // Before draft 2020-12, `items` could be a list too.
  if (SCHEMA_LIST_KEYWORDS.has(name) || (name === "items" && Array.isArray(value))) {
    if (!Array.isArray(value) || value.length === 0) return `${at} must be a list of JSON Schemas`;
    return inEach(value.map((inner: unknown, index) => [`${at}[${index}]`, inner] as const));
  }
  if (SCHEMA_KEYWORDS.has(name)) return faultIn(value, at, root, depth);
  if (SCHEMA_MAP_KEYWORDS.has(name)) {
    if (!isObject(value)) return `${at} must be an object of JSON Schemas`;
    if (name === "patternProperties") {
      const fault = Object.keys(value)
        .map((key) => patternFault(key, `${at}.${key}`))
        .find(Boolean);
      if (fault !== undefined) return fault;
    }
    return inEach(Object.entries(value).map(([key, inner]) => [`${at}.${key}`, inner] as const));
  }
  if (NUMBER_KEYWORDS.has(name)) return typeof value === "number" ? undefined : `${at} must be a number`;
  if (name === "type") {
    const types = Array.isArray(value) ? (value as readonly unknown[]) : [value];
    const wrong = types.find((type) => !TYPES.includes(type));
    if (types.length > 0 && wrong === undefined) return undefined;
    return `${at} is ${JSON.stringify(wrong ?? value)}, and must be one of ${TYPES.join(", ")}`;
  }
  if (name === "required") {
    const isList = Array.isArray(value) && value.every((key) => typeof key === "string");
    return isList ? undefined : `${at} must be a list of property names`;
  }
  if (name === "enum") return Array.isArray(value) ? undefined : `${at} must be a list of values`;
  if (name === "dependentRequired") {
    const areLists =
      isObject(value) &&
      Object.values(value).every(
        (keys) => Array.isArray(keys) && keys.every((key) => typeof key === "string"),
      );
    return areLists ? undefined : `${at} must be an object with a list of property names for each property`;
  }
  if (name === "pattern") return patternFault(value, at);
  if (REFERENCE_KEYWORDS.has(name)) return referenceFault(value, at, root);
  return undefined;
}

function patternFault(pattern: unknown, at: string): string | undefined {
  if (typeof pattern !== "string") return `${at} must be a regular expression, as a text`;
  try {
    RegExp(pattern, "u");
    return undefined;
  } catch (thrown) {
    return `${at} is no regular expression: ${(thrown as Error).message}`;
  }
}

function referenceFault(ref: unknown, at: string, root: JsonObject): string | undefined {
  if (typeof ref !== "string") return `${at} must be a text`;
  const found = resolveReference(root, ref);
  if (typeof found === "boolean" || isObject(found)) return undefined;
  return ref.startsWith("#")
    ? `${at} is "${ref}", which is not in the schema`
    : `${at} is "${ref}", and other documents are not loaded`;
}

/**
 * The part of a schema that a reference names: by a pointer (`#/$defs/Address`), by its `$anchor` (`#address`), or by its `$id`. Undefined
 * if there is none.
 */
export function resolveReference(root: JsonObject, ref: string): unknown {
  if (ref === "#") return root;
  if (ref.startsWith("#/")) return resolvePointer(root, ref);
  if (ref.startsWith("#")) {
    const anchor = ref.slice(1);
    return findPart(root, (part) => part["$anchor"] === anchor || part["$dynamicAnchor"] === anchor);
  }
  const base = urlOf(root["$id"], "schema:/");
  const [document, fragment] = (urlOf(ref, base) ?? "").split("#", 2);
  const named = findPart(root, ({ $id }) => $id !== undefined && urlOf($id, base) === document);
  return named === undefined || !fragment ? named : resolveReference(named, `#${fragment}`);
}

function urlOf(ref: unknown, base: string | undefined): string | undefined {
  if (typeof ref !== "string") return base;
  try {
    return new URL(ref, base).href;
  } catch {
    return undefined;
  }
}

/** The first part of a schema, in depth-first order, for which `matches` returns true. */
function findPart(part: unknown, matches: (part: JsonObject) => boolean): JsonObject | undefined {
  if (isObject(part) && matches(part)) return part;
  if (typeof part !== "object" || part === null) return undefined;
  for (const inner of Object.values(part) as unknown[]) {
    const found = findPart(inner, matches);
    if (found !== undefined) return found;
  }
  return undefined;
}

function resolvePointer(root: JsonObject, ref: string): unknown {
  let part: unknown = root;
  for (const name of ref.split("/").slice(1)) {
    let key: string;
    try {
      key = decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~");
    } catch {
      return undefined;
    }
    if (typeof part !== "object" || part === null || !Object.hasOwn(part, key)) return undefined;
    part = (part as JsonObject)[key];
  }
  return part;
}

/**
 * Finds a schema that leads back to itself for the same value, such as `{ "$ref": "#" }`: the validator would not end. A schema that is
 * used again for a member or an item of the value is no fault.
 */
function circleFault(root: JsonObject, at: string): string | undefined {
  const finished = new Set<unknown>();
  const entered = new Set<unknown>();
  const visit = (schema: unknown, path: string): string | undefined => {
    if (!isObject(schema) || finished.has(schema)) return undefined;
    if (entered.has(schema)) return `${path} leads back to the same schema, for the same value`;
    entered.add(schema);
    for (const [name, part] of sameValueParts(schema, root)) {
      const fault = visit(part, `${path}.${name}`);
      if (fault !== undefined) return fault;
    }
    entered.delete(schema);
    finished.add(schema);
    return undefined;
  };
  const visitAll = (part: unknown, path: string): string | undefined => {
    if (typeof part !== "object" || part === null) return undefined;
    const fault = visit(part, path);
    if (fault !== undefined) return fault;
    for (const [name, inner] of Object.entries(part)) {
      const found = visitAll(inner, Array.isArray(part) ? `${path}[${name}]` : `${path}.${name}`);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return visitAll(root, at);
}

/** The schemas that a schema applies to the same value, each with the keyword that names it. */
function sameValueParts(schema: JsonObject, root: JsonObject): (readonly [string, unknown])[] {
  const parts: (readonly [string, unknown])[] = [];
  for (const [name, value] of Object.entries(schema)) {
    if (REFERENCE_KEYWORDS.has(name))
      parts.push([name, typeof value === "string" ? resolveReference(root, value) : undefined]);
    else if (["not", "if", "then", "else"].includes(name)) parts.push([name, value]);
    else if (["allOf", "anyOf", "oneOf"].includes(name) && Array.isArray(value))
      for (const [index, part] of (value as readonly unknown[]).entries())
        parts.push([`${name}[${index}]`, part]);
    else if (name === "dependentSchemas" && isObject(value))
      for (const [key, part] of Object.entries(value)) parts.push([`${name}.${key}`, part]);
  }
  return parts;
}

/**
 * Makes a Standard Schema of a JSON Schema that has no {@link jsonSchemaFault}. Its `validate` adds the `default` of each missing property
 * to the value, because forms show these defaults.
 */
export function standardSchemaOf(json: JsonObject): Schema {
  let compiled: Validator | undefined;
  const validate = (given: unknown): SchemaResult<unknown> => {
    const value = withDefaults(json, given, json);
    // The schema is compiled at its first use, so that the server starts faster.
    compiled ??= Compile(json);
    const own = withoutPrototypes(value);
    if (compiled.Check(own)) return { value };
    const fields = jsonSchemaFieldErrors(compiled.Errors(own)[1]);
    const issues = fields.map(({ at, message }) => ({ message, path: at === "" ? [] : [at] }));
    return { issues: issues.length > 0 ? issues : [{ message: "does not match the JSON Schema" }] };
  };
  const described = () => json;
  const standard = {
    version: 1 as const,
    vendor: "heddle",
    validate,
    jsonSchema: { input: described, output: described },
  };
  return { "~standard": standard };
}

/** A copy that inherits nothing: the validator takes inherited members, such as `toString`, for members of the value. */
function withoutPrototypes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPrototypes);
  if (!isObject(value)) return value;
  const copy = Object.create(null) as Record<string, unknown>;
  for (const [name, member] of Object.entries(value)) copy[name] = withoutPrototypes(member);
  return copy;
}

/**
 * Adds the `default` of each missing property to a value, also in list items and by the schemas that `$ref` and `allOf` name. Nothing is
 * added within a default, because that could go on for ever.
 */
function withDefaults(schema: unknown, value: unknown, root: JsonObject): unknown {
  if (!isObject(schema)) return value;
  let filled = value;
  for (const part of alwaysAppliedParts(schema, root)) filled = withDefaults(part, filled, root);
  if (Array.isArray(filled)) {
    const { items, prefixItems } = schema;
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    return filled.map((item: unknown, index) =>
      withDefaults(index < first.length ? first[index] : items, item, root),
    );
  }
  const { properties } = schema;
  return isObject(filled) && isObject(properties) ? withDefaultMembers(properties, filled, root) : filled;
}

/** The schemas that a schema always applies to the same value. They make no circle: {@link jsonSchemaFault} refuses circles. */
function alwaysAppliedParts({ $ref, allOf }: JsonObject, root: JsonObject): readonly unknown[] {
  const named = typeof $ref === "string" ? [resolveReference(root, $ref)] : [];
  return Array.isArray(allOf) ? [...named, ...(allOf as readonly unknown[])] : named;
}

function withDefaultMembers(properties: JsonObject, value: JsonObject, root: JsonObject): JsonObject {
  const filled = { ...value };
  for (const [name, inner] of Object.entries(properties)) {
    const given = Object.hasOwn(value, name) ? { default: value[name] } : null;
    const found = given ?? findDefault(inner, root);
    if (found === null) continue;
    // A plain assignment to `__proto__` would set the prototype.
    Object.defineProperty(filled, name, {
      value: given === null ? structuredClone(found.default) : withDefaults(inner, found.default, root),
      configurable: true,
      enumerable: true,
      writable: true,
    });
  }
  return filled;
}

/** The default of a schema: its own, or else the first of those that its `$ref` and its `allOf` name; null if there is none. */
function findDefault(schema: unknown, root: JsonObject): { readonly default: unknown } | null {
  if (!isObject(schema)) return null;
  if (Object.hasOwn(schema, "default")) return { default: schema["default"] };
  for (const part of alwaysAppliedParts(schema, root)) {
    const found = findDefault(part, root);
    if (found !== null) return found;
  }
  return null;
}
