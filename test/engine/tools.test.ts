import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  graph,
  list,
  messages,
  runTools,
  tool,
  type Ctx,
  type Message,
  type ToolMessage,
} from "../../src/index.ts";
import type { InterruptsByTask } from "../../src/model/interrupt.ts";
import { attempt } from "./attempt.ts";
import { Thread } from "./driver.ts";

const add = tool({
  name: "add",
  description: "Adds two numbers",
  schema: z.object({ a: z.number(), b: z.number().default(1) }),
  run: ({ a, b }) => a + b,
});
const boom = tool({
  name: "boom",
  description: "Fails",
  schema: z.object({}),
  run: () => {
    throw new RangeError("no");
  },
});

type Calls = readonly { readonly name: string; readonly args?: object; readonly id?: string }[];
const asks = (...calls: Calls) =>
  ({
    type: "ai",
    tool_calls: calls.map((call, i) => ({ args: {}, id: `c${i}`, type: "tool_call", ...call })),
  }) as unknown as Message;

async function ran(body: (ctx: Ctx) => Promise<readonly ToolMessage[]>, options = {}) {
  const { outcome, records } = await attempt(body, options);
  if (outcome.kind !== "returned") throw new Error(JSON.stringify(outcome));
  return { answers: outcome.value as readonly ToolMessage[], records };
}

describe("what became of a call", () => {
  test("tool messages in the order of the calls", async () => {
    const { answers, records } = await ran((ctx) =>
      runTools([add], asks({ name: "add", args: { a: 1, b: 2 } }, { name: "add", args: { a: 5 } }), ctx),
    );
    expect(answers).toEqual([
      { type: "tool", name: "add", tool_call_id: "c0", content: "3", artifact: {}, status: "success" },
      { type: "tool", name: "add", tool_call_id: "c1", content: "6", artifact: {}, status: "success" },
    ]);
    expect(records).toEqual([]);
  });

  test.each<[string, object, string]>([
    ["add", { a: "x" }, "TypeError: The arguments are not right: args.a: "],
    ["add", {}, "args.a: "],
    ["boom", {}, "RangeError: no"],
    ["nothing", {}, 'Error: There is no tool "nothing"; the tools are: add, boom'],
    ["__proto__", {}, 'There is no tool "__proto__"'],
  ])("%s(%j) is an error that the model can read", async (name, args, said) => {
    const { answers } = await ran((ctx) => runTools([add, boom], asks({ name, args }), ctx));
    expect(answers).toEqual([
      expect.objectContaining({
        status: "error",
        tool_call_id: "c0",
        content: expect.stringContaining(said),
      }),
    ]);
  });

  test("a call that could not be read is answered too", async () => {
    const invalid = { name: "add", args: "{", id: "c9", error: "broken", type: "invalid_tool_call" };
    const message = { ...asks(), invalid_tool_calls: [invalid] } as Message;
    const { answers } = await ran((ctx) => runTools([add], message, ctx));
    expect(answers).toMatchObject([{ tool_call_id: "c9", status: "error", content: "Error: broken" }]);
  });

  const returning = (value: unknown) =>
    tool({ name: "t", description: "", schema: z.object({}), run: async () => value });
  test.each<[unknown, object]>([
    ["text", { content: "text" }],
    [undefined, { content: "" }],
    [null, { content: "null" }],
    [{ hits: [1] }, { content: '{"hits":[1]}' }],
    [
      { content: "seen", artifact: { raw: 1 } },
      { content: "seen", artifact: { raw: 1 } },
    ],
    [
      { content: [{ type: "image_url", image_url: "x" }] },
      { content: [{ type: "image_url", image_url: "x" }] },
    ],
    [{ content: 7 }, { content: '{"content":7}' }],
    [new Map(), { status: "error", content: expect.stringContaining("cannot be stored: it is a Map") }],
  ])("%o as its content", async (value, expected) => {
    const { answers } = await ran((ctx) => runTools([returning(value)], asks({ name: "t" }), ctx));
    expect(answers).toMatchObject([expected]);
  });
});

test("the stream mode tools shows each call that runs: its start, and its end or its error", async () => {
  const calls = asks(
    { name: "add", args: { a: 1 } },
    { name: "boom" },
    { name: "add", args: {} },
    { name: "none" },
  );
  const { facts } = await attempt((ctx) => runTools([add, boom], calls, ctx));
  const shown = facts.map((fact) => (fact.t === "tool" ? [fact.ns, JSON.parse(fact.json) as unknown] : fact));
  const [first, second] = [
    { toolCallId: "c0", name: "add" },
    { toolCallId: "c1", name: "boom" },
  ];
  // A tool that is not there has no events, and neither has one whose schema refuses the arguments.
  expect(shown).toEqual([
    ["", { event: "on_tool_start", ...first, input: '{"a":1}' }],
    ["", { event: "on_tool_start", ...second, input: "{}" }],
    ["", { event: "on_tool_error", ...second, error: { name: "RangeError", message: "no" } }],
    ["", { event: "on_tool_end", ...first, output: expect.objectContaining({ content: "2" }) as unknown }],
  ]);
});

test("a tool that is a generator reports its progress; its return value is its result", async () => {
  const search = tool({
    name: "search",
    description: "Searches",
    schema: z.object({}),
    async *run() {
      yield { found: 1 };
      yield "half";
      return "all of it";
    },
  });
  const { facts, outcome } = await attempt((ctx) => runTools([search], asks({ name: "search" }), ctx));
  expect(outcome).toMatchObject({ kind: "returned", value: [{ content: "all of it", status: "success" }] });
  const shown = facts.map((fact) => (fact.t === "tool" ? (JSON.parse(fact.json) as unknown) : fact));
  expect(shown).toMatchObject([
    { event: "on_tool_start" },
    { event: "on_tool_event", toolCallId: "c0", name: "search", data: { found: 1 } },
    { event: "on_tool_event", data: "half" },
    { event: "on_tool_end", output: { content: "all of it" } },
  ]);
});

test("progress that cannot be stored fails the tool, and ends it", async () => {
  let isEnded = false;
  const search = tool({
    name: "search",
    description: "Searches",
    schema: z.object({}),
    async *run() {
      try {
        yield 1n;
      } finally {
        isEnded = true;
      }
    },
  });
  const { answers } = await ran((ctx) => runTools([search], asks({ name: "search" }), ctx));
  expect(answers).toMatchObject([
    { status: "error", content: expect.stringContaining("cannot be stored") as string },
  ]);
  expect(isEnded).toBe(true);
});

test("a tool that pauses the run has not ended", async () => {
  const asking = tool({
    name: "asking",
    description: "Asks",
    schema: z.object({}),
    run: (_, ctx) => ctx.interrupt("sure?"),
  });
  const { facts } = await attempt((ctx) => runTools([asking], asks({ name: "asking" }), ctx));
  expect(facts).toHaveLength(1);
});

test("of a list: the last ai message's calls that have no answer yet", async () => {
  const before = asks({ name: "add", args: { a: 0 } });
  const last = asks({ name: "add", args: { a: 1 }, id: "x" }, { name: "add", args: { a: 2 }, id: "y" });
  const done = { type: "tool", tool_call_id: "x" } as Message;
  const { answers } = await ran((ctx) => runTools([add], [before, last, done], ctx));
  expect(answers.map((answer) => [answer.tool_call_id, answer.content])).toEqual([["y", "3"]]);
  expect((await ran((ctx) => runTools([add], [], ctx))).answers).toEqual([]);
});

test("calls run side by side, with the node's signal", async () => {
  const events: string[] = [];
  const slow = tool({
    name: "slow",
    description: "",
    schema: z.object({ n: z.number() }),
    run: async ({ n }, ctx) => {
      expect(ctx.signal).toBeInstanceOf(AbortSignal);
      events.push(`start ${n}`);
      await Promise.resolve();
      events.push(`end ${n}`);
    },
  });
  const calls = asks({ name: "slow", args: { n: 1 } }, { name: "slow", args: { n: 2 } });
  await ran((ctx) => runTools([slow], calls, ctx));
  expect(events.slice(0, 2)).toEqual(["start 1", "start 2"]);
});

test("when the run stops, what a tool throws is no answer", async () => {
  const signal = AbortSignal.abort(new Error("stopped"));
  const stops = tool({
    name: "stops",
    description: "",
    schema: z.object({}),
    run: (_, ctx) => ctx.signal.throwIfAborted(),
  });
  const { outcome } = await attempt((ctx) => runTools([stops], asks({ name: "stops" }), ctx), { signal });
  expect(outcome).toEqual({ kind: "failed", at: 0, error: { error: "Error", message: "stopped" } });
});

test("definitions: refused by name; types are inferred; the schema tells a model", () => {
  const tells = () => tool({ name: "", description: "", schema: z.object({}), run: () => 1 });
  expect(tells).toThrow("a tool's name");
  expect(() => tool({ name: "x", description: "", schema: {} as never, run: () => 1 })).toThrow(
    'tool "x": schema',
  );
  expect(add.parameters).toMatchObject({ type: "object", properties: { a: { type: "number" } } });
  tool({
    name: "typed",
    description: "",
    schema: z.object({ q: z.string() }),
    run: (args, ctx, call) => {
      expectTypeOf(args).toEqualTypeOf<{ q: string }>();
      expectTypeOf(ctx.runId).toEqualTypeOf<string>();
      expectTypeOf(call.name).toEqualTypeOf<string>();
    },
  });
});

test("two tools of one name are refused", async () => {
  const { outcome } = await attempt((ctx) => runTools([add, add], asks({ name: "add" }), ctx));
  expect(outcome).toMatchObject({ kind: "failed", error: { message: "Two tools have the same name" } });
});

describe("a tool that asks", () => {
  /** How often each body ran. */
  function agent() {
    const runs: Record<string, number> = {};
    const count = (name: string) => (runs[name] = (runs[name] ?? 0) + 1);
    const gates = new Map<string, Promise<void>>();
    const approve = tool({
      name: "approve",
      description: "",
      schema: z.object({ what: z.string(), twice: z.boolean().default(false) }),
      run: async ({ what, twice }, ctx) => {
        await gates.get(what);
        const first = await ctx.interrupt(`${what}?`);
        const second = twice ? await ctx.interrupt(`${what}, sure?`) : "";
        count(what);
        await ctx.step("note", () => count(`step ${what}`));
        return `${what}: ${String(first)}${String(second)}`;
      },
    });
    const free = tool({
      name: "free",
      description: "",
      schema: z.object({}),
      run: () => `run ${count("free")}`,
    });
    const after = list<unknown>();
    const g = graph({
      state: { messages: messages(), after },
      nodes: {
        tools: async (state, ctx) => {
          const answers = await runTools([approve, free], state.messages, ctx);
          return { messages: answers, after: [await ctx.interrupt("all done?")] };
        },
      },
      edges: { start: "tools" },
    });
    return { thread: new Thread(g), runs, gates };
  }

  const calls = (...args: readonly object[]) => ({
    input: {
      messages: [
        {
          role: "ai",
          tool_calls: [
            ...args.map((one, i) => ({ name: "approve", args: one, id: `a${i}` })),
            { name: "free", args: {}, id: "f" },
          ],
        },
      ],
    },
  });
  const waiting = (thread: { readonly interrupts: InterruptsByTask }) =>
    Object.values(thread.interrupts)
      .flat()
      .map(({ id, value }) => ({ id, value: String(value) }));
  const contents = (thread: Thread) =>
    (thread.values["messages"] as Message[]).slice(1).map((m) => m.content);

  test("pauses the run; the others have run once, and keep what they said", async () => {
    const { thread, runs } = agent();
    const { plan } = await thread.run(calls({ what: "a" }));
    expect(plan.kind).toBe("paused");
    expect(waiting(thread).map(({ value }) => value)).toEqual(["a?"]);
    expect(runs).toEqual({ free: 1 });
    await thread.run({ command: { resume: "yes" } });
    expect(waiting(thread).map(({ value }) => value)).toEqual(["all done?"]);
    await thread.run({ command: { resume: "fine" } });
    expect(contents(thread)).toEqual(["a: yes", "run 1"]);
    expect(thread.values["after"]).toEqual(["fine"]);
    expect(runs["free"]).toBe(1);
    expect(runs["step a"]).toBe(1);
  });

  test("answers find their questions, whoever was faster and however many each asks", async () => {
    const { thread, gates } = agent();
    // The second call asks before the first one does.
    let open = () => {};
    gates.set("a", new Promise((resolve) => (open = resolve)));
    gates.set(
      "b",
      Promise.resolve().then(() => open()),
    );
    await thread.run(calls({ what: "a", twice: true }, { what: "b", twice: true }));
    expect(
      waiting(thread)
        .map(({ value }) => value)
        .toSorted(),
    ).toEqual(["a?", "b?"]);
    gates.clear();
    const answerAll = (suffix: string) => {
      const resume = Object.fromEntries(waiting(thread).map(({ id, value }) => [id, value[0] + suffix]));
      return thread.run({ command: { resume } });
    };
    // The first one alone is answered: it asks again, the other one still waits.
    const first = waiting(thread).find(({ value }) => value === "a?");
    await thread.run({ command: { resume: { [first?.id ?? ""]: "a1" } } });
    expect(
      waiting(thread)
        .map(({ value }) => value)
        .toSorted(),
    ).toEqual(["a, sure?", "b?"]);
    await answerAll("2");
    expect(waiting(thread).map(({ value }) => value)).toEqual(["b, sure?"]);
    await thread.run({ command: { resume: "b3" } });
    await thread.run({ command: { resume: "end" } });
    expect(contents(thread)).toEqual(["a: a1a2", "b: b2b3", "run 1"]);
    expect(thread.values["after"]).toEqual(["end"]);
  });
});
