import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client as SdkClient } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Home } from "../config/project.ts";
import { type Client, lines } from "../e2e/support/clients.ts";
import { type AtEnd, serve } from "../e2e/support/server.ts";
import { writeProject } from "./project.ts";

const home = new Home();
afterAll(() => home.remove());

// The compiler needs seconds, on a busy machine more than half a minute.
vi.setConfig({ testTimeout: 300_000 });
const PATIENT = { LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS: "240000" };

const FIXTURE = ["typed.ts", "typed-parts.ts"];
const DIALECT = "http://json-schema.org/draft-07/schema#";

const place = {
  description: "A place on earth.",
  type: "object",
  properties: {
    lat: { description: "Degrees north.", minimum: -90, maximum: 90, type: "number" },
    lon: { type: "number" },
    name: { type: ["null", "string"] },
  },
};
const tree = {
  type: "object",
  properties: {
    label: { type: "string" },
    children: { type: "array", items: { $ref: "#/definitions/Tree" } },
  },
};
const messages = {
  type: "array",
  items: { $ref: "#/definitions/BaseMessage" },
  langgraph_type: "messages",
};

/** Schemas with the order of alternatives taken out, which is the compiler's own. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    const all = value.map(sorted);
    const isOrdered = all.every((one) => typeof one === "object");
    return isOrdered ? all : all.toSorted((a, b) => String(a).localeCompare(String(b)));
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, sorted(one)]));
}

async function start(
  folder: string,
  graphs: Readonly<Record<string, string>>,
  atEnd: AtEnd = onTestFinished,
) {
  const path = join(folder, "heddle.json");
  writeFileSync(path, JSON.stringify({ graphs, env: PATIENT }));
  return serve({ config: path }, { atEnd });
}

const connect = (url: string): Client => new SdkClient({ apiUrl: url, callerOptions: { maxRetries: 0 } });

/** The schemas of an assistant's graph, by the part that they describe. */
async function schemasOf(client: Client, graph: string) {
  const { assistant_id } = await client.assistants.create({ graphId: graph });
  const all = await client.assistants.getSchemas(assistant_id);
  return all as unknown as Record<string, { properties: object; definitions: object } | null>;
}

/** One for each Node that the tests run on: a compiler takes some ten seconds. */
const compilers = [Number.parseInt(process.versions.node) < 22 ? "TypeScript 5" : "TypeScript 6"] as const;

describe.each(compilers)("with the %s of its project, a graph", (compiler) => {
  let url: string;
  let close = async () => {};
  beforeAll(async () => {
    const folder = writeProject(home, compiler.replace(" ", "-"), compiler, {}, FIXTURE);
    const exported = { typed: "graph", whole: "builder", made: "make", flow: "flow" };
    const graphs = Object.entries(exported).map(([graph, name]) => [graph, `./typed.ts:${name}`]);
    ({ url } = await start(folder, Object.fromEntries(graphs), (end) => (close = end)));
  });
  afterAll(() => close());

  test("has schemas of the types of its state, input, output and configuration", async () => {
    for (const [, connect] of lines) {
      // oxlint-disable-next-line no-await-in-loop -- only two iterations
      const schemas = await schemasOf(connect(url), "typed");
      expect(schemas).toMatchObject({
        graph_id: "typed",
        input_schema: {
          $schema: DIALECT,
          title: "typed input",
          type: "object",
          properties: { topic: { type: "string" } },
        },
        output_schema: {
          $schema: DIALECT,
          title: "typed output",
          type: "object",
          properties: { place: { $ref: "#/definitions/Place" }, tree: { $ref: "#/definitions/Tree" } },
          definitions: { Place: place, Tree: tree },
        },
      });
      const config = {
        $schema: DIALECT,
        title: "typed config",
        type: "object",
        properties: {
          model: { type: "string", enum: ["large", "small"] },
          temperature: { type: "number" },
        },
      };
      expect(sorted(schemas["config_schema"])).toEqual(config);
      expect(sorted(schemas["context_schema"])).toEqual(config);
      expect(Object.keys(schemas["input_schema"]?.properties ?? {})).toEqual(["topic"]);
    }
    const { state_schema } = await schemasOf(connect(url), "typed");
    const { properties, definitions } = state_schema ?? {};
    expect(sorted(properties)).toEqual({
      messages,
      topic: { type: "string", description: "What it is about." },
      kind: { enum: [3, "a", "b"] },
      mixed: { type: ["null", "number", "string"] },
      maybe: { type: "boolean" },
      when: { type: "string", format: "date-time" },
      scores: { type: "object", additionalProperties: { type: "number" } },
      place: { $ref: "#/definitions/Place" },
      places: { $ref: "#/definitions/Page_Place" },
      names: { $ref: "#/definitions/Page_string" },
      level: { type: "string", enum: ["high", "low"] },
      tree: { $ref: "#/definitions/Tree" },
      pair: { type: "array", items: [{ type: "string" }, { type: "number" }], minItems: 1, maxItems: 2 },
      shape: {
        anyOf: [
          { type: "object", properties: { t: { type: "string", const: "x" }, x: { type: "number" } } },
          { type: "object", properties: { t: { type: "string", const: "y" }, y: { type: "string" } } },
        ],
      },
      both: { type: "object", properties: { a: { type: "string" }, b: { type: "number" } } },
      some: { type: "object", properties: place.properties },
      list: { type: "array", items: { type: "string" } },
      log: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
      last: { $ref: "#/definitions/BaseMessage" },
      replies: messages,
      map: {},
      id: { type: "string", pattern: "^run-.*$" },
      brand: { type: "string" },
      open: {},
    });
    expect(sorted(definitions)).toMatchObject({
      Place: place,
      Tree: tree,
      Page_Place: {
        properties: {
          items: { type: "array", items: { $ref: "#/definitions/Place" } },
          next: { type: "string" },
        },
      },
      Page_string: { properties: { items: { type: "array", items: { type: "string" } } } },
      BaseMessage: { type: "object", properties: { type: { type: "string" }, id: { type: "string" } } },
    });
    // A builder: what it takes is its whole state, and what it gives.
    const whole = await schemasOf(connect(url), "whole");
    expect(sorted(whole["input_schema"]?.properties)).toEqual(sorted(properties));
    expect(whole["output_schema"]?.properties).toMatchObject({ log: { type: "array" }, messages });
    expect(whole["config_schema"]).toBeNull();
  });

  test("has subgraphs with schemas of their types, by the nodes that lead to them; functions have theirs, too", async () => {
    const client = connect(url);
    const found = async (graph: string, recurse: boolean) =>
      Object.entries(await client.assistants.getSubgraphs(graph, { recurse })).map(([path, schemas]) => [
        path,
        (schemas.state_schema as { properties?: object }).properties,
      ]);
    const count = { count: { type: "number" } };
    const deep = { ...count, word: { type: "string" } };
    expect(await found("typed", true)).toEqual([
      ["middle", count],
      ["middle|deep", deep],
      ["calls", deep],
    ]);
    expect(await found("typed", false)).toEqual([
      ["middle", count],
      ["calls", deep],
    ]);
    // A function that makes the graph anew for each run.
    expect(await found("made", true)).toEqual([["local", count]]);
    expect((await schemasOf(client, "made"))["state_schema"]?.properties).toEqual({ messages });
    expect(await schemasOf(client, "flow")).toMatchObject({
      input_schema: { type: "object", properties: { n: { type: "number" } } },
      output_schema: { type: "object", properties: { isLarge: { type: "boolean" } } },
    });
  });
});

describe("a graph file", () => {
  const compiled = `import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ topic: Annotation(), n: Annotation({ reducer: (a, b) => a + b, default: () => 0 }) });
export const graph = new StateGraph(State).addNode("a", async () => ({})).addEdge("__start__", "a").compile();
`;
  const declarations = `import { Annotation, type CompiledStateGraph, type StateType, type UpdateType } from "@langchain/langgraph";
declare const State: { topic: ReturnType<typeof Annotation<string>> };
export declare const graph: CompiledStateGraph<StateType<typeof State>, UpdateType<typeof State>, "a", typeof State, typeof State>;
`;
  const derived = { topic: {}, n: { type: "number" } };

  test("in JavaScript has what its channels tell; with declarations beside it, their types", async () => {
    const files = { "plain.js": compiled, "built.js": compiled, "built.d.ts": declarations };
    const folder = writeProject(home, "compiled", "TypeScript 5", files);
    const server = await start(folder, { plain: "./plain.js:graph", built: "./built.js:graph" });
    const client = connect(server.url);
    expect((await schemasOf(client, "plain"))["state_schema"]?.properties).toEqual(derived);
    expect((await schemasOf(client, "built"))["state_schema"]?.properties).toEqual({
      topic: { type: "string" },
    });
    expect(server.complaints).toEqual([]);
  });

  test.each([
    [undefined, "its project has no TypeScript: npm install --save-dev typescript@6"],
    [
      "TypeScript 7",
      "TypeScript 7.0.2 has no compiler that can be called: npm install --save-dev @typescript/typescript6",
    ],
  ] as const)(
    "of a project with %s has what its channels tell, and a hint is logged once",
    async (compiler, why) => {
      const text = compiled.replace("topic: Annotation()", "topic: Annotation<string>");
      const folder = writeProject(home, `without-${compiler}`, compiler, { "a.ts": text, "b.ts": text });
      const hints: unknown[] = [];
      const note = (message: string, fields?: object) => {
        if (message.includes("types")) hints.push({ message, ...fields });
      };
      const logger = { debug() {}, info: note, warn: note, error: note };
      const path = join(folder, "heddle.json");
      writeFileSync(path, JSON.stringify({ graphs: { a: "./a.ts:graph", b: "./b.ts:graph" } }));
      const { url } = await serve({ config: path, logger });
      const client = connect(url);
      for (const name of ["a", "b"])
        // oxlint-disable-next-line no-await-in-loop -- only two iterations
        expect((await schemasOf(client, name))["state_schema"]?.properties).toEqual(derived);
      expect(hints).toEqual([
        { message: "graphs have schemas without the types of their state", file: join(folder, "a.ts"), why },
      ]);
    },
  );
});
