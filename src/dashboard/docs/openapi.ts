/** OpenAPI 3.1, as far as the server makes use of it. */
export interface OpenApi {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security?: readonly unknown[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } };
  readonly components: { readonly schemas: { readonly [name: string]: Schema } };
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
  readonly schema: Schema;
}

export type Content = { readonly [type: string]: { readonly schema: Schema } };

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: { readonly [name: string]: Schema };
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

/** An operation with where it is. */
export interface Placed {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function operationsOf({ paths }: OpenApi): readonly Placed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

const nameIn = (ref: string): string => ref.slice(ref.lastIndexOf("/") + 1);

/** A schema itself, where another place holds it. */
export function resolved(api: OpenApi, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  return api.components.schemas[nameIn(schema.$ref)] ?? {};
}

/** A type in the words of TypeScript. */
export function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return nameIn(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(" | ");
  if (schema.type === "array") {
    const item = typeOf(schema.items ?? {});
    return item.includes(" ") ? `(${item})[]` : `${item}[]`;
  }
  return schema.format ?? schema.type ?? "any";
}

/** What else holds for a value. */
export function limitsOf(schema: Schema): string {
  const { minimum, exclusiveMinimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const said = (least: number | undefined, most: number | undefined, of: string) =>
    least === undefined && most === undefined
      ? []
      : [
          `${[least !== undefined && `at least ${least}`, most !== undefined && `at most ${most}`].filter(Boolean).join(", ")}${of}`,
        ];
  return [
    ...said(minimum, maximum, ""),
    ...(exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`]),
    ...said(minLength, maxLength, " characters"),
    ...said(minItems, maxItems, " members"),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ].join("; ");
}

/** What an object or a list of them is made of; undefined: nothing that would have to be shown. */
export function membersOf(api: OpenApi, schema: Schema): Schema | undefined {
  const whole = resolved(api, schema);
  if (whole.properties !== undefined) return whole;
  if (whole.items !== undefined) return membersOf(api, whole.items);
  for (const one of whole.anyOf ?? []) {
    const found = membersOf(api, one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The least that a schema takes. */
function exampleOf(api: OpenApi, schema: Schema): unknown {
  const whole = resolved(api, schema);
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

/** A request as one would make it by hand. */
export function curlOf(api: OpenApi, { method, path, operation }: Placed, origin: string): string {
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
