import { describe, expect, test } from "vitest";
import { routeGroupOf } from "../../src/access/route-groups.ts";
import { allRouteDescriptions } from "../../src/http/openapi/document.ts";
import { protocol, RUN, THREAD } from "./support.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly const?: unknown;
  readonly format?: string;
  readonly required?: readonly string[];
  readonly properties?: { readonly [name: string]: Schema };
}

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: Schema } } };
}

interface OpenApi {
  readonly openapi: string;
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } };
  readonly components: { readonly schemas: { readonly [name: string]: Schema } };
}

const { ask } = protocol();
const answer = await ask("GET", "/openapi.json");
const api = JSON.parse(answer.text) as OpenApi;
const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);

const IDS: Readonly<Record<string, string>> = { thread_id: THREAD, run_id: RUN };
/** A path with an id for each parameter. */
const filled = (path: string) => path.replaceAll(/\{(\w+)\}/g, (_, name: string) => IDS[name] ?? RUN);

const whole = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (api.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {});

/** An unlikely value of each type. */
const samples = { object: { odd: [] }, number: -0.5, boolean: true, array: [[[]]], string: "none of these" };
type Type = keyof typeof samples;

function typesOf({ anyOf, enum: values, type, ...rest }: Schema): readonly string[] {
  if (anyOf !== undefined) return anyOf.flatMap(typesOf);
  if (type !== undefined) return [type === "integer" ? "number" : type];
  if (values !== undefined) return values.map((value) => typeof value);
  return "const" in rest ? [typeof rest.const] : Object.keys(samples);
}

/** A value of a type that the schema refuses; undefined: it accepts anything. */
function wrong(schema: Schema): unknown {
  const types = typesOf(schema);
  const other = Object.keys(samples).find((type) => !types.includes(type));
  return other === undefined ? undefined : samples[other as Type];
}

/** The smallest value that the schema accepts. */
function right(schema: Schema): unknown {
  const [type] = typesOf(schema);
  if (schema.format === "uuid") return RUN;
  return { object: {}, number: 1, boolean: true, array: [], string: "agent" }[type ?? ""];
}

test("it is OpenAPI 3.1, served without a key, and every name that it refers to is there", () => {
  expect([answer.status, api.openapi]).toEqual([200, "3.1.0"]);
  const refs = [...answer.text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name = ""]) => name);
  expect(refs.length).toBeGreaterThan(50);
  expect(refs.filter((name) => !Object.hasOwn(api.components.schemas, name))).toEqual([]);
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test("every route is described, and nothing else", () => {
  const described = Object.keys(allRouteDescriptions).map((route) => route.replaceAll(/:(\w+)/g, "{$1}"));
  expect(operations.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(described.toSorted());
  const bare = Object.entries(api.paths).filter(([, methods]) => Object.keys(methods).length === 0);
  expect(bare).toEqual([]);
});

test("a route that reads a body says which, and a body that is said to be there is read", async () => {
  const readers: string[] = [];
  const described: string[] = [];
  for (const { method, path, operation } of operations) {
    const route = `${method} ${path}`;
    if (operation.requestBody !== undefined) described.push(route);
    const { text } = await ask(method, filled(path), "{");
    if (text.includes("Malformed JSON in request body")) readers.push(route);
  }
  expect(readers).toEqual(described);
});

/** First parts of paths that no group disables: health checks, and what authentication needs. */
const ALWAYS_SERVED: ReadonlySet<string> = new Set(["auth", "live", "ok", "ready"]);

test("every route belongs to a group that a configuration can disable, or is always served", () => {
  const others = operations
    .filter(({ path }) => routeGroupOf(path) === undefined)
    .map(({ path }) => path.split("/")[1] ?? "");
  expect([...new Set(others)].toSorted()).toEqual([...ALWAYS_SERVED].toSorted());
});

describe("what is said of a body is what is checked", () => {
  const cases = operations.flatMap(({ method, path, operation }) => {
    const schema = operation.requestBody?.content["application/json"].schema;
    if (schema === undefined) return [];
    const isList = schema.type === "array";
    const body = whole(isList ? (schema.items ?? {}) : schema);
    return Object.entries(body.properties ?? {}).flatMap(([name, member]) => {
      const value = wrong(member);
      return value === undefined
        ? []
        : [[`${method} ${path}`, name, { method, path, body, isList, value }] as const];
    });
  });

  test("many fields are tried", () => expect(cases.length).toBeGreaterThan(100));

  test.each(cases)(
    "%s: %s",
    async (_, name, { method, path, body: { required = [], properties }, isList, value }) => {
      const needed = required.map((one) => [one, right(properties?.[one] ?? {})] as const);
      const body = { ...Object.fromEntries(needed), [name]: value };
      const refused = await ask(method, filled(path), isList ? [body] : body);
      const { errors } = JSON.parse(refused.text) as { errors?: readonly { readonly at: string }[] };
      expect([refused.status, errors?.map(({ at }) => at)]).toEqual([
        422,
        expect.arrayContaining([expect.stringMatching(new RegExp(`^(\\[0\\]\\.)?${name}`))]),
      ]);
    },
  );
});

describe("what is said of a query is what is checked", () => {
  const cases = operations.flatMap(({ method, path, operation }) =>
    operation.parameters
      .filter(({ in: place, schema }) => place === "query" && (schema.enum ?? schema.type) !== "string")
      .filter(({ schema }) => schema.type !== "array")
      .map(({ name }) => [`${method} ${path}`, name, { method, path }] as const),
  );

  test("some are tried", () => expect(cases.length).toBeGreaterThan(15));

  test.each(cases)("%s: %s", async (_, name, { method, path }) => {
    const others = path === "/store/items" ? "key=a&" : "";
    const refused = await ask(method, `${filled(path)}?${others}${name}=nonsense`);
    expect([refused.status, refused.text]).toEqual([422, expect.stringContaining(name)]);
  });
});
