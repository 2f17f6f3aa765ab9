import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { runId, Thread } from "./driver.ts";

const log = { log: list<string>() };
const says = (word: string) => async () => ({ log: [word] });

describe("breakpoints", () => {
  const chain = graph({
    state: log,
    nodes: { a: says("a"), b: says("b"), c: says("c") },
    edges: { start: "a", a: "b", b: "c" },
  });

  test.each([
    ["before b", { interrupt_before: ["b"] }, [["a"], ["a", "b", "c"]]],
    [
      "after b",
      { interrupt_after: ["b"] },
      [
        ["a", "b"],
        ["a", "b", "c"],
      ],
    ],
    ["before every node", { interrupt_before: "*" as const }, [[], ["a"], ["a", "b"], ["a", "b", "c"]]],
    ["after every node", { interrupt_after: "*" as const }, [["a"], ["a", "b"], ["a", "b", "c"]]],
    [
      "before b, after b",
      { interrupt_before: ["b"], interrupt_after: ["b"] },
      [["a"], ["a", "b"], ["a", "b", "c"]],
    ],
    ["at no node of the graph", { interrupt_before: ["x"] }, [["a", "b", "c"]]],
  ])("%s: input null goes on to the next one", async (_, points, stops) => {
    const thread = new Thread(chain);
    for (const [i, reached] of stops.entries()) {
      const { plan, values, trace } = await thread.run({ input: i === 0 ? {} : null, ...points });
      expect(values).toEqual({ log: reached });
      const last = i === stops.length - 1;
      expect(plan).toEqual(last ? { kind: "done" } : { kind: "paused", interrupts: {} });
      if (!last) expect(trace.at(-1)).toBe("interrupt:0");
    }
  });

  test("another run may break elsewhere", async () => {
    const thread = new Thread(chain);
    await thread.run({ input: {}, interrupt_before: ["b"] });
    expect((await thread.run({ input: null, interrupt_after: ["b"] })).values).toEqual({ log: ["a", "b"] });
    expect((await thread.run({ input: null })).plan.kind).toBe("done");
  });

  test("input null on a thread at its end does nothing, and shows the state", async () => {
    const thread = new Thread(chain);
    await thread.run({ input: {} });
    const { plan, trace, values } = await thread.run({ input: null });
    expect(plan.kind).toBe("done");
    expect(trace).toEqual(["checkpoint:3"]);
    expect(values).toEqual({ log: ["a", "b", "c"] });
  });
});

describe("failures", () => {
  test("a sibling's writes are kept: only the failed task runs again", async () => {
    const ran: string[] = [];
    let broken = true;
    const thread = new Thread(
      graph({
        state: log,
        nodes: {
          ok: async () => {
            ran.push("ok");
            return { log: ["ok"] };
          },
          bad: async () => {
            ran.push("bad");
            if (broken) throw new TypeError("kaboom");
            return { log: ["mended"] };
          },
        },
        edges: { start: ["ok", "bad"] },
      }),
    );
    const { error, trace, facts } = await thread.run({ input: {} });
    expect(error).toEqual({ error: "TypeError", message: "kaboom" });
    expect(trace.slice(-2)).toEqual(["result:bad", "result:ok"]);
    expect(facts.find((f) => f.t === "result" && f.name === "bad")).toMatchObject({ error, interrupts: [] });
    broken = false;
    const again = await thread.run({ input: null });
    expect(again.values).toEqual({ log: ["mended", "ok"] });
    expect(again.trace).toEqual(["checkpoint:0", "task:bad", "result:bad", "checkpoint:1"]);
    expect(ran).toEqual(["bad", "ok", "bad"]);
  });

  test("where a finished sibling led is kept too", async () => {
    let broken = true;
    const thread = new Thread(
      graph({
        state: { n: value(0), ...log },
        nodes: {
          pick: async () => ({ n: 1 }),
          bad: async () => {
            if (broken) throw new Error("not yet");
            return {};
          },
          one: says("one"),
        },
        edges: { start: ["pick", "bad"], pick: (s) => (s.n === 1 ? "one" : "pick") },
      }),
    );
    await thread.run({ input: {} });
    broken = false;
    expect((await thread.run({ input: null })).values).toEqual({ n: 1, log: ["one"] });
  });

  const hostile = {
    get message(): string {
      throw new Error("trap");
    },
  };
  test.each([
    ["null", () => null, { error: "Error", message: "null" }],
    ["undefined", () => undefined, { error: "Error", message: "undefined" }],
    ["a text", () => "text", { error: "Error", message: "text" }],
    ["a plain object", () => ({ name: "Odd", message: "thing" }), { error: "Odd", message: "thing" }],
    ["a trap", () => hostile, { error: "Error", message: "a value that cannot be described was thrown" }],
  ])("a node may throw %s", async (_, thrown, error) => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: {
          a: async () => {
            throw thrown();
          },
        },
        edges: { start: "a" },
      }),
    );
    expect((await thread.run({ input: {} })).error).toEqual(error);
  });

  test("a node that the graph no longer has is named", async () => {
    const thread = new Thread(
      graph({ state: log, nodes: { a: says("a"), b: says("b") }, edges: { start: "a", a: "b" } }),
    );
    await thread.run({ input: {}, interrupt_before: ["b"] });
    const later = new Thread(graph({ state: log, nodes: { a: says("a") }, edges: { start: "a" } }));
    later.checkpoints.push(...thread.checkpoints);
    later.head = thread.head;
    expect((await later.run({ input: null })).error?.message).toContain('"b"');
    expect((await later.run({ input: {} })).values).toEqual({ log: ["a", "a"] });
  });
});

describe("a later attempt of the same run", () => {
  const chain = graph({
    state: log,
    nodes: { a: says("a"), b: says("b"), c: says("c") },
    edges: { start: "a", a: "b", b: "c" },
  });

  test("goes on where the earlier one got to, without its input, and breaks nowhere that it had passed", async () => {
    const thread = new Thread(chain);
    const kwargs = { input: { log: ["in"] }, interrupt_before: ["x"] };
    await thread.run(kwargs, { record: thread.record(kwargs, 1, runId(1)), stopAfter: 2 });
    expect(thread.head?.step).toBe(1);
    const { values, trace } = await thread.run(kwargs, { record: thread.record(kwargs, 2, runId(1)) });
    expect(values).toEqual({ log: ["in", "a", "b", "c"] });
    // The second node had finished, and that was stored: its step is closed without running it.
    expect(trace).toEqual(["checkpoint:2", "task:c", "result:c", "checkpoint:3"]);
  });

  test("begins anew when nothing had been stored", async () => {
    const thread = new Thread(chain);
    const kwargs = { input: { log: ["in"] } };
    const { values } = await thread.run(kwargs, { record: thread.record(kwargs, 2, runId(1)) });
    expect(values).toEqual({ log: ["in", "a", "b", "c"] });
  });

  test("counts its steps from where the run began", async () => {
    const endless = graph({ state: log, nodes: { l: says("l") }, edges: { start: "l", l: "l" } });
    const thread = new Thread(endless);
    const config = { recursion_limit: 6, configurable: {}, metadata: {} };
    const kwargs = { input: {}, config };
    await thread.run(kwargs, { record: thread.record(kwargs, 1, runId(1)), stopAfter: 4 });
    const { error, values } = await thread.run(kwargs, { record: thread.record(kwargs, 2, runId(1)) });
    expect(error?.error).toBe("GraphRecursionError");
    expect(values["log"]).toHaveLength(6);
  });

  test("does not give an answer twice", async () => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: {
          ask: async (_, ctx) => ({
            log: [String(await ctx.interrupt("first")), String(await ctx.interrupt("second"))],
          }),
          other: async (_, ctx) => ({ log: [String(await ctx.interrupt("other"))] }),
        },
        edges: { start: ["ask", "other"] },
      }),
    );
    await thread.run({ input: {} });
    const [first, other] = Object.values(thread.interrupts).flatMap((list) => list.map(({ id }) => id));
    const kwargs = { command: { resume: { [first as string]: 1, [other as string]: 2 } } };
    // The first node asks its second question, and that is stored; then the server is killed.
    await thread.run(kwargs, { record: thread.record(kwargs, 1, runId(9)), stopAfter: 1 });
    const { plan } = await thread.run(kwargs, { record: thread.record(kwargs, 2, runId(9)) });
    expect(plan.kind).toBe("paused");
    expect(Object.values(thread.interrupts).flat()).toMatchObject([{ value: "second" }]);
    expect((await thread.run({ command: { resume: 3 } })).values).toEqual({ log: ["1", "3", "2"] });
  });
});

describe("from an older checkpoint", () => {
  test("input null runs its step again; the result is a new branch whose parent it is", async () => {
    let runs = 0;
    const thread = new Thread(
      graph({
        state: log,
        nodes: { a: says("a"), b: async () => ({ log: [`b${++runs}`] }) },
        edges: { start: "a", a: "b" },
      }),
    );
    await thread.run({ input: {} });
    const from = thread.checkpoints[2];
    if (from === undefined) throw new Error("no checkpoint");
    thread.head = from;
    const config = { configurable: { checkpoint_id: from.id }, metadata: {} };
    const { values, checkpoints } = await thread.run({ input: null, config });
    expect(values).toEqual({ log: ["a", "b2"] });
    expect(checkpoints).toMatchObject([
      { parent: from.id, step: 2, source: "fork", changes: {} },
      { parent: checkpoints[0]?.id, step: 3, source: "loop" },
    ]);
  });

  test("the input checkpoint can be run again as well", async () => {
    const thread = new Thread(graph({ state: log, nodes: { a: says("a") }, edges: { start: "a" } }));
    await thread.run({ input: { log: ["in"] } });
    const from = thread.checkpoints[0];
    if (from === undefined) throw new Error("no checkpoint");
    thread.head = from;
    const config = { configurable: { checkpoint_id: from.id }, metadata: {} };
    const { values, checkpoints } = await thread.run({ input: null, config });
    expect(values).toEqual({ log: ["in", "a"] });
    expect(checkpoints[0]?.parent).toBe(from.id);
  });
});
