import type { FieldError } from "../model/errors.ts";
import { jsonSchemaFieldErrors } from "../model/json-schema-errors.ts";
import type { RawBody } from "./read-body.ts";
import { invalidFieldsError } from "./error-to-response.ts";
import { boundedSample } from "./bounded-sample.ts";
import { Compile, type Static, type TSchema, type Validator } from "./typebox.ts";

/** A schema for request bodies, with the type of a body that it accepts. */
export interface BodySchema<T> {
  readonly schema: TSchema;
  /** Checks a body, and returns the same object. @throws ServiceError `validation.failed`; it names the invalid fields, up to a limit */
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
      const fields = jsonSchemaFieldErrors(compiled.Errors(boundedSample(body)));
      throw invalidFieldsError(fields.length > 0 ? fields : [BEYOND]);
    },
  };
}

/** Reported if the invalid part of the body is not in the sample, because thousands of other entries precede it. */
const BEYOND: FieldError = { at: "body", message: "is not valid, and too large to say where" };
