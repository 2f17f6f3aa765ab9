import { describe, expect, test } from "vitest";
import { z } from "zod";
import { branch, END, graph, list, value } from "../../src/index.ts";
import { GraphRegistry } from "../../src/graph/registry.ts";

/** A literal as plain JavaScript would bring it, without the help of types. */
const define = graph as unknown as (literal: object) => ReturnType<typeof graph>;
const node = async () => ({});
const base = { state: { n: value(0) }, nodes: { a: node, b: node }, edges: { start: "a" } };
const inner = define(base);

describe("refused at definition, with the name", () => {
  test.each<[string, object, string]>([
    [
      "an unknown target",
      { edges: { start: "a", a: "c" } },
      'edges.a names "c", which is no node; the nodes are a, b',
    ],
    ["an unknown target in an array", { edges: { start: ["a", "c"] } }, 'edges.start names "c"'],
    ["an unknown target of a branch", { edges: { start: branch(() => "a", ["a", "c"]) } }, 'names "c"'],
    ["an unknown source", { edges: { start: "a", c: "a" } }, 'edges names "c"'],
    [
      "an unknown name in after",
      { nodes: { a: node, b: { run: node, after: ["c"] } } },
      'nodes.b.after names "c"',
    ],
    ["END in after", { nodes: { a: node, b: { run: node, after: [END] } } }, 'nodes.b.after names "__end__"'],
    ["no start", { edges: { a: "b" } }, "edges.start is missing"],
    ["a target that is a number", { edges: { start: 7 } }, "a number"],
    ...["start", "__start__", "__end__", "__input__", "__copy__"].map((name): [string, object, string] => [
      `a node ${name}`,
      { nodes: { a: node, [name]: node } },
      `"${name}" has a reserved name`,
    ]),
    ["a node __proto__", { nodes: { a: node, ["__proto__"]: node } }, '"__proto__" has a reserved name'],
    ["nodes with a prototype", { nodes: { __proto__: node, a: node } }, "nodes must be a plain object"],
    ["a key __proto__", { state: { ["__proto__"]: value() } }, '"__proto__" has a reserved name'],
    ["a key __interrupt__", { state: { __interrupt__: value() } }, "reserved name"],
    ["a name with a bar", { nodes: { a: node, "x|y": node } }, '"x|y": a name must not contain'],
    ["a name with a colon", { nodes: { a: node, "x:y": node } }, '"x:y": a name must not contain'],
    ["a name with a NUL", { nodes: { a: node, "x\u0000": node } }, "a name must not contain"],
    ["an empty name", { nodes: { a: node, "": node } }, "empty name"],
    ["a name that is too long", { nodes: { a: node, ["x".repeat(129)]: node } }, "over 128 characters"],
    ["a subgraph", { nodes: { a: node, sub: inner } }, "nodes.sub is a graph: subgraphs are not served yet"],
    [
      "an option that is not served",
      { nodes: { a: { run: node, defer: true } } },
      "nodes.a.defer is not known",
    ],
    ["a node without run", { nodes: { a: { retry: 1 } } }, "nodes.a.run must be a function"],
    ["a node that is a text", { nodes: { a: "x" } }, "nodes.a must be a plain object"],
    [
      "an input that is no schema",
      { nodes: { a: { run: node, input: {} } } },
      "nodes.a.input must be a schema",
    ],
    ["a retry of 0", { nodes: { a: { run: node, retry: 0 } } }, "nodes.a.retry must be a whole number"],
    ["a timeout of 0", { nodes: { a: { run: node, timeout: 0 } } }, "nodes.a.timeout must be milliseconds"],
    [
      "a timeout of soon",
      { nodes: { a: { run: node, timeout: "soon" } } },
      "nodes.a.timeout must be milliseconds",
    ],
    ["a key that is no schema", { state: { n: 7 } }, "state.n must be a schema"],
    ["a schema that answers later", { state: { n: z.any().refine(async () => true) } }, "asynchronous"],
    ["a context that is no schema", { context: {} }, "context must be a schema"],
    ["no nodes", { nodes: {} }, "nodes is empty"],
    ["no state", { state: undefined }, "state must be a plain object"],
  ])("%s", (_, part, message) => {
    let thrown: unknown;
    try {
      define({ ...base, ...part });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ name: "ServiceError", code: "graph.invalid" });
    expect((thrown as Error).message).toContain(message);
  });
});

test("options are kept on the definition", () => {
  const definition = define({
    ...base,
    nodes: { a: { run: node, retry: 3, timeout: "30s" }, b: { run: node, after: ["a", "a"], timeout: 5 } },
  });
  expect(definition.nodes.get("a")).toMatchObject({ retry: 3, timeout: 30_000, after: [] });
  expect(definition.nodes.get("b")).toMatchObject({ retry: 1, timeout: 5, after: ["a"] });
  expect(definition.joins.map(({ name }) => name)).toEqual(["b"]);
  expect(Object.isFrozen(definition)).toBe(true);
});

test("names of Object.prototype are names like others", () => {
  const definition = define({
    state: { constructor: list<string>(), toString: value("x") },
    nodes: { valueOf: async () => ({ constructor: ["x"] }) },
    edges: { start: "valueOf" },
  });
  expect([...definition.rules.keys()]).toEqual(["constructor", "toString"]);
  expect(definition.nodes.has("valueOf")).toBe(true);
  expect(definition.nodes.has("hasOwnProperty")).toBe(false);
});

test("the hash is the same for the same definition, and another when a part changes", () => {
  const { hash } = define(base);
  expect(define({ ...base, state: { n: value(0) } }).hash).toBe(hash);
  const others = [
    { state: { n: value(1) } },
    { state: { n: list() } },
    { state: { m: value(0) } },
    { nodes: { a: node, b: async () => ({ n: 1 }) } },
    { nodes: { a: node, b: { run: node, retry: 2 } } },
    { edges: { start: "b" } },
    { edges: { start: "a", a: () => "b" } },
  ].map((part) => define({ ...base, ...part }).hash);
  expect(new Set([hash, ...others]).size).toBe(8);
});

describe("the registry", () => {
  test("knows graphs by name, refuses others and doubles", () => {
    const registry = new GraphRegistry().add("one", inner);
    expect(registry.names()).toEqual(["one"]);
    expect(registry.get("one")).toBe(inner);
    expect(registry.has("two")).toBe(false);
    expect(() => registry.get("two")).toThrow('There is no graph "two"; the graphs are: one');
    expect(() => registry.add("one", inner)).toThrow("two graphs");
    expect(() => registry.add("two", { nodes: {} })).toThrow("is no graph");
  });
});
