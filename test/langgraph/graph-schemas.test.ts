import {
  Annotation,
  entrypoint,
  MessagesAnnotation,
  MessagesValue,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { graphFile, isBelow } from "./support.ts";
import { statechartOfOutline } from "../../src/graph/graph-as-statechart.ts";
import { langGraphDrawing, langGraphOutline } from "../../src/langgraph/graph-drawing.ts";
import { resolveLibrary, type LangGraphLibrary } from "../../src/langgraph/user-library.ts";
import type { CompiledGraph } from "../../src/langgraph/exported-graph.ts";
import { langGraphSchemas, subgraphSchemas } from "../../src/langgraph/graph-schemas.ts";

let library: LangGraphLibrary;
beforeAll(async () => {
  library = await resolveLibrary(graphFile, null);
});

const nothing = async () => ({});
const DIALECT = "https://json-schema.org/draft/2020-12/schema";

const zod = new StateGraph(
  // LangGraph defines the types of this form.
  {
    state: z.object({ text: z.string(), n: z.number().default(0) }),
    input: z.object({ text: z.string() }),
    output: z.object({ n: z.number() }),
  } as unknown as typeof MessagesAnnotation,
  z.object({ lang: z.string().optional() }),
)
  .addNode("a", nothing)
  .addEdge("__start__", "a")
  .compile() as unknown as CompiledGraph;

const Notes = Annotation.Root({
  ...MessagesAnnotation.spec,
  topic: Annotation<string>(),
  notes: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
  total: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
});
const innermost = new StateGraph(Notes).addNode("d1", nothing).addNode("d2", nothing);
innermost.addEdge("__start__", "d1").addEdge("d1", "d2").addEdge("d2", "__end__");
const inner = new StateGraph(Notes).addNode("b", innermost.compile()).addNode("c", nothing);
inner.addEdge("__start__", "b").addEdge("b", "c").addEdge("c", "__end__");
const outer = new StateGraph(Notes)
  .addNode("a", nothing)
  .addNode("sub", inner.compile())
  .addEdge("__start__", "a")
  .addConditionalEdges("a", () => "sub", { go: "sub", stop: "__end__" })
  .compile({ interruptBefore: ["a"] }) as unknown as CompiledGraph;

describe("schemas", () => {
  test("of a zod state are those of zod: nothing of an input is required", () => {
    expect(langGraphSchemas(library, zod, "g")).toEqual({
      graph_id: "g",
      input_schema: {
        $schema: DIALECT,
        type: "object",
        properties: { text: { type: "string" } },
        additionalProperties: false,
      },
      output_schema: {
        $schema: DIALECT,
        type: "object",
        properties: { n: { type: "number" } },
        required: ["n"],
        additionalProperties: false,
      },
      state_schema: {
        $schema: DIALECT,
        type: "object",
        properties: { text: { type: "string" }, n: { type: "number", default: 0 } },
        additionalProperties: false,
      },
      config_schema: {
        $schema: DIALECT,
        type: "object",
        properties: { lang: { type: "string" } },
        additionalProperties: false,
      },
      context_schema: expect.objectContaining({ properties: { lang: { type: "string" } } }),
    });
  });

  test("of an annotation have its names, and what its reducers and defaults tell", () => {
    const { input_schema, state_schema, config_schema } = langGraphSchemas(library, outer, "g");
    expect(input_schema).toEqual({
      $schema: DIALECT,
      title: "g input",
      type: "object",
      properties: {
        messages: { type: "array", items: { type: "object" }, langgraph_type: "messages" },
        topic: {},
        notes: { type: "array" },
        total: { type: "number" },
      },
    });
    expect(Object.keys(state_schema?.["properties"] as object)).toEqual([
      "messages",
      "topic",
      "notes",
      "total",
    ]);
    expect(config_schema).toBeNull();
  });

  test.skipIf(isBelow(1))("of a StateSchema are its own; messages are known as such", () => {
    const state = new StateSchema({ messages: MessagesValue, n: z.number() });
    const graph = new StateGraph(state).addNode("a", nothing).addEdge("__start__", "a").compile();
    const { input_schema } = langGraphSchemas(library, graph as unknown as CompiledGraph, "g");
    expect(input_schema).toMatchObject({
      properties: { messages: { langgraph_type: "messages" }, n: isBelow(4) ? {} : { type: "number" } },
    });
  });

  test("of a part that JSON Schema has no word for are left open", () => {
    const graph = new StateGraph(z.object({ at: z.date(), n: z.number() }))
      .addNode("a", nothing)
      .addEdge("__start__", "a")
      .compile();
    const { state_schema } = langGraphSchemas(library, graph as unknown as CompiledGraph, "g");
    expect(state_schema === null || "properties" in state_schema).toBe(true);
  });

  test("of subgraphs go by the nodes that lead to them", async () => {
    const { bound } = (outer.nodes as unknown as { readonly sub: { readonly bound: CompiledGraph } }).sub;
    const found = await subgraphSchemas(library, outer, new Map([[bound, "served"]]));
    expect([...found].map(([path, { graph_id }]) => [path, graph_id])).toEqual([
      ["sub", "served"],
      ["sub|b", "LangGraph"],
    ]);
    expect(found.get("sub|b")?.input_schema).toMatchObject({ properties: { topic: {} } });
  });
});

describe("a drawing", () => {
  const ids = async (levels: number) => (await langGraphDrawing(outer, levels)).nodes.map(({ id }) => id);

  test("shows as many levels of subgraphs as are asked for", async () => {
    expect(await ids(0)).toEqual(["__start__", "a", "sub", "__end__"]);
    expect(await ids(1)).toEqual(["__start__", "a", "sub:b", "sub:c", "__end__"]);
    const all = ["__start__", "a", "sub:b:d1", "sub:b:d2", "sub:c", "__end__"];
    expect(await ids(2)).toEqual(all);
    expect(await ids(Number.POSITIVE_INFINITY)).toEqual(all);
  });

  test("has edges with their labels, and what a node is marked with", async () => {
    const { nodes, edges } = await langGraphDrawing(outer, 0);
    expect(edges).toEqual([
      { source: "__start__", target: "a", conditional: false },
      { source: "a", target: "sub", data: "go", conditional: true },
      { source: "a", target: "__end__", data: "stop", conditional: true },
    ]);
    expect(nodes[0]).toEqual({ id: "__start__", type: "schema", data: { $schema: DIALECT } });
    expect(nodes[1]).toEqual({
      id: "a",
      type: "runnable",
      data: { id: ["langgraph", "RunnableCallable"], name: "a" },
      metadata: { __interrupt: "before" },
    });
  });
});

describe("charts", () => {
  const chart = (graph: unknown) => statechartOfOutline(langGraphOutline(graph as CompiledGraph), "g");

  test("nodes are states, edges their ends, and graphs within are states with states inside", () => {
    const { states = {}, ...own } = chart(outer);
    expect(own).toEqual({ id: "g", initial: "__start__" });
    expect(Object.keys(states)).toEqual(["__start__", "a", "sub", "__end__"]);
    expect(states["a"]?.on).toEqual({
      "a.done": [
        { target: "#sub", guard: "chosen" },
        { target: "#__end__", guard: "chosen" },
      ],
    });
    expect(states["sub"]).toMatchObject({
      id: "sub",
      initial: "__start__",
      on: { "sub.done": [{ target: "#__end__" }] },
      states: { b: { id: "sub/b", states: { d1: { on: { "d1.done": [{ target: "#sub/b/d2" }] } } } } },
    });
    expect(states["__end__"]).toEqual({ id: "__end__", type: "final" });
  });

  test("what an edge starts side by side are the regions of a parallel state", () => {
    const wide = new StateGraph(Notes).addNode("plan", nothing).addNode("l", nothing).addNode("r", nothing);
    wide.addEdge("__start__", "plan").addEdge("plan", "l").addEdge("plan", "r");
    expect(chart(wide.compile()).states?.["after: plan"]).toMatchObject({
      type: "parallel",
      states: { l: { initial: "l" }, r: { initial: "r" } },
    });
  });

  test("of a graph that has no edges to draw, its nodes", () => {
    const flow = entrypoint("flow", async (n: number) => n);
    expect(chart(flow).states).toEqual({
      __start__: { id: "__start__", on: { start: [{ target: "#flow" }] } },
      flow: { id: "flow", on: { "flow.done": [{ target: "#__end__" }] } },
      __end__: { id: "__end__", type: "final" },
    });
  });
});
