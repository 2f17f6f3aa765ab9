import { Annotation, END as LAST, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { drawDefinition } from "../../src/graph/graph-drawing.ts";
import { branch, END, graph, value } from "../../src/index.ts";
import type { GraphDrawing } from "../../src/model/graph-drawing.ts";

const state = { n: value(0) };
const body = async () => ({ n: 1 });
const Numbers = Annotation.Root({ n: Annotation<number> });

interface Drawn {
  readonly nodes: readonly { readonly id: string; readonly type: string }[];
  readonly edges: readonly {
    readonly source: string;
    readonly target: string;
    readonly conditional?: boolean;
  }[];
}

/** The parts that two drawings must have in common, in a fixed order. */
function shape({ nodes, edges }: Drawn) {
  return {
    nodes: nodes.map(({ id, type }) => `${id} ${type}`).sort(),
    edges: edges
      .map(({ source, target, conditional }) => `${source}${conditional ? "?" : ""} -> ${target}`)
      .sort(),
  };
}

interface Drawable {
  getGraphAsync(config: { xray: boolean | number }): Promise<{ toJSON(): object }>;
}

const theirs = async (compiled: Drawable, xray: boolean | number) =>
  shape((await compiled.getGraphAsync({ xray })).toJSON() as GraphDrawing);

const line = graph({ state, nodes: { d1: body, d2: body }, edges: { start: "d1", d1: "d2" } });
const one = graph({ state, nodes: { only: body }, edges: { start: "only" } });
const fork = graph({
  state,
  nodes: { l: body, r: body },
  edges: { start: ["l", "r"] },
});
const loop = graph({
  state,
  nodes: { a: body, b: body },
  edges: { start: "a", a: "b", b: branch(() => END, ["a", END]) },
});

const line2 = new StateGraph(Numbers)
  .addNode("d1", body)
  .addNode("d2", body)
  .addEdge(START, "d1")
  .addEdge("d1", "d2")
  .addEdge("d2", LAST)
  .compile();
const one2 = new StateGraph(Numbers)
  .addNode("only", body)
  .addEdge(START, "only")
  .addEdge("only", LAST)
  .compile();
const fork2 = new StateGraph(Numbers)
  .addNode("l", body)
  .addNode("r", body)
  .addEdge(START, "l")
  .addEdge(START, "r")
  .addEdge("l", LAST)
  .addEdge("r", LAST)
  .compile();
const loop2 = new StateGraph(Numbers)
  .addNode("a", body)
  .addNode("b", body)
  .addEdge(START, "a")
  .addEdge("a", "b")
  .addConditionalEdges("b", () => LAST, ["a", LAST])
  .compile();

const nested = graph({
  state,
  nodes: { in: body, sub: line, out: body },
  edges: { start: "in", in: "sub", sub: "out" },
});
const nested2 = new StateGraph(Numbers)
  .addNode("in", body)
  .addNode("sub", line2)
  .addNode("out", body)
  .addEdge(START, "in")
  .addEdge("in", "sub")
  .addEdge("sub", "out")
  .addEdge("out", LAST)
  .compile();

const around = (inner: typeof line) =>
  graph({
    state,
    nodes: { in: body, sub: inner, out: body },
    edges: { start: "in", in: "sub", sub: "out" },
  });
const around2 = (inner: typeof line2) =>
  new StateGraph(Numbers)
    .addNode("in", body)
    .addNode("sub", inner)
    .addNode("out", body)
    .addEdge(START, "in")
    .addEdge("in", "sub")
    .addEdge("sub", "out")
    .addEdge("out", LAST)
    .compile();

/** The same graph, as each library writes it. */
const pairs: readonly (readonly [string, Parameters<typeof drawDefinition>[0], Drawable])[] = [
  ["a line", line, line2],
  ["a single node", one, one2],
  ["two side by side", fork, fork2],
  ["a loop", loop, loop2],
  ["a subgraph in a line", nested, nested2],
  ["a subgraph of one node", around(one as never), around2(one2 as never)],
  ["a subgraph that forks", around(fork as never), around2(fork2 as never)],
  ["a subgraph that loops", around(loop as never), around2(loop2 as never)],
  ["a subgraph in a subgraph", around(nested as never), around2(nested2 as never)],
];

describe.each(pairs)("%s is drawn as LangGraph.js draws it", (_, mine, other) => {
  test.each([
    ["flat", 0, false],
    ["one level", 1, 1],
    ["all levels", Number.POSITIVE_INFINITY, true],
  ])("%s", async (_how, levels, xray) => {
    expect(shape(drawDefinition(mine, levels))).toEqual(await theirs(other, xray));
  });
});

test("nodes and edges have exactly the members that clients know", () => {
  expect(drawDefinition(loop, 0)).toEqual({
    nodes: [
      { id: "__start__", type: "schema", data: { $schema: expect.any(String) as unknown } },
      { id: "a", type: "runnable", data: { id: ["heddle", "Node"], name: "a" } },
      { id: "b", type: "runnable", data: { id: ["heddle", "Node"], name: "b" } },
      { id: "__end__", type: "schema", data: { $schema: expect.any(String) as unknown } },
    ],
    edges: [
      { source: "__start__", target: "a", conditional: false },
      { source: "a", target: "b", conditional: false },
      { source: "b", target: "a", conditional: true },
      { source: "b", target: "__end__", conditional: true },
    ],
  });
});

test("a join waits for edges that are sure", () => {
  const joined = graph({
    state,
    nodes: { a: body, b: body, c: { after: ["a", "b"], run: body } },
    edges: { start: ["a", "b"] },
  });
  const joined2 = new StateGraph(Numbers)
    .addNode("a", body)
    .addNode("b", body)
    .addNode("c", body)
    .addEdge(START, "a")
    .addEdge(START, "b")
    .addEdge(["a", "b"], "c")
    .addEdge("c", LAST)
    .compile();
  return expect(theirs(joined2, false)).resolves.toEqual(shape(drawDefinition(joined, 0)));
});
