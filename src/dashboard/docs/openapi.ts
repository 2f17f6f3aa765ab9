/** An OpenAPI 3.1 description, with only the fields that this server's description contains. */
export interface OpenApi {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security?: readonly unknown[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } };
  readonly components: { readonly schemas: { readonly [name: string]: OpenApiSchema } };
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security?: readonly unknown[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: {
    readonly [status: string]: { readonly description: string; readonly content?: Content };
  };
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: OpenApiSchema;
}

export type Content = { readonly [type: string]: { readonly schema: OpenApiSchema } };

export interface OpenApiSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly OpenApiSchema[];
  readonly items?: OpenApiSchema;
  readonly properties?: { readonly [name: string]: OpenApiSchema };
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
}

/** An operation with its method and path. */
export interface LocatedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function operationsOf({ paths }: OpenApi): readonly LocatedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

const nameIn = (ref: string): string => ref.slice(ref.lastIndexOf("/") + 1);

/** Returns the schema to which a `$ref` points; a schema without `$ref` is returned unchanged. */
export function resolveSchema(api: OpenApi, schema: OpenApiSchema): OpenApiSchema {
  if (schema.$ref === undefined) return schema;
  return api.components.schemas[nameIn(schema.$ref)] ?? {};
}

/** Returns the type of a schema in TypeScript notation. Formats, such as `uuid`, are given instead of their type. */
export function schemaTypeText(schema: OpenApiSchema): string {
  if (schema.$ref !== undefined) return nameIn(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(schemaTypeText))].join(" | ");
  if (schema.type === "array") {
    const item = schemaTypeText(schema.items ?? {});
    return item.includes(" ") ? `(${item})[]` : `${item}[]`;
  }
  return schema.format ?? schema.type ?? "any";
}

/**
 * Returns the constraints of a schema besides its type, as text: limits of values, lengths and numbers of items, and
 * the default.
 */
export function schemaLimitsText(schema: OpenApiSchema): string {
  const { minimum, exclusiveMinimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const limitText = (least: number | undefined, most: number | undefined, of: string) =>
    least === undefined && most === undefined
      ? []
      : [
          `${[least !== undefined && `at least ${least}`, most !== undefined && `at most ${most}`].filter(Boolean).join(", ")}${of}`,
        ];
  return [
    ...limitText(minimum, maximum, ""),
    ...(exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`]),
    ...limitText(minLength, maxLength, " characters"),
    ...limitText(minItems, maxItems, " items"),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ].join("; ");
}

/**
 * Finds a schema with properties: the schema itself, that of a list's items, or the first alternative that has one.
 * Undefined if there is none.
 */
export function findObjectSchema(api: OpenApi, schema: OpenApiSchema): OpenApiSchema | undefined {
  const whole = resolveSchema(api, schema);
  if (whole.properties !== undefined) return whole;
  if (whole.items !== undefined) return findObjectSchema(api, whole.items);
  for (const one of whole.anyOf ?? []) {
    const found = findObjectSchema(api, one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns a small example value for a schema, with only the required members. */
function exampleOf(api: OpenApi, schema: OpenApiSchema): unknown {
  const whole = resolveSchema(api, schema);
  if (whole.const !== undefined) return whole.const;
  if (whole.enum !== undefined) return whole.enum[0];
  if (whole.anyOf?.[0] !== undefined) return exampleOf(api, whole.anyOf[0]);
  switch (whole.type) {
    case "object":
      return Object.fromEntries(
        (whole.required ?? []).map((name) => [name, exampleOf(api, whole.properties?.[name] ?? {})]),
      );
    case "array":
      return (whole.minItems ?? 0) > 0 || whole.items?.$ref !== undefined
        ? [exampleOf(api, whole.items ?? {})]
        : [];
    case "string":
      return whole.format === "uuid" ? "00000000-0000-4000-8000-000000000000" : "...";
    case "integer":
    case "number":
      return whole.minimum ?? 1;
    case "boolean":
      return true;
    default:
      return {};
  }
}

/** Returns a curl command for an operation. */
export function curlOfOperation(
  api: OpenApi,
  { method, path, operation }: LocatedOperation,
  origin: string,
): string {
  const [server] = api.servers;
  const base = `${origin}${server?.url === "/" ? "" : (server?.url ?? "")}`;
  const parts = [`curl${method === "GET" ? "" : ` -X ${method}`} '${base}${path}'`];
  if (api.security !== undefined && operation.security?.length !== 0)
    parts.push(`-H "x-api-key: $HEDDLE_KEY"`);
  const schema = operation.requestBody?.content["application/json"]?.schema;
  if (schema !== undefined) {
    parts.push("-H 'content-type: application/json'", `-d '${JSON.stringify(exampleOf(api, schema))}'`);
  }
  return parts.join(" \\\n  ");
}
