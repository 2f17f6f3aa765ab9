import { Compile, type TSchema } from "../../src/schemas/typebox.ts";

/** JSON Schema, with the keywords that the document uses. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
}

interface Described {
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: Schema } } };
  readonly responses: {
    readonly [status: string]: {
      readonly content?: { readonly [type: string]: { readonly schema: Schema } };
    };
  };
}

/** An operation of the server's OpenAPI document. */
export interface Operation {
  readonly method: string;
  /** The path template, with `{name}` for each parameter. */
  readonly path: string;
  readonly query: readonly { readonly name: string; readonly schema: Schema }[];
  readonly body: Schema | undefined;
  /** Returns what is wrong with an answer that is not a failure; undefined: it matches the document. */
  fault(status: number, type: string, text: string): string | undefined;
}

/** Reads the OpenAPI document of the server at `url`, with all references resolved. */
export async function readApi(url: string): Promise<readonly Operation[]> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
    readonly paths: { readonly [path: string]: { readonly [method: string]: Described } };
    readonly components: { readonly schemas: { readonly [name: string]: Schema } };
  };
  const resolved = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolved);
    if (typeof value !== "object" || value === null) return value;
    const { $ref } = value as Schema;
    if (typeof $ref === "string") return resolved(document.components.schemas[$ref.split("/").at(-1) ?? ""]);
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, resolved(member)]));
  };
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      method: method.toUpperCase(),
      path,
      query: described.parameters.filter((parameter) => parameter.in === "query"),
      body: resolved(described.requestBody?.content["application/json"].schema) as Schema | undefined,
      fault: checker(resolved(described.responses) as Described["responses"]),
    })),
  );
}

function checker(responses: Described["responses"]): Operation["fault"] {
  const compiled = new Map<Schema, ReturnType<typeof Compile>>();
  return (status, type, text) => {
    const described = responses[status];
    if (described === undefined) return `the status ${status} is not described`;
    const contents = Object.entries(described.content ?? {});
    const [kind, content] = contents.find(([known]) => type.startsWith(known)) ?? contents[0] ?? [];
    if (kind === undefined) return text === "" ? undefined : "a body is not described";
    if (!type.startsWith(kind)) return `the content type is ${type}, not ${kind}`;
    if (kind !== "application/json" || content === undefined) return undefined;
    const check = compiled.get(content.schema) ?? Compile(content.schema as TSchema);
    compiled.set(content.schema, check);
    const value: unknown = JSON.parse(text);
    if (check.Check(value)) return undefined;
    return check
      .Errors(value)
      .slice(0, 3)
      .map(({ instancePath, message }) => `${instancePath} ${message}`)
      .join("; ");
  };
}
