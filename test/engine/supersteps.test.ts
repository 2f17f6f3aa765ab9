import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  branch,
  END,
  ephemeral,
  graph,
  list,
  messages,
  reduce,
  send,
  to,
  untracked,
  value,
} from "../../src/index.ts";
import { Thread } from "./driver.ts";

const log = { log: list<string>() };
const says = (word: string) => async () => ({ log: [word] });

describe("a chain", () => {
  const chain = graph({
    state: log,
    nodes: { a: says("a"), b: says("b") },
    edges: { start: "a", a: "b" },
  });

  test("a run makes the input checkpoint -1, the start's 0 and one for each superstep", async () => {
    const thread = new Thread(chain);
    const { values, plan, trace, checkpoints } = await thread.run({ input: { log: ["in"] } });
    expect(plan.kind).toBe("done");
    expect(values).toEqual({ log: ["in", "a", "b"] });
    expect(
      checkpoints.map(({ step, source, next, writes }) => [step, source, next.map((t) => t.name), writes]),
    ).toEqual([
      [-1, "input", ["__start__"], { __start__: { log: ["in"] } }],
      [0, "loop", ["a"], null],
      [1, "loop", ["b"], { a: { log: ["a"] } }],
      [2, "loop", [], { b: { log: ["b"] } }],
    ]);
    expect(trace).toEqual([
      "checkpoint:-1(input)",
      "checkpoint:0",
      "task:a",
      "result:a",
      "checkpoint:1",
      "task:b",
      "result:b",
      "checkpoint:2",
    ]);
  });

  test("the input checkpoint shows the state before the input; each one's parent is the one before", async () => {
    const thread = new Thread(chain);
    await thread.run({ input: { log: ["1"] } });
    await thread.run({ input: { log: ["2"] } });
    const steps = thread.checkpoints;
    expect(steps.map((one) => one.step)).toEqual([-1, 0, 1, 2, 3, 4, 5, 6]);
    expect(steps.map((one) => one.parent)).toEqual([null, ...steps.slice(0, -1).map((one) => one.id)]);
    expect(thread.stored(steps[4])).toEqual({ log: ["1", "a", "b"] });
    expect(thread.stored(steps[5])).toEqual({ log: ["1", "a", "b", "2"] });
    expect(thread.stored()).toEqual(thread.values);
  });

  test("lists are stored as what is appended, never whole", async () => {
    const thread = new Thread(chain);
    await thread.run({ input: { log: ["1"] } });
    const { checkpoints } = await thread.run({ input: { log: ["2"] } });
    expect(checkpoints.map((one) => one.changes)).toEqual([
      {},
      { log: { kind: "append", keep: 3, items: ["2"] } },
      { log: { kind: "append", keep: 4, items: ["a"] } },
      { log: { kind: "append", keep: 5, items: ["b"] } },
    ]);
  });

  test("a checkpoint says whose it is", async () => {
    const thread = new Thread(chain);
    const { checkpoints } = await thread.run({
      input: {},
      config: {
        configurable: { tone: "dry", __secret: 1, nested: { x: 1 } },
        metadata: { created_by: "user" },
      },
    });
    expect(checkpoints.at(-1)?.metadata).toEqual({
      created_by: "user",
      graph_id: "g",
      run_id: checkpoints.at(-1)?.run_id,
      thread_id: "11111111-0000-7000-8000-000000000000",
      assistant_id: "22222222-0000-5000-8000-000000000000",
      user_id: "",
      tone: "dry",
    });
  });

  test("task ids come from the checkpoint: another attempt finds the same ones", async () => {
    const thread = new Thread(chain);
    const { checkpoints } = await thread.run({ input: {} }, { stopAfter: 1 });
    const planned = checkpoints.at(-1)?.next ?? [];
    expect(planned).toMatchObject([{ name: "a", path: ["__pregel_pull", "a"], triggers: ["branch:to:a"] }]);
    const step = await thread.open(thread.record({})).begin();
    expect(planned[0]?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
    expect(step.plan).toMatchObject({ kind: "tasks", tasks: [{ name: "b" }] });
  });
});

describe("fan-out and joins", () => {
  test("writes are applied in the order of the names, not of completion", async () => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: { b: says("b"), c: says("c"), a: says("a") },
        edges: { start: ["c", "b", "a"] },
      }),
    );
    const { values, trace } = await thread.run({ input: {} }, { reverse: true });
    expect(values).toEqual({ log: ["a", "b", "c"] });
    expect(trace.filter((one) => one.startsWith("task"))).toEqual(["task:a", "task:b", "task:c"]);
    expect(trace.filter((one) => one.startsWith("result"))).toEqual(["result:c", "result:b", "result:a"]);
  });

  test("send runs a task each, with its own input, and edges after it join", async () => {
    const thread = new Thread(
      graph({
        state: { topics: value<readonly string[]>([]), notes: list<string>(), report: value<string>() },
        nodes: {
          plan: async () => ({ topics: ["x", "y", "z"] }),
          look: {
            input: z.object({ topic: z.string() }),
            run: async ({ topic }) => ({ notes: [`about ${topic}`] }),
          },
          write: async (s) => ({ report: s.notes.join(", ") }),
        },
        edges: {
          start: "plan",
          plan: (s) => s.topics.map((topic) => send("look", { topic })),
          look: "write",
        },
      }),
    );
    const { values, checkpoints, facts } = await thread.run({ input: {} }, { reverse: true });
    expect(values["report"]).toBe("about x, about y, about z");
    const fan = checkpoints.find((one) => one.next.length === 3)?.next ?? [];
    expect(fan.map(({ path }) => path)).toEqual([0, 1, 2].map((i) => ["__pregel_push", i]));
    expect(new Set(fan.map(({ id }) => id)).size).toBe(3);
    expect(facts.filter((f) => f.t === "task" && f.name === "look")).toMatchObject([
      { input: { value: { topic: "x" } } },
      { input: { value: { topic: "y" } } },
      { input: { value: { topic: "z" } } },
    ]);
    expect(checkpoints.at(-2)?.writes).toEqual({
      look: [{ notes: ["about x"] }, { notes: ["about y"] }, { notes: ["about z"] }],
    });
    expect(checkpoints.at(-1)?.next).toEqual([]);
  });

  test("a node with `after` waits for all, also when they run in different steps, and again the next time", async () => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: { a: says("a"), b: says("b"), b2: says("b2"), d: { after: ["a", "b2"], run: says("d") } },
        edges: { start: ["a", "b"], b: "b2" },
      }),
    );
    const { values, checkpoints } = await thread.run({ input: {} });
    expect(values).toEqual({ log: ["a", "b", "b2", "d"] });
    expect(checkpoints.map((one) => one.engine?.["joins"])).toEqual([
      undefined,
      undefined,
      { d: ["a"] },
      undefined,
      undefined,
    ]);
    expect(checkpoints[3]?.next).toMatchObject([{ name: "d", triggers: ["join:a+b2:d"] }]);
    expect((await thread.run({ input: {} })).values).toEqual({
      log: ["a", "b", "b2", "d", "a", "b", "b2", "d"],
    });
  });

  test("two writes to a last-value key in one step are an error that names it, and the step is not committed", async () => {
    const thread = new Thread(
      graph({
        state: { n: z.number().optional() },
        nodes: { a: async () => ({ n: 1 }), b: async () => ({ n: 2 }) },
        edges: { start: ["a", "b"] },
      }),
    );
    const { error, checkpoints } = await thread.run({ input: {} });
    expect(error).toMatchObject({ error: "InvalidUpdateError", message: expect.stringContaining('"n"') });
    expect(checkpoints.at(-1)?.step).toBe(0);
  });
});

describe("conditional edges and returned targets", () => {
  test("an edge sees the state with its node's own update", async () => {
    const thread = new Thread(
      graph({
        state: { n: reduce(0, (a: number, b: number) => a + b) },
        nodes: { up: async () => ({ n: 1 }) },
        edges: { start: "up", up: (s) => (s.n < 3 ? "up" : END) },
      }),
    );
    const { values, checkpoints } = await thread.run({ input: {} });
    expect(values).toEqual({ n: 3 });
    expect(checkpoints.at(-1)?.step).toBe(3);
  });

  test("the start's edge sees the input", async () => {
    const thread = new Thread(
      graph({
        state: { way: z.string(), ...log },
        nodes: { left: says("left"), right: says("right") },
        edges: {
          start: branch(
            (s: { readonly way: string }) => (s.way === "l" ? "left" : "right"),
            ["left", "right"],
          ),
        },
      }),
    );
    expect((await thread.run({ input: { way: "l" } })).values).toMatchObject({ log: ["left"] });
    expect((await thread.run({ input: { way: "r" } })).values).toMatchObject({ log: ["left", "right"] });
  });

  test("to() goes beside the fixed edges, with its update; END adds nothing", async () => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: {
          a: async () => to("c", { log: ["a"] }),
          b: says("b"),
          c: async () => [to(END, { log: ["c"] }), send("d", 7)],
          d: async (n) => ({ log: [`d${String(n)}`] }),
        },
        edges: { start: "a", a: "b" },
      }),
    );
    const { values, checkpoints } = await thread.run({ input: {} });
    expect(values).toEqual({ log: ["a", "b", "c", "d7"] });
    expect(checkpoints[2]?.next.map((t) => t.name)).toEqual(["b", "c"]);
  });

  test.each([
    ["an unknown node", async () => to("nowhere" as "a"), 'names "nowhere", which is no node'],
    ["an unknown key", async () => ({ log: ["x"], lug: 1 }), "update.lug: the state has no such key"],
    [
      "a function inside",
      async () => ({ free: { deep: [() => 1] } }),
      "update.free.deep[0] cannot be stored: it is a function",
    ],
    ["a Map", async () => ({ free: new Map() }), "update.free cannot be stored: it is a Map"],
    ["an Error", async () => ({ free: new Error("none") }), "update.free cannot be stored: it is an Error"],
    ["NaN", async () => ({ free: Number.NaN }), "update.free cannot be stored: NaN"],
    ["no list", async () => ({ log: "x" as unknown as string[] }), "update.log must be an array"],
    ["a text", async () => "x" as never, "update must be an object"],
    ["what a schema refuses", async () => ({ n: "x" as unknown as number }), "update.n: Invalid input"],
    ["two updates", async () => [to("a", { n: 1 }), to("a", { n: 2 })], "two updates"],
    ["an input that its node refuses", async () => [send("leaf", { n: 1 })], 'send("leaf").n: Invalid input'],
  ])("a node that returns %s fails, and the error names it", async (_, node, message) => {
    const thread = new Thread(
      graph({
        state: { ...log, free: value<unknown>(), n: z.number().optional() },
        nodes: { a: node, leaf: { input: z.object({ n: z.string() }), run: async () => ({}) } },
        edges: { start: "a" },
      }),
    );
    const { error, trace } = await thread.run({ input: {} });
    expect(error?.message).toContain('Node "a"');
    expect(error?.message).toContain(message);
    expect(trace.at(-1)).toBe("result:a");
  });

  test("an edge that throws, or that leads nowhere, fails its task", async () => {
    for (const edge of [
      () => "nowhere" as "a",
      () => {
        throw new RangeError("far off");
      },
    ]) {
      const thread = new Thread(
        graph({ state: log, nodes: { a: says("a") }, edges: { start: "a", a: edge } }),
      );
      const { error } = await thread.run({ input: {} });
      expect(error?.message).toMatch(/far off|edges\.a names "nowhere"/);
    }
  });
});

describe("keys that pass", () => {
  const passing = graph({
    state: { hint: ephemeral<string>(), live: untracked<() => string>(), ...log },
    nodes: {
      a: async () => ({ hint: "h", live: () => "called" }),
      b: async (s) => ({ log: [`${s.hint} ${s.live?.()}`] }),
      c: async (s) => ({ log: [`${s.hint} ${s.live?.()}`] }),
    },
    edges: { start: "a", a: "b", b: "c" },
  });

  test("an ephemeral key lives one step, an untracked one as long as the attempt, and is never stored", async () => {
    const thread = new Thread(passing);
    // Functions cross no clone: the state of this test stays in one thread.
    const host = thread.host;
    const registry = thread.registry;
    expect(host).toBeDefined();
    expect(registry.names()).toEqual(["g"]);
    const execution = thread.open(thread.record({ input: {} }));
    let step = await execution.begin();
    const seen: unknown[] = [];
    while (step.plan.kind === "tasks") {
      for (const { id } of step.plan.tasks) {
        const call = execution.call(id);
        const outcome = await host.run(call, {
          emit: () => 0,
          record: async () => {},
          store: () => Promise.reject(new Error("no store here")),
          signal: new AbortController().signal,
          end: () => undefined,
        });
        const settled = await execution.settle(id, outcome);
        seen.push(settled.writes.result?.value);
      }
      step = await execution.apply();
      expect(step.values).not.toHaveProperty("live");
    }
    expect(seen).toEqual([{ hint: "h" }, { log: ["h called"] }, { log: ["undefined called"] }]);
    expect(step.values).toEqual({ log: ["h called", "undefined called"] });
  });
});

describe("limits", () => {
  const endless = graph({ state: log, nodes: { l: says("l") }, edges: { start: "l", l: "l" } });

  test("after the last step that the limit allows is committed, the run fails, and can be continued", async () => {
    const thread = new Thread(endless);
    const config = { recursion_limit: 5, configurable: {}, metadata: {} };
    const { error, values, checkpoints } = await thread.run({ input: {}, config });
    expect(error?.error).toBe("GraphRecursionError");
    expect(values["log"]).toHaveLength(5);
    expect(checkpoints.at(-1)).toMatchObject({ step: 5, next: [{ name: "l" }] });
    await thread.run({ input: null, config });
    expect(thread.values["log"]).toHaveLength(12);
  });

  test("25 steps unless the config says otherwise", async () => {
    expect((await new Thread(endless).run({ input: {} })).values["log"]).toHaveLength(25);
  });

  test("a graph that ends in the last allowed step has not failed", async () => {
    const thread = new Thread(graph({ state: log, nodes: { a: says("a") }, edges: { start: "a" } }));
    const { plan } = await thread.run({
      input: {},
      config: { recursion_limit: 1, configurable: {}, metadata: {} },
    });
    expect(plan.kind).toBe("done");
  });
});

describe("the input", () => {
  const chat = graph({
    state: { messages: messages(), n: z.number().default(3), plain: z.string().optional() },
    nodes: { a: async () => ({ messages: [{ type: "ai", content: "yes" }] }) },
    edges: { start: "a" },
  });

  test("defaults are there from the first checkpoint on", async () => {
    const thread = new Thread(chat);
    const { checkpoints } = await thread.run({ input: { plain: "x" } });
    expect(thread.stored(checkpoints[0])).toEqual({ messages: [], n: 3 });
  });

  test("messages become full, with ids that a replay finds again", async () => {
    const thread = new Thread(chat);
    const { values, facts } = await thread.run({ input: { messages: [{ role: "user", content: "hi" }] } });
    expect(values["messages"]).toEqual([
      {
        type: "human",
        content: "hi",
        additional_kwargs: {},
        response_metadata: {},
        name: null,
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        example: false,
      },
      {
        type: "ai",
        content: "yes",
        additional_kwargs: {},
        response_metadata: {},
        name: null,
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        example: false,
        tool_calls: [],
        invalid_tool_calls: [],
        usage_metadata: null,
      },
    ]);
    expect(facts.filter((fact) => fact.t === "complete")).toMatchObject([
      {
        message: { content: "yes" },
        streamed: false,
        ns: "",
        meta: { langgraph_node: "a", langgraph_step: 1 },
      },
    ]);
  });

  test("keys that the state lacks are left out, but not all of them", async () => {
    expect((await new Thread(chat).run({ input: { n: 1, more: 2 } })).values).toMatchObject({ n: 1 });
    expect((await new Thread(chat).run({ input: { more: 2 } })).error?.message).toContain("it has more");
  });

  test.each([
    [{ n: "x" }, "input.n: Invalid input"],
    ["text", "input must be an object"],
    [[1], "input must be an object"],
    [{ messages: [{ role: "robot", content: "x" }] }, 'input.messages[0] is of the type "robot"'],
    [{ messages: 7 }, "input.messages is no message"],
  ])("%j is refused: %s", async (input, message) => {
    expect((await new Thread(chat).run({ input })).error?.message).toContain(message);
  });

  test("a first run without input has nothing to do", async () => {
    expect((await new Thread(chat).run({ input: null })).error?.error).toBe("EmptyInputError");
  });

  test("the context is checked by the graph's schema, and its defaults filled in", async () => {
    const thread = new Thread(
      graph({
        state: log,
        context: z.object({ model: z.string().default("m") }),
        nodes: { a: async (_, ctx) => ({ log: [ctx.context.model] }) },
        edges: { start: "a" },
      }),
    );
    expect((await thread.run({ input: {} })).values).toEqual({ log: ["m"] });
    expect((await thread.run({ input: {}, context: { model: "x" } })).values).toEqual({ log: ["m", "x"] });
    expect((await thread.run({ input: {}, context: { model: 1 } })).error?.message).toContain(
      "context.model",
    );
  });
});
