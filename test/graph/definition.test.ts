import { describe, expect, test } from "vitest";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import { branch, END, ephemeral, graph, list, messages, reduce, untracked, value } from "../../src/index.ts";
import { GraphRegistry } from "../../src/graph/graph-registry.ts";

/** A literal as in plain JavaScript, without type checks. */
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
    [
      "a subgraph with an unknown option",
      { nodes: { a: node, sub: { run: inner, x: 1 } } },
      "nodes.sub.x is not",
    ],
    [
      "an unknown option",
      { nodes: { a: { run: node, retries: 2 } } },
      "nodes.a.retries is not known; known are run",
    ],
    ["an unknown part", { state2: {} }, "state2 is not known; a graph has name, state"],
    [
      "a defer that is no flag",
      { nodes: { a: { run: node, defer: 1 } } },
      "nodes.a.defer must be true or false",
    ],
    [
      "a retry without tries",
      { nodes: { a: { run: node, retry: { attempts: 0 } } } },
      "nodes.a.retry.attempts must be",
    ],
    [
      "an unknown part of retry",
      { nodes: { a: { run: node, retry: { tries: 2 } } } },
      "nodes.a.retry.tries is not known",
    ],
    [
      "a pause that is none",
      { nodes: { a: { run: node, retry: { initial: "0s" } } } },
      "nodes.a.retry.initial must be",
    ],
    [
      "a factor that shrinks",
      { nodes: { a: { run: node, retry: { factor: 0.5 } } } },
      "nodes.a.retry.factor must be",
    ],
    [
      "a jitter of how much",
      { nodes: { a: { run: node, retry: { jitter: 2 } } } },
      "nodes.a.retry.jitter must be",
    ],
    [
      "a when that is no function",
      { nodes: { a: { run: node, retry: { when: true } } } },
      "nodes.a.retry.when must be",
    ],
    [
      "a cache that is a flag",
      { nodes: { a: { run: node, cache: true } } },
      "nodes.a.cache must be a plain object",
    ],
    [
      "a cache that keeps nothing",
      { nodes: { a: { run: node, cache: { ttl: -1 } } } },
      "nodes.a.cache.ttl must be",
    ],
    [
      "a cache key that is a text",
      { nodes: { a: { run: node, cache: { key: "n" } } } },
      "nodes.a.cache.key must be",
    ],
    ["an input that is no key", { input: ["m"] }, 'input names "m", which is no key of the state; it has n'],
    ["an output that is no key", { output: { m: z.string() } }, 'output names "m"'],
    ["an input whose schema is none", { input: { n: 7 } }, "input.n must be a schema"],
    [
      "a required key that no input may have",
      { state: { n: value(0), must: z.string() }, input: ["n"] },
      "state.must is required but missing in input",
    ],
    ["a migrate that is no function", { migrate: {} }, "migrate must be a function"],
    ["a name that is none", { name: 7 }, "name must be a text"],
    [
      "a graph that has a name",
      { name: "mine", edges: { start: "c" } },
      'Graph "mine": edges.start names "c"',
    ],
    ["a node without run", { nodes: { a: { retry: 1 } } }, "nodes.a.run must be a function"],
    [
      "a node that is a text",
      { nodes: { a: "x" } },
      "nodes.a must be a function, an object with run, or a graph, not a string",
    ],
    ["a node that is undefined", { nodes: { a: undefined } }, "or a graph, not undefined"],
    [
      "an input that is no schema",
      { nodes: { a: { run: node, input: {} } } },
      "nodes.a.input must be a schema",
    ],
    [
      "nodes that are an instance of a class whose name begins with a vowel",
      { nodes: new Error("nodes") },
      "nodes must be a plain object, not an Error",
    ],
    [
      "nodes that are an instance of a class whose name begins as `you` does",
      { nodes: new URLSearchParams() },
      "nodes must be a plain object, not a URLSearchParams",
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
    ["no state", { state: undefined }, "state is missing: it names the keys of the state"],
    ["no list of nodes", { nodes: undefined }, "nodes is missing: it names the nodes"],
    [
      "no edges",
      { edges: undefined },
      "edges is missing: it says what runs after each node; edges.start names",
    ],
    ["state that is null", { state: null }, "state must be a plain object, not null"],
    ["nodes that are an array", { nodes: [node] }, "nodes must be a plain object, not an array"],
    ["edges that are a Map", { edges: new Map() }, "edges must be a plain object, not a Map"],
    ["edges that are a function", { edges: node }, "edges must be a plain object, not a function"],
    ["a target that is null", { edges: { start: "a", a: null } }, "edges.a names null, which is no node"],
    ["a target that is an object", { edges: { start: {} } }, "edges.start names an object, which is no node"],
    ["an input that is a text", { input: "n" }, "input must be a plain object, not a string"],
    ["an output that is a number", { output: 5 }, "output must be a plain object, not a number"],
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

  test.each<[string, unknown, string]>([
    ["nothing", undefined, "not undefined"],
    ["null", null, "not null"],
    ["a text", "x", "not a string"],
    ["an array", [], "not an array"],
    ["a function", node, "not a function"],
  ])("%s instead of a definition", (_, literal, message) => {
    expect(() => define(literal as object)).toThrowError(
      expect.objectContaining({
        code: "graph.invalid",
        message: `graph() takes an object with state, nodes and edges, ${message}`,
      }),
    );
  });

  test.each<[string, () => unknown, string]>([
    ["reduce() without a function", () => reduce(0, undefined as never), "fold must be a function"],
    ["messages() with null", () => messages(null as never), "messages() must be a plain object, not null"],
    [
      "ephemeral() with a value",
      () => ephemeral(0 as never),
      "ephemeral() takes a schema (zod, valibot, arktype)",
    ],
    ["untracked() with a value", () => untracked("x" as never), "or nothing, not a string"],
  ])("%s", (_, make, message) => {
    expect(make).toThrowError(
      expect.objectContaining({ code: "graph.invalid", message: expect.stringContaining(message) }),
    );
  });
});

test("options are kept on the definition", () => {
  const definition = define({
    ...base,
    nodes: { a: { run: node, retry: 3, timeout: "30s" }, b: { run: node, after: ["a", "a"], timeout: 5 } },
  });
  expect(definition.nodes.get("a")).toMatchObject({ retry: { attempts: 3 }, timeout: 30_000, after: [] });
  expect(definition.nodes.get("b")).toMatchObject({ retry: { attempts: 1 }, timeout: 5, after: ["a"] });
  expect(definition.joins.map(({ name }) => name)).toEqual(["b"]);
  expect(Object.isFrozen(definition)).toBe(true);
});

test("a retry of several parts: times as texts, LangGraph's defaults for the rest", () => {
  const retry = { initial: "1s", max: "1m", jitter: false };
  const definition = define({ ...base, nodes: { a: { run: node, retry }, b: { run: node, retry: {} } } });
  expect(definition.nodes.get("a")?.retry).toEqual({
    attempts: 3,
    initial: 1_000,
    factor: 2,
    max: 60_000,
    jitter: false,
    when: undefined,
  });
  expect(definition.nodes.get("b")?.retry).toMatchObject({ initial: 500, max: 128_000, jitter: true });
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

describe("the hash", () => {
  const { hash } = define(base);

  test.each<[string, object]>([
    ["another literal of the same", { state: { n: value(0) } }],
    ["another name", { name: "other" }],
    ["another order", { nodes: { b: node, a: node } }],
    ["another initial value", { state: { n: value(1) } }],
    ["another body", { nodes: { a: node, b: async () => ({ n: 1 }) } }],
    ["another patience", { nodes: { a: node, b: { run: node, retry: 2, timeout: 5, cache: {} } } }],
  ])("is the same for %s", (_, part) => expect(define({ ...base, ...part }).hash).toBe(hash));

  test("is another for another structure", () => {
    const others = [
      { state: { n: list() } },
      { state: { m: value(0) } },
      { state: { n: z.number() } },
      { state: { n: z.string() } },
      { state: { n: v.number() } },
      { state: { n: v.string() } },
      { state: { n: type("number") } },
      { state: { n: type("string") } },
      { state: { n: reduce(z.number(), (a) => a) } },
      { state: { n: reduce(z.string(), (a) => a) } },
      { state: { n: value(0), m: value(0) } },
      { nodes: { a: node, c: node } },
      { nodes: { a: node, b: { run: node, input: z.string() } } },
      { nodes: { a: node, b: { run: node, after: ["a"] } } },
      { nodes: { a: node, b: { run: node, defer: true } } },
      { edges: { start: "b" } },
      { edges: { start: "a", a: "b" } },
      { edges: { start: "a", a: () => "b" } },
      { edges: { start: "a", a: branch(() => "b", ["b"]) } },
    ].map((part) => define({ ...base, ...part }).hash);
    // zod and arktype describe a number and a string alike.
    expect(new Set([hash, ...others]).size).toBe(18);
  });
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
