import type { FieldError } from "../model/errors.ts";
import type { RawBody } from "./body.ts";
import { invalid } from "./error-responses.ts";
import { sampleOf } from "./validation-sample.ts";
import { Compile, type Static, type TSchema, type Validator } from "./typebox.ts";

/** A schema, compiled once, and what a body is after it has passed. */
export interface Shape<T> {
  readonly schema: TSchema;
  /** @throws ServiceError `validation.failed` naming each field that is wrong */
  parse(body: RawBody): T;
}

export function shape<const S extends TSchema>(schema: S): Shape<Static<S>> & { readonly schema: S } {
  let compiled: Validator | undefined;
  return {
    schema,
    parse(body) {
      // At the first use: a server that has just started has better things to do.
      compiled ??= Compile(schema as TSchema);
      if (compiled.Check(body)) return body as Static<S>;
      const fields = fieldErrors(compiled.Errors(sampleOf(body)));
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

/** What is said where what is wrong stands behind thousands of entries. */
const BEYOND: FieldError = { at: "body", message: "is not valid, and too large to say where" };
/** Fields told of in one answer. */
const MOST = 20;

/** Errors that are looked at: of one field there may be several. */
const LOOKED_AT = 20 * MOST;

function fieldErrors(all: readonly SchemaError[]): readonly FieldError[] {
  const errors = all.slice(0, LOOKED_AT);
  const found = new Map<string, string[]>();
  for (const error of errors) {
    // That none of several schemas fits says less than what each of them wanted.
    if (error.keyword === "anyOf" && errors.length > 1) continue;
    for (const [at, message] of told(error)) {
      const messages = found.get(at);
      if (messages === undefined) found.set(at, [message]);
      else if (!messages.includes(message)) messages.push(message);
    }
  }
  // Where one of several schemas fits but for a part, that part is what is wrong.
  const names = [...found.keys()];
  const deepest = [...found].filter(([at]) => !names.some((other) => isWithin(other, at)));
  return deepest.slice(0, MOST).map(([at, messages]) => ({ at, message: messages.join(", or ") }));
}

const isWithin = (path: string, outer: string) =>
  path.length > outer.length && path.startsWith(outer) && /^[.[]/.test(path.slice(outer.length));

function told({ keyword, instancePath, params, message }: SchemaError): (readonly [string, string])[] {
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
    case "format":
      return [[at, `must be a ${(params as { format: string }).format.toUpperCase()}`]];
    default:
      return [[at, message]];
  }
}

/** A JSON pointer as people write it: `config.tags[0]`. */
function pathOf(pointer: string): string {
  let path = "";
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(name)) path += `[${name}]`;
    else path += path === "" ? name : `.${name}`;
  }
  return path;
}
