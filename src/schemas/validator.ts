import type { FieldError } from "../model/errors.ts";
import type { RawBody } from "./body.ts";
import { invalid } from "./error-to-response.ts";
import { boundedSample } from "./bounded-sample.ts";
import { Compile, type Static, type TSchema, type Validator } from "./typebox.ts";

/** A schema for request bodies, with the type of a body that it accepts. */
export interface BodySchema<T> {
  readonly schema: TSchema;
  /** Checks a body, and returns the same object. @throws ServiceError `validation.failed`; it names each invalid field */
  parse(body: RawBody): T;
}

export function compileBodySchema<const S extends TSchema>(
  schema: S,
): BodySchema<Static<S>> & { readonly schema: S } {
  let compiled: Validator | undefined;
  return {
    schema,
    parse(body) {
      // The schema is compiled at its first use, so that the server starts faster.
      compiled ??= Compile(schema as TSchema);
      if (compiled.Check(body)) return body as Static<S>;
      const fields = fieldErrors(compiled.Errors(boundedSample(body)));
      throw invalid(fields.length > 0 ? fields : [BEYOND]);
    },
  };
}

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

/** Reported if the invalid part of the body is not in the sample, because thousands of other entries precede it. */
const BEYOND: FieldError = { at: "body", message: "is not valid, and too large to say where" };
/** The largest number of fields that are reported in one response. */
const MAX_REPORTED_FIELDS = 20;

/**
 * The largest number of schema errors that are examined. It is higher than the number of reported fields, because one field may have
 * several errors.
 */
const MAX_EXAMINED_ERRORS = 20 * MAX_REPORTED_FIELDS;

function fieldErrors(all: readonly SchemaError[]): readonly FieldError[] {
  const errors = all.slice(0, MAX_EXAMINED_ERRORS);
  const found = new Map<string, string[]>();
  for (const error of errors) {
    // Skips the error of a union (`anyOf`): the errors of its alternatives say more.
    if (error.keyword === "anyOf" && errors.length > 1) continue;
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
}: SchemaError): (readonly [string, string])[] {
  const at = pathOf(instancePath);
  switch (keyword) {
    case "required": {
      const { requiredProperties } = params as { requiredProperties: readonly string[] };
      return requiredProperties.map((name) => [at === "" ? name : `${at}.${name}`, "is required"] as const);
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
