import { expect, test } from "vitest";
import { graph, list, messages, value, type Ctx } from "../../src/index.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { NodeCall } from "../../src/ports/engine.ts";
import { GraphRegistry } from "../../src/graph/graph-registry.ts";
import { createInThreadNodeExecutor } from "../../src/engine/in-thread-node-executor.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { attempt, call, clock, quiet, random } from "./attempt.ts";
import { Thread } from "./driver.ts";

test("a streamed message: one fact for it, one for each token, and the whole at the end with the same id", async () => {
  const { outcome, facts } = await attempt((ctx) => {
    const message = ctx.message({ name: "bot" });
    message.write("hel");
    message.write("");
    message.write("lo");
    message.usage({ input_tokens: 1, output_tokens: 2, total_tokens: 3 });
    return message.end();
  });
  const id = (facts[0] as Extract<Fact, { t: "message" }>).id;
  expect(facts).toEqual([
    { t: "message", id, name: "bot", ns: "", meta: call.meta },
    { t: "token", m: 0, text: "hel" },
    { t: "token", m: 0, text: "lo" },
    { t: "piece", m: 0, chunk: { usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } } },
  ]);
  expect(outcome).toEqual({
    kind: "returned",
    value: {
      type: "ai",
      id,
      name: "bot",
      content: "hello",
      additional_kwargs: {},
      response_metadata: {},
      example: false,
      tool_calls: [],
      invalid_tool_calls: [],
      usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
    },
  });
});

test("ids of messages are the same on a replay, and others in another attempt or try", async () => {
  const ids = async (options: Partial<NodeCall>) => {
    const { facts } = await attempt((ctx) => void [ctx.message(), ctx.message()], options);
    return facts.map((fact) => (fact.t === "message" ? fact.id : ""));
  };
  const first = await ids({});
  expect(new Set(first).size).toBe(2);
  for (const id of first)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(await ids({})).toEqual(first);
  const others = [...(await ids({ attempt: 2 })), ...(await ids({ try: 2 }))];
  expect(new Set([...first, ...others]).size).toBe(6);
});

test("message.from streams what an async iterable brings, and stops with the run", async () => {
  async function* words() {
    yield "a";
    yield "b";
  }
  const { outcome, facts } = await attempt((ctx) => ctx.message.from(words()));
  expect(outcome).toMatchObject({ kind: "returned", value: { content: "ab" } });
  expect(facts.map((fact) => fact.t)).toEqual(["message", "token", "token"]);
  const aborted = AbortSignal.abort(new Error("stop"));
  const stopped = await attempt((ctx) => ctx.message.from(words()), { signal: aborted });
  expect(stopped.outcome).toEqual({ kind: "failed", error: { error: "Error", message: "stop" }, at: 0 });
});

test("a tool call is a piece of the message, and part of it at the end", async () => {
  const { outcome, facts } = await attempt((ctx) => {
    const message = ctx.message();
    message.toolCall({ name: "count", args: { text: "x" }, id: "c1" });
    return message.end();
  });
  const made = { name: "count", args: { text: "x" }, id: "c1", type: "tool_call" };
  expect(outcome).toMatchObject({ kind: "returned", value: { content: "", tool_calls: [made] } });
  expect(facts[1]).toMatchObject({
    t: "piece",
    chunk: {
      tool_calls: [made],
      tool_call_chunks: [
        { name: "count", args: '{"text":"x"}', id: "c1", index: 0, type: "tool_call_chunk" },
      ],
    },
  });
});

test("a message that was ended takes no more text", async () => {
  const { outcome } = await attempt((ctx) => {
    const message = ctx.message();
    message.end();
    message.write("late");
  });
  expect(outcome).toMatchObject({ kind: "failed", error: { message: expect.stringContaining("ended") } });
});

test("emit sends a copy, and what cannot be stored fails in the node, naming the path", async () => {
  const { facts } = await attempt((ctx) => {
    const data = { n: 1 };
    ctx.emit(data);
    data.n = 2;
  });
  expect(facts).toEqual([{ t: "custom", ns: "", json: '{"n":1}' }]);
  const { outcome } = await attempt((ctx) => ctx.emit({ deep: [1n] }));
  expect(outcome).toMatchObject({
    kind: "failed",
    error: { message: "emit.deep[0] cannot be stored: it is a bigint" },
  });
});

test("a step runs once, its result is stored before it is given, and a replay gets it", async () => {
  let runs = 0;
  const body = async (ctx: Ctx) => {
    const step = () => ctx.step("k", async () => ({ run: ++runs }));
    const [first, again] = await Promise.all([step(), step()]);
    (first as { run: number }).run = 99;
    return [first, again, await step()];
  };
  const { outcome, records } = await attempt(body);
  expect(outcome).toEqual({ kind: "returned", value: [{ run: 99 }, { run: 1 }, { run: 1 }] });
  expect(records).toEqual([["k", { run: 1 }]]);
  const replay = await attempt((ctx) => ctx.step("k", () => ++runs), { steps: { k: { run: 1 } } });
  expect(replay.outcome).toEqual({ kind: "returned", value: { run: 1 } });
  expect(replay.records).toEqual([]);
  expect(runs).toBe(1);
});

test.each(["", "__proto__", "x".repeat(257), 7])("a step with the key %j is refused", async (key) => {
  const { outcome, records } = await attempt((ctx) => ctx.step(key as string, () => 1));
  expect(outcome).toMatchObject({ kind: "failed", error: { error: "TypeError" } });
  expect(records).toEqual([]);
});

test("a step that fails, or returns what cannot be stored, is not recorded", async () => {
  for (const fn of [() => Promise.reject(new Error("no")), () => new Map()]) {
    const { outcome, records } = await attempt((ctx) => ctx.step("k", fn));
    expect(outcome.kind).toBe("failed");
    expect(records).toEqual([]);
  }
});

test("once the attempt is over, ctx does nothing", async () => {
  let late: Ctx | undefined;
  let message: ReturnType<Ctx["message"]> | undefined;
  const { facts } = await attempt((ctx) => {
    late = ctx;
    message = ctx.message();
  });
  expect(() => late?.emit(1)).toThrow("is over");
  expect(() => late?.message()).toThrow("is over");
  expect(() => late?.interrupt(1)).toThrow("is over");
  await expect(late?.step("k", () => 1)).rejects.toThrow("is over");
  message?.write("late");
  expect(facts).toHaveLength(1);
});

test("a node or a graph that is not there fails the task", async () => {
  expect((await attempt(() => 1, { node: "b" })).outcome).toMatchObject({ kind: "failed" });
  expect((await attempt(() => 1, { graph: "h" })).outcome).toMatchObject({ kind: "failed" });
});

test("a synchronous throw and a synchronous return are fine", async () => {
  const registry = new GraphRegistry();
  const boom = () => {
    throw new RangeError("now");
  };
  registry.add(
    "g",
    graph({ state: { n: value(0) }, nodes: { a: boom, b: () => ({ n: 1 }) }, edges: { start: "a" } }),
  );
  const executor = createInThreadNodeExecutor(registry, {
    logger: quiet,
    random,
    clock,
    scheduler: systemScheduler,
  });
  const io = {
    emit: () => 0,
    record: async () => {},
    store: () => Promise.reject(new Error("no store here")),
    signal: new AbortController().signal,
    end: () => undefined,
  };
  expect(await executor.run(call, io)).toEqual({
    kind: "failed",
    error: { error: "RangeError", message: "now" },
    at: 0,
    isLogged: true,
  });
  expect(await executor.run({ ...call, node: "b" }, io)).toEqual({ kind: "returned", value: { n: 1 } });
  await executor.close();
});

// The first read of a stack makes Node read the source maps of its files.
test.each([false, true])("a failure has the time of its throw; sent to clients: %s", async (stacks) => {
  let time = 1_000;
  const thrown = new RangeError("no");
  let reads = 0;
  const readStack = () => {
    reads++;
    time += 50;
    return "RangeError: no\n    at a (/project/graph.ts:3:9)";
  };
  Object.defineProperty(thrown, "stack", { get: readStack });
  const registry = new GraphRegistry();
  const a = async () => {
    time += 7;
    throw thrown;
  };
  registry.add("g", graph({ state: { n: value(0) }, nodes: { a }, edges: { start: "a" } }));
  const lines: unknown[] = [];
  const later: (() => void)[] = [];
  const facts: Fact[] = [];
  const executor = createInThreadNodeExecutor(registry, {
    logger: { ...quiet, warn: (message, fields) => void lines.push([message, fields?.["error"]]) },
    random,
    clock: { now: () => time, mono: () => time },
    scheduler: { soon: (task) => void later.push(task) },
    stacks,
  });
  const outcome = await executor.run(call, {
    emit: (fact) => facts.push(fact) - 1,
    record: async () => {},
    store: () => Promise.reject(new Error("no store here")),
    signal: new AbortController().signal,
    end: () => undefined,
  });
  expect(outcome).toMatchObject({ kind: "failed", at: 1_007 });
  expect(facts).toMatchObject([{ t: "log", at: 1_007, message: "RangeError: no" }]);
  expect(reads > 0).toBe(stacks);
  expect(facts.some((fact) => fact.t === "log" && fact.stack !== undefined)).toBe(stacks);
  expect(lines).toEqual([]);
  for (const task of later) task();
  expect(lines).toEqual([["a node failed", "RangeError: no\n    at a (/project/graph.ts:3:9)"]]);
});

test("the end of a failed task is when its node threw, not when its outcome is handled", async () => {
  const thread = new Thread(
    graph({
      state: { n: value(0) },
      nodes: {
        a: () => {
          thread.time = 40;
          throw new RangeError("no");
        },
      },
      edges: { start: "a" },
    }),
  );
  const { facts } = await thread.run({ input: {} });
  expect(facts.filter(({ t }) => t === "result")).toMatchObject([{ at: 40, error: { message: "no" } }]);
});

test("ctx says where the node runs", async () => {
  const { outcome } = await attempt((ctx) => {
    ctx.log.info("here", { k: 1 });
    const { runId, threadId, taskId, attempt: nth, ns, config, context } = ctx;
    return { runId, threadId, taskId, nth, ns, config, context };
  });
  expect(outcome).toEqual({
    kind: "returned",
    value: {
      runId: "r",
      threadId: "t",
      taskId: call.task,
      nth: 1,
      ns: "",
      config: call.config,
      context: call.context,
    },
  });
});

test("the engine tells streamed messages from others by their ids alone", async () => {
  const thread = new Thread(
    graph({
      state: { messages: messages(), log: list<string>() },
      nodes: {
        a: async (state, ctx) => {
          const message = ctx.message();
          message.write("streamed");
          const tool = { type: "tool", content: "42", tool_call_id: "c" };
          // What was there before is no news, although it is returned once more.
          return { messages: [...state.messages, message.end(), { role: "ai", content: "whole" }, tool] };
        },
      },
      edges: { start: "a" },
    }),
  );
  const { trace, values } = await thread.run({ input: { messages: "hi" } });
  expect(trace.filter((one) => /complete|token|result/.test(one))).toEqual([
    "token:streamed",
    "complete:ai(streamed)",
    "complete:ai",
    "complete:tool",
    "result:a",
  ]);
  expect((values["messages"] as JsonObject[]).map((m) => m["content"])).toEqual([
    "hi",
    "streamed",
    "whole",
    "42",
  ]);
});
