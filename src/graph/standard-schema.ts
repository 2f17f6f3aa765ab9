import { ServiceError, type FieldError } from "../model/errors.ts";

/**
 * The part of the Standard Schema interface (standardschema.dev, version 1) that Heddle uses: zod, valibot and arktype
 * schemas all have it, so none of them is a dependency.
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

function pathOf(at: string, issue: SchemaIssue): string {
  let path = at;
  for (const part of issue.path ?? []) {
    const key = typeof part === "object" ? part.key : part;
    path += typeof key === "number" ? `[${key}]` : `.${String(key)}`;
  }
  return path;
}

/** What `value` becomes by `schema`, or what is wrong with it: by path, starting at `at`. */
export function validate<Output>(
  schema: Schema<unknown, Output>,
  value: unknown,
  at: string,
):
  | { readonly ok: true; readonly value: Output }
  | { readonly ok: false; readonly fields: readonly FieldError[] } {
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise) {
    // Nobody waits for its answer, and a rejection that nobody hears would end the process.
    result.catch(() => undefined);
    throw new ServiceError(
      "graph.invalid",
      `${at}: its schema is asynchronous; use one that answers at once`,
    );
  }
  if (result.issues === undefined) return { ok: true, value: result.value };
  return { ok: false, fields: issuesAt(at, result.issues) };
}

/** Issues by path, starting at `at`. */
export function issuesAt(at: string, issues: readonly SchemaIssue[]): readonly FieldError[] {
  return issues.map((issue) => ({ at: pathOf(at, issue), message: issue.message }));
}

/**
 * What a schema gives, as text that tells one from another: its JSON Schema where its library can say it, else the name of its
 * type. Null where neither is known: then two are taken for the same.
 */
export function shapeOf(schema: Schema): string | null {
  try {
    const { jsonSchema } = schema["~standard"] as {
      readonly jsonSchema?: { readonly output?: (options: { readonly target: string }) => unknown };
    };
    const described = jsonSchema?.output?.({ target: "draft-2020-12" });
    if (described !== undefined) return JSON.stringify(described);
  } catch {
    // What JSON Schema has no word for, such as a date.
  }
  const { type } = schema as { readonly type?: unknown };
  return typeof type === "string" ? type : null;
}

/** What is wrong with `value`, by path. */
export function faults(schema: Schema, value: unknown, at: string): readonly FieldError[] {
  const result = validate(schema, value, at);
  return result.ok ? [] : result.fields;
}

/**
 * What `value` becomes by `schema`.
 * @throws ServiceError `state.invalid`, naming what is wrong by path
 */
export function parse<Output>(schema: Schema<unknown, Output>, value: unknown, at: string): Output {
  const result = validate(schema, value, at);
  if (result.ok) return result.value;
  throw new ServiceError("state.invalid", describe(result.fields), { fields: result.fields });
}

/** Field errors as one line for people. */
export function describe(fields: readonly FieldError[]): string {
  return fields.map((field) => `${field.at}: ${field.message}`).join("; ");
}
