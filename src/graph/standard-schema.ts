import { ServiceError, type FieldError } from "../model/errors.ts";

/**
 * The part of the Standard Schema interface (standardschema.dev, version 1) that Heddle uses. Schemas of zod, valibot and
 * arktype implement it, so Heddle depends on none of these libraries.
 */
export interface Schema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export function isSchema(value: unknown): value is Schema {
  // Schemas of some libraries are functions.
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return false;
  const standard = (value as Partial<Schema>)["~standard"];
  return typeof standard === "object" && standard !== null && typeof standard.validate === "function";
}

function pathOf(at: string, { path: parts }: Partial<SchemaIssue>): string {
  let path = at;
  for (const part of Array.isArray(parts) ? (parts as NonNullable<SchemaIssue["path"]>) : []) {
    const key = typeof part === "object" ? part.key : part;
    path += typeof key === "number" ? `[${key}]` : `.${String(key)}`;
  }
  return path;
}

/** Validates `value`. Returns the schema's output, or field errors whose paths start with `at`. */
export function validate<Output>(
  schema: Schema<unknown, Output>,
  value: unknown,
  at: string,
):
  | { readonly ok: true; readonly value: Output }
  | { readonly ok: false; readonly fields: readonly FieldError[] } {
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise) {
    // Nobody awaits the result. If it rejected, the unhandled rejection would end the process.
    result.catch(() => undefined);
    throw new ServiceError(
      "graph.invalid",
      `${at}: its schema is asynchronous; use one that answers at once`,
    );
  }
  if (result.issues === undefined) return { ok: true, value: result.value };
  return { ok: false, fields: toFieldErrors(at, result.issues) };
}

/** Converts schema issues to field errors whose paths start with `at`. An issue of a handwritten schema may lack its message. */
export function toFieldErrors(at: string, issues: readonly Partial<SchemaIssue>[]): readonly FieldError[] {
  return issues.map((issue) => {
    const { message } = issue;
    const hasMessage = typeof message === "string" && message !== "";
    return { at: pathOf(at, issue), message: hasMessage ? message : "is not valid" };
  });
}

/**
 * A text that identifies the output type of a schema, for the definition's hash: the JSON Schema of the output if the
 * library provides it, else the name of the schema's type. Null if neither is known; all such schemas count as equal.
 */
export function schemaFingerprint(schema: Schema): string | null {
  try {
    const { jsonSchema } = schema["~standard"] as {
      readonly jsonSchema?: { readonly output?: (options: { readonly target: string }) => unknown };
    };
    const described = jsonSchema?.output?.({ target: "draft-2020-12" });
    if (described !== undefined) return JSON.stringify(described);
  } catch {
    // The schema has a part that JSON Schema cannot express, such as a date.
  }
  const { type } = schema as { readonly type?: unknown };
  return typeof type === "string" ? type : null;
}

/** The field errors of `value`; empty if it is valid. */
export function fieldErrors(schema: Schema, value: unknown, at: string): readonly FieldError[] {
  const result = validate(schema, value, at);
  return result.ok ? [] : result.fields;
}

/**
 * Validates `value` and returns the schema's output.
 * @throws ServiceError `state.invalid`, with the paths of the errors
 */
export function parse<Output>(schema: Schema<unknown, Output>, value: unknown, at: string): Output {
  const result = validate(schema, value, at);
  if (result.ok) return result.value;
  throw new ServiceError("state.invalid", describeFieldErrors(result.fields), { fields: result.fields });
}

/** Field errors as one line for people. */
export function describeFieldErrors(fields: readonly FieldError[]): string {
  return fields.map((field) => `${field.at}: ${field.message}`).join("; ");
}
