import type { FieldError } from "./errors.ts";

/** An error of a JSON Schema validator. */
export interface JsonSchemaError {
  readonly keyword: string;
  /** A JSON pointer to the invalid part of the value. */
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

/** The largest number of fields that are reported in one response. */
export const MAX_REPORTED_FIELDS = 20;

/**
 * The largest number of schema errors that are examined. It is higher than the number of reported fields, because one field may have
 * several errors.
 */
const MAX_EXAMINED_ERRORS = 20 * MAX_REPORTED_FIELDS;

const OUTER_KEYWORDS: ReadonlySet<string> = new Set([
  "anyOf",
  "additionalProperties",
  "unevaluatedProperties",
]);

/** Converts errors of a JSON Schema validator to field errors, at most one for each field, and only of the innermost fields. */
export function jsonSchemaFieldErrors(all: readonly JsonSchemaError[]): readonly FieldError[] {
  const errors = all.slice(0, MAX_EXAMINED_ERRORS);
  const found = new Map<string, string[]>();
  for (const error of errors) {
    // Skips the errors of a union, and of an object with members that are not allowed: the errors of the alternatives and the members
    // say more.
    if (OUTER_KEYWORDS.has(error.keyword) && errors.length > 1) continue;
    for (const [at, message] of errorEntries(error)) {
      const messages = found.get(at);
      if (messages === undefined) found.set(at, [message]);
      else if (!messages.includes(message)) messages.push(message);
    }
  }
  // Reports only the errors of the innermost fields. These say more than the error of a field that contains them, which may only say that
  // an alternative does not match.
  const names = [...found.keys()];
  const deepest = [...found].filter(([at]) => !names.some((other) => isWithin(other, at)));
  return deepest.slice(0, MAX_REPORTED_FIELDS).map(([at, [first = "", ...others]]) => ({
    at,
    message: [first, ...others.map((other) => other.replace(/^must be /, ""))].join(", or "),
  }));
}

const isWithin = (path: string, outer: string) =>
  path.length > outer.length && path.startsWith(outer) && /^[.[]/.test(path.slice(outer.length));

function errorEntries({
  keyword,
  instancePath,
  params,
  message,
}: JsonSchemaError): (readonly [string, string])[] {
  const at = pathOf(instancePath);
  switch (keyword) {
    case "required": {
      const { requiredProperties } = params as { requiredProperties: readonly string[] };
      return requiredProperties.map((name) => [at === "" ? name : `${at}.${name}`, "is required"] as const);
    }
    case "unevaluatedProperties": {
      const { unevaluatedProperties } = params as { unevaluatedProperties: readonly string[] };
      return unevaluatedProperties.map(
        (name) => [at === "" ? name : `${at}.${name}`, "is not allowed"] as const,
      );
    }
    case "enum": {
      const { allowedValues } = params as { allowedValues: readonly unknown[] };
      return [[at, `must be one of ${allowedValues.join(", ")}`]];
    }
    case "const": {
      const { allowedValue } = params as { allowedValue: unknown };
      return [[at, `must be ${JSON.stringify(allowedValue)}`]];
    }
    case "type": {
      const types = [(params as { type: string | readonly string[] }).type].flat();
      return [[at, `must be ${types.map(withArticle).join(" or ")}`]];
    }
    case "format":
      return [[at, `must be a ${(params as { format: string }).format.toUpperCase()}`]];
    case "boolean":
      return [[at, "is not allowed"]];
    default:
      return [[at, message]];
  }
}

const withArticle = (type: string): string =>
  type === "null" ? type : `${/^[aio]/.test(type) ? "an" : "a"} ${type}`;

/** Converts a JSON pointer to a path such as `config.tags[0]`. */
function pathOf(pointer: string): string {
  let path = "";
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(name)) path += `[${name}]`;
    else path += path === "" ? name : `.${name}`;
  }
  return path;
}
