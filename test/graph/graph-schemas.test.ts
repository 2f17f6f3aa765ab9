import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { definitionSchemas, subgraphsByPath } from "../../src/graph/graph-schemas.ts";
import { ephemeral, graph, list, messages, reduce, untracked, value } from "../../src/index.ts";

const body = async () => ({});
const edges = { start: "a" } as const;
const nodes = { a: body };

type Properties = { readonly [key: string]: { readonly [word: string]: unknown } };
const properties = (schema: unknown) => (schema as { readonly properties: Properties }).properties;

test("what goes in, what comes out and what is kept, as LangGraph's server tells of a zod state", () => {
  const it = graph({
    name: "zod",
    state: { text: z.string(), n: z.number().default(0), note: z.string().optional() },
    context: z.object({ lang: z.string().optional() }),
    input: ["text"],
    output: ["text", "n"],
    nodes,
    edges,
  });
  const dialect = "https://json-schema.org/draft/2020-12/schema";
  expect(definitionSchemas(it, "g")).toEqual({
    graph_id: "g",
    input_schema: {
      $schema: dialect,
      title: "zod input",
      type: "object",
      properties: { text: { type: "string" } },
    },
    output_schema: {
      $schema: dialect,
      title: "zod output",
      type: "object",
      properties: { text: { type: "string" }, n: { type: "number", default: 0 } },
      required: ["text"],
    },
    state_schema: {
      $schema: dialect,
      title: "zod state",
      type: "object",
      properties: {
        text: { type: "string" },
        n: { type: "number", default: 0 },
        note: { type: "string" },
      },
      required: ["text"],
    },
    config_schema: null,
    context_schema: {
      $schema: dialect,
      type: "object",
      properties: { lang: { type: "string" } },
    },
  });
});

describe("channels", () => {
  const it = graph({
    state: {
      messages: messages(),
      notes: list<string>(),
      total: reduce(z.number().default(0), (a, b) => a + b),
      seen: reduce([] as string[], (all, one: string) => [...all, one]),
      any: value(),
      from: value("x"),
      once: ephemeral(z.boolean()),
      never: untracked<() => void>(),
    },
    nodes,
    edges,
  });
  const { state_schema, input_schema } = definitionSchemas(it, "g");

  test("are described by what they hold", () => {
    expect(properties(state_schema)).toMatchObject({
      messages: { type: "array", langgraph_type: "messages", items: { type: "object" } },
      notes: { type: "array" },
      total: { type: "number", default: 0 },
      seen: { type: "array", default: [] },
      any: {},
      from: { default: "x" },
      once: { type: "boolean" },
    });
  });

  test("are described by what they take", () => {
    expect(properties(input_schema)["seen"]).toEqual({});
    expect(properties(input_schema)["total"]).toEqual({ type: "number", default: 0 });
  });

  test("that are never shown are not told of", () => {
    expect(properties(state_schema)).not.toHaveProperty("never");
  });
});

describe("schemas of several libraries", () => {
  test("zod and arktype describe themselves, what has no word in JSON Schema may be anything", () => {
    const it = graph({
      state: {
        when: z.object({ at: z.date(), n: z.number() }).optional(),
        ark: type({ "tags?": "string[]" }),
        upper: z
          .string()
          .transform((text) => text.length)
          .optional(),
      },
      nodes,
      edges,
    });
    const { input_schema, state_schema } = definitionSchemas(it, "g");
    expect(properties(state_schema)["when"]).toMatchObject({ properties: { at: {}, n: { type: "number" } } });
    expect(properties(state_schema)["ark"]).toMatchObject({ properties: { tags: { type: "array" } } });
    expect(properties(input_schema)["upper"]).toEqual({ type: "string" });
  });

  test("one that cannot say may be anything", () => {
    const it = graph({ state: { v: v.optional(v.string()) }, nodes, edges });
    expect(properties(definitionSchemas(it, "g").state_schema)["v"]).toEqual({});
  });

  test("an own schema of an input's key goes before the state's", () => {
    const it = graph({
      state: { n: z.number().optional() },
      input: { n: z.number().min(3) },
      output: { n: z.number().max(9) },
      nodes,
      edges,
    });
    const { input_schema, output_schema } = definitionSchemas(it, "g");
    expect(properties(input_schema)["n"]).toMatchObject({ minimum: 3 });
    expect(properties(output_schema)["n"]).toMatchObject({ maximum: 9 });
  });

  test("one that holds itself points to where it stands", () => {
    interface Tree {
      readonly kids: readonly Tree[];
    }
    const tree: z.ZodType<Tree> = z.object({ kids: z.lazy(() => z.array(tree)) });
    const it = graph({ state: { "a/b": tree.optional() }, nodes, edges });
    const { state_schema } = definitionSchemas(it, "g");
    const found = JSON.stringify(state_schema);
    const refs = [...found.matchAll(/"\$ref":"#([^"]*)"/g)].map(([, ref]) => ref ?? "");
    expect(refs.length).toBeGreaterThan(0);
    for (const ref of refs) {
      let at: unknown = state_schema;
      for (const part of ref.split("/").slice(1)) {
        at = (at as Properties)[decodeURIComponent(part).replaceAll("~1", "/")];
      }
      expect(at).toMatchObject({ properties: { kids: {} } });
    }
  });
});

test("subgraphs of all levels by the way to them", () => {
  const state = { n: value(0) };
  const inner = graph({ state, nodes: { x: body }, edges: { start: "x" } });
  const middle = graph({ state, nodes: { b: inner }, edges: { start: "b" } });
  const outer = graph({ state, nodes: { sub: middle, plain: body }, edges: { start: "sub", sub: "plain" } });
  expect([...subgraphsByPath(outer)]).toEqual([
    ["sub", middle],
    ["sub|b", inner],
  ]);
});
