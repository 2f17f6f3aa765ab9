import { describe, expect, test } from "vitest";
import { createMachine } from "xstate";
import { statechartOfGraph } from "../../src/graph/graph-as-statechart.ts";
import { chartValueOf } from "../../src/graph/chart-value-of-nodes.ts";
import { branch, END, graph, value } from "../../src/index.ts";
import type { ChartState } from "../../src/model/statechart.ts";

const state = { n: value(0) };
const body = async () => ({ n: 1 });

/** The targets of each node's edges, with their guards; regions by their path. */
function led(chart: ChartState, path = ""): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(chart.states ?? {}).flatMap(([name, inner]) => {
      const at = path === "" ? name : `${path}/${name}`;
      const out = Object.values(inner.on ?? {}).flat();
      const own =
        inner.id === undefined
          ? []
          : [[at, out.map(({ target, guard }) => (guard === undefined ? target : `${target}?`))]];
      return [...own, ...Object.entries(led(inner, at))] as [string, string[]][];
    }),
  );
}

describe("a graph as a statechart", () => {
  test("a line", () => {
    const chart = statechartOfGraph(
      graph({ state, nodes: { a: body, b: body }, edges: { start: "a", a: "b" } }),
      "g",
    );
    expect(chart).toMatchObject({ id: "g", initial: "__start__", states: { __end__: { type: "final" } } });
    expect(led(chart)).toEqual({ __start__: ["#a"], a: ["#b"], b: ["#__end__"], __end__: [] });
  });

  test("declared branches, joins, loops", () => {
    const chart = statechartOfGraph(
      graph({
        state,
        nodes: { a: body, b: body, c: { after: ["a", "b"], run: body } },
        edges: { start: "a", a: "b", c: branch(() => END, ["a", END]) },
      }),
      "g",
    );
    expect(led(chart)).toEqual({
      __start__: ["#a"],
      a: ["#b", "#c?"],
      b: ["#c?"],
      c: ["#a?", "#__end__?"],
      __end__: [],
    });
  });

  test("where a function chooses, what nothing else leads to is shown as possible", () => {
    const chart = statechartOfGraph(
      graph({
        state,
        nodes: { ask: body, call: body, sign: body },
        edges: { start: "ask", ask: () => "call", call: "ask" },
      }),
      "g",
    );
    expect(led(chart)["ask"]).toEqual(["#call?", "#sign?", "#__end__?"]);
    const jumps = statechartOfGraph(
      graph({ state, nodes: { a: body, b: body }, edges: { start: "a" } }),
      "g",
    );
    expect(led(jumps)).toMatchObject({ a: ["#b?", "#__end__"], b: ["#__end__"] });
  });

  test("what an edge starts side by side are regions, with all that is reached through each alone; also in one another", () => {
    const chart = statechartOfGraph(
      graph({
        state,
        nodes: { p: body, a: body, a2: body, b: body, x: body, y: body, z: body, j: body },
        edges: { start: "p", p: ["a", "b"], a: "a2", a2: "j", b: ["x", "y"], x: "z", y: "z", z: "j" },
      }),
      "g",
    );
    expect(Object.keys(led(chart))).toEqual(
      expect.arrayContaining([
        "p",
        "j",
        "after: p/a/a",
        "after: p/a/a2",
        "after: p/b/b",
        "after: p/b/z",
        "after: p/b/after: b/x/x",
        "after: p/b/after: b/y/y",
      ]),
    );
    const machine = createMachine(chart as object);
    const at = chartValueOf(chart, [["a2"], ["x"], ["y"]]);
    expect(at).toEqual({ "after: p": { a: "a2", b: { "after: b": { x: "x", y: "y" } } } });
    expect(machine.resolveState({ value: at, context: {} }).value).toEqual(at);
    expect(chartValueOf(chart, [["j"]])).toBe("j");
    expect(chartValueOf(chart, [])).toEqual({});
  });

  test("a branch that something else leads into is no region", () => {
    const chart = statechartOfGraph(
      graph({
        state,
        nodes: { p: body, a: body, b: body },
        edges: { start: ["p", "a"], p: ["a", "b"] },
      }),
      "g",
    );
    expect(Object.keys(chart.states ?? {})).toEqual(expect.arrayContaining(["a", "b"]));
    expect(chartValueOf(chart, [["a"], ["b"]])).toEqual({ a: {}, b: {} });
  });

  test("a subgraph is inside its node; names that XState would read otherwise are safe", () => {
    const inner = graph({
      state,
      nodes: { "x.y#z": body, deep: body },
      edges: { start: "x.y#z", "x.y#z": "deep" },
    });
    const chart = statechartOfGraph(
      graph({ state, nodes: { sub: inner, twin: inner }, edges: { start: "sub", sub: "twin" } }),
      "g",
    );
    const machine = createMachine(chart as object);
    for (const nodes of [
      ["sub", "x.y#z"],
      ["twin", "deep"],
    ]) {
      const at = chartValueOf(chart, [nodes]);
      expect(machine.resolveState({ value: at as string, context: {} }).value).toEqual(at);
    }
    // A node that no longer exists is shown by its own name.
    expect(chartValueOf(chart, [["gone", "deep"]])).toEqual({ gone: "deep" });
  });

  test("a long chain and a wide fan are drawn too", () => {
    const names = Array.from({ length: 3_000 }, (_, i) => `n${i}`);
    const nodes = Object.fromEntries(names.map((name) => [name, body]));
    const edges = Object.fromEntries(names.slice(1).map((name, i) => [`n${i}`, name]));
    expect(
      Object.keys(
        statechartOfGraph(graph({ state, nodes, edges: { start: "n0", ...edges } }), "g").states ?? {},
      ),
    ).toHaveLength(3_002);
    const fan = names.slice(0, 150);
    const wide = statechartOfGraph(
      graph({ state, nodes: Object.fromEntries(fan.map((name) => [name, body])), edges: { start: fan } }),
      "g",
    );
    expect(Object.keys(wide.states?.["after: __start__"]?.states ?? {})).toHaveLength(150);
  });
});
