import { describe, expect, test } from "vitest";
import { graph, list, send, to, value } from "../../src/index.ts";
import { Thread } from "./driver.ts";

const log = { log: list<string>(), way: value("left") };
const says = (word: string) => async () => ({ log: [word] });

/** The names of the nodes that ran, step by step. */
function steps(thread: Thread): string[][] {
  const byStep: string[][] = [];
  for (const { step, writes } of thread.checkpoints) {
    if (step > 0) byStep.push(Object.keys(writes ?? {}).sort());
  }
  return byStep;
}

/** A literal as plain JavaScript would bring it, without the help of types. */
const define = graph as unknown as (literal: object) => unknown;
const thread = (parts: object) => new Thread(define({ state: log, ...parts }));

describe("after", () => {
  const nodes = {
    a: says("a"),
    b: says("b"),
    c: says("c"),
    d: { after: ["b", "c"], run: says("d") },
  };

  test.each<[string, object, object, string[][]]>([
    [
      "waits for branches of unequal length",
      nodes,
      { start: ["a", "c"], a: "b" },
      [["a", "c"], ["b"], ["d"]],
    ],
    ["runs once when they end together", nodes, { start: "a", a: ["b", "c"] }, [["a"], ["b", "c"], ["d"]]],
    [
      "a producer that a branch has not chosen never comes: it does not run, and the run ends",
      nodes,
      { start: "a", a: (s: { way: string }) => (s.way === "left" ? "b" : ["b", "c"]) },
      [["a"], ["b"]],
    ],
    [
      "a producer that was sent to counts like any other",
      { ...nodes, a: async () => [send("b", {}), send("c", {})] },
      { start: "a" },
      [["a"], ["b", "c"], ["d"]],
    ],
    [
      "a producer that goes elsewhere by itself has run all the same",
      { ...nodes, b: async () => to("e", { log: ["b"] }), e: says("e") },
      { start: ["b", "c"] },
      [
        ["b", "c"],
        ["d", "e"],
      ],
    ],
    [
      "what it waits for begins anew once it has run",
      {
        ...nodes,
        d: { after: ["b", "c"], run: async (s: { log: string[] }) => (s.log.length < 5 ? to("c") : {}) },
      },
      { start: ["b", "c"] },
      [["b", "c"], ["d"], ["c"]],
    ],
  ])("%s", async (_, own, edges, expected) => {
    const one = thread({ nodes: own, edges });
    expect((await one.run({ input: {} })).error).toBeNull();
    expect(steps(one)).toEqual(expected);
  });

  test("names of Object.prototype wait like others", async () => {
    const one = thread({
      nodes: { a: says("a"), b: says("b"), constructor: { after: ["a", "b"], run: says("c") } },
      edges: { start: ["a", "b"] },
    });
    expect((await one.run({ input: {} })).values["log"]).toEqual(["a", "b", "c"]);
  });
});

describe("defer", () => {
  const nodes = {
    a: says("a"),
    b: says("b"),
    b2: says("b2"),
    d: { defer: true, run: says("d") },
  };

  test.each<[string, object, object, string[][]]>([
    [
      "waits until the longer branch has ended",
      nodes,
      { start: ["a", "b"], a: "d", b: "b2", b2: "d" },
      [["a", "b"], ["b2"], ["d"]],
    ],
    ["runs at once when nothing else is left", nodes, { start: "a", a: "d" }, [["a"], ["d"]]],
    [
      "joins branches of which one may not be taken",
      nodes,
      { start: "a", a: (s: { way: string }) => (s.way === "left" ? ["b", "d"] : ["b2", "d"]), b: "d" },
      [["a"], ["b"], ["d"]],
    ],
    ["at the start too", nodes, { start: ["d", "a"], a: "b" }, [["a"], ["b"], ["d"]]],
    [
      "two of them go together, and what follows comes after both",
      { ...nodes, e: { defer: true, run: says("e") } },
      { start: ["a", "d"], a: "e", e: "b" },
      [["a"], ["d", "e"], ["b"]],
    ],
    [
      "one that leads to another lets it wait for what it starts as well",
      { ...nodes, e: { defer: true, run: says("e") } },
      { start: "d", d: ["e", "b"], b: "b2" },
      [["d"], ["b"], ["b2"], ["e"]],
    ],
    [
      "with after: all of these, and then nothing else left",
      { ...nodes, d: { after: ["a", "b"], defer: true, run: says("d") } },
      { start: ["a", "b"], b: "b2" },
      [["a", "b"], ["b2"], ["d"]],
    ],
    [
      "a send is not held back",
      { ...nodes, a: async () => send("d", {}) as never },
      { start: ["a", "b"], b: "b2" },
      [
        ["a", "b"],
        ["b2", "d"],
      ],
    ],
  ])("%s", async (_, own, edges, expected) => {
    const one = thread({ nodes: own, edges });
    expect((await one.run({ input: {} })).error).toBeNull();
    expect(steps(one)).toEqual(expected);
  });

  test("it is still waited with after a crash, and after a pause", async () => {
    const one = thread({
      nodes: {
        ...nodes,
        b2: async (_: unknown, ctx: { interrupt(v: unknown): Promise<string> }) => ({
          log: [await ctx.interrupt("?")],
        }),
      },
      edges: { start: ["a", "b"], a: "d", b: "b2", b2: "d" },
    });
    const record = one.record({ input: {} });
    await one.run({}, { record, stopAfter: 2 });
    const paused = await one.run({}, { record: { ...record, attempt: 2 } });
    expect(paused.plan.kind).toBe("paused");
    expect(one.head?.engine?.["deferred"]).toEqual({ d: ["branch:to:d"] });
    const { values } = await one.run({ command: { resume: "answered" } });
    expect(values["log"]).toEqual(["a", "b", "answered", "d"]);
    expect(one.head?.engine?.["deferred"]).toBeUndefined();
  });

  test("a goto from outside waits for what waits already", async () => {
    const one = thread({ nodes, edges: { start: "a", a: "b" } });
    await one.run({ input: {}, interrupt_before: ["b"] });
    const { values } = await one.run({ command: { goto: "d" } });
    expect(values["log"]).toEqual(["a", "b", "d"]);
    expect((await one.run({ command: { goto: "d" } })).values["log"]).toEqual(["a", "b", "d", "d"]);
  });

  test("a goto with an answer keeps the complete join that waits already: it does not begin anew", async () => {
    const one = thread({
      nodes: {
        ...nodes,
        c: says("c"),
        ask: async (_: unknown, ctx: { interrupt(v: unknown): Promise<string> }) => ({
          log: [await ctx.interrupt("?")],
        }),
        d: { after: ["a", "b"], defer: true, run: says("d") },
      },
      edges: { start: ["a", "b", "c"], c: "ask", ask: "a" },
    });
    expect((await one.run({ input: {} })).plan.kind).toBe("paused");
    const { values } = await one.run({ command: { resume: "answered", goto: "d" } });
    expect(values["log"]).toEqual(["a", "b", "c", "answered", "a", "d"]);
    expect(one.head?.engine?.["joins"]).toBeUndefined();
    expect((await one.run({ command: { goto: "b" } })).values["log"]).toEqual([
      ...(values["log"] as string[]),
      "b",
    ]);
  });
});
