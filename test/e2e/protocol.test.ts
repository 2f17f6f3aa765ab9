import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, messages, runTools, tool, value } from "../../src/index.ts";
import { all, streamOf, transports } from "./support/protocol.ts";
import { isHosted } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";

const state = { messages: messages(), log: list<string>() };

/** Streams a message, calls a tool, and answers for the tool. */
const agent = graph({
  state,
  nodes: {
    model: async (_, ctx) => {
      ctx.emit({ progress: 1 });
      const message = ctx.message({ model: "m-1" });
      for (const token of ["Hel", "lo ", "you"]) message.write(token);
      message.toolCall({ name: "search", args: '{"q":', id: "c1", index: 0 });
      message.toolCall({ args: '"x"}', index: 0 });
      message.usage({ input_tokens: 2, output_tokens: 3, total_tokens: 5 });
      return { messages: [message.end()], log: ["model"] };
    },
    tools: async () => ({
      messages: [{ type: "tool", content: '{"found":1}', tool_call_id: "c1" }],
      log: ["tools"],
    }),
  },
  edges: { start: "model", model: "tools" },
});

const approval = graph({
  state,
  nodes: {
    ask: async (_, ctx) => {
      const answer = await ctx.interrupt({ question: "ok?" }, { schema: z.object({ ok: z.boolean() }) });
      return { log: [`answered ${String(answer.ok)}`] };
    },
  },
  edges: { start: "ask" },
});

const inner = graph({
  state,
  nodes: {
    say: async (_, ctx) => {
      const message = ctx.message();
      message.write("from within");
      return { messages: [message.end()], log: ["inner"] };
    },
  },
  edges: { start: "say" },
});
const outer = graph({
  state: { ...state, n: value(0) },
  nodes: { sub: inner, after: async () => ({ log: ["outer"] }) },
  edges: { start: "sub", sub: "after" },
});

const failing = graph({
  state,
  nodes: {
    fail: async () => {
      throw new TypeError("no way");
    },
  },
  edges: { start: "fail" },
});

const search = tool({
  name: "search",
  description: "Searches",
  schema: z.object({ q: z.string() }),
  async *run({ q }) {
    yield "half";
    return `found ${q}`;
  },
});
/** Calls a tool, and runs it in the same node. */
const busy = graph({
  state,
  nodes: {
    work: async (_, ctx) => {
      const message = ctx.message();
      message.toolCall({ name: "search", args: { q: "x" }, id: "c1" });
      const called = message.end();
      return { messages: [called, ...(await runTools([search], called, ctx))] };
    },
  },
  edges: { start: "work" },
});

const graphs = { talker: agent, approver: approval, outer, failing, busy };

describe.each(transports)("threads.stream over %s", (transport) => {
  const start = async (assistant: string) => {
    const server = await serve({ graphs });
    return { ...streamOf(server.url, transport, assistant), url: server.url };
  };

  test("a run on a thread that is made for it: values, and the output at the end", async () => {
    const { thread, client, threadId } = await start("talker");
    const { run_id } = await thread.run.start({ input: { messages: [{ role: "user", content: "hi" }] } });
    const output = (await thread.output) as { log: string[]; messages: unknown[] };
    expect(output.log).toEqual(["model", "tools"]);
    expect(output.messages).toHaveLength(3);
    expect(await client.runs.get(threadId, String(run_id))).toMatchObject({ status: "success" });
    expect(thread.interrupted).toBe(false);
  });

  test("messages token by token, whole, with their tool calls and what they cost", async () => {
    const { thread } = await start("talker");
    const streamed = thread.messages;
    await thread.run.start({ input: {} });
    await thread.output;
    const [message] = await all(streamed);
    expect(await all(message?.text as AsyncIterable<string>)).toEqual(["Hel", "lo ", "you"]);
    const whole = await message?.output;
    expect(whole?.text).toBe("Hello you");
    expect(whole?.tool_calls).toMatchObject([{ name: "search", args: { q: "x" }, id: "c1" }]);
    expect(await message?.usage).toMatchObject({ input_tokens: 2, output_tokens: 3, total_tokens: 5 });
    expect(message?.node).toBe("model");
  });

  test("tool calls and their results", async () => {
    const { thread } = await start("talker");
    const calls = thread.toolCalls;
    await thread.run.start({ input: {} });
    await thread.output;
    const found = await all(calls);
    // The client returns a call once when it begins and once when it has ended.
    expect(found).toMatchObject(
      Array.from({ length: 2 }, () => ({ name: "search", id: "c1", input: { q: "x" } })),
    );
    expect(await found[0]?.output).toEqual({ found: 1 });
  });

  test.skipIf(isHosted)(
    "a tool that runs in the node of its call: its start, progress and end, once",
    async () => {
      const { thread } = await start("busy");
      const subscription = await thread.subscribe({ channels: ["tools"] });
      await thread.run.start({ input: {} });
      await thread.output;
      const got = (await all(subscription)).map(
        (event) => (event as { params: { data: object } }).params.data,
      );
      expect(got).toMatchObject([
        { event: "tool-started", tool_call_id: "c1", tool_name: "search" },
        { event: "tool-output-delta", tool_call_id: "c1", delta: "half" },
        { event: "tool-finished", tool_call_id: "c1", output: { content: "found x" } },
      ]);
      expect(got).toHaveLength(3);
    },
  );

  test("an interrupt, and the run that goes on with the answer", async () => {
    const { thread, client, threadId } = await start("approver");
    await thread.run.start({ input: { messages: [] } });
    await thread.output;
    expect(thread.interrupted).toBe(true);
    expect(thread.interrupts).toMatchObject([{ payload: { question: "ok?" } }]);
    const [asked] = thread.interrupts;
    const events = await thread.subscribe({ channels: ["lifecycle", "updates"] });
    await thread.input.respond({
      namespace: asked?.namespace ?? [],
      interrupt_id: asked?.interruptId ?? "",
      response: { ok: true },
    });
    const seen: string[] = [];
    for await (const event of events) {
      const { event: what } = event.params.data as { event?: string };
      seen.push(what ?? event.method);
      if (what === "completed") break;
    }
    expect(seen.slice(-3)).toEqual(["running", "updates", "completed"]);
    expect((await client.threads.getState(threadId)).values).toMatchObject({ log: ["answered true"] });
  });

  test("an input to a thread that waits is its answer", async () => {
    const { thread, client, threadId } = await start("approver");
    await thread.run.start({ input: { messages: [] } });
    await thread.output;
    const { run_id } = await thread.run.start({ input: { ok: false } });
    await client.runs.join(threadId, String(run_id));
    expect((await client.threads.getState(threadId)).values).toMatchObject({ log: ["answered false"] });
  });

  test("subgraphs: their namespace, their messages, their end", async () => {
    const { thread } = await start("outer");
    const subgraphs = thread.subgraphs;
    const events = await thread.subscribe({ channels: ["lifecycle", "messages", "values"] });
    await thread.run.start({ input: {} });
    await thread.output;
    const seen = await all(events);
    const ns = seen.map(({ params }) => params.namespace).find(({ length }) => length === 1) ?? [];
    expect(ns).toEqual([expect.stringMatching(/^sub:/)]);
    const lifecycle = seen.flatMap(({ method, params }) =>
      method === "lifecycle"
        ? [`${(params.data as { event: string }).event} ${params.namespace.length}`]
        : [],
    );
    expect(lifecycle).toEqual(["running 0", "started 1", "completed 1", "completed 0"]);
    const within = seen.filter(
      ({ method, params }) => method === "messages" && params.namespace.length === 1,
    );
    expect(within.length).toBeGreaterThan(3);
    const narrow = await thread.subscribe({ channels: ["values"], namespaces: [["sub"]] });
    const [first] = await all({
      async *[Symbol.asyncIterator]() {
        for await (const event of narrow) {
          yield event;
          return;
        }
      },
    });
    expect(first?.params.namespace).toEqual(ns);
    expect(await thread.state.get({ namespace: ns, keys: ["log"] })).toMatchObject({
      values: { log: ["inner"] },
    });
    for await (const sub of subgraphs) {
      expect([sub.name, sub.namespace]).toEqual(["sub", ns]);
      break;
    }
  });

  test("a run that fails is told of as failed", async () => {
    const { thread, client, threadId } = await start("failing");
    const events = await thread.subscribe({ channels: ["lifecycle"] });
    const { run_id } = await thread.run.start({ input: {} });
    const seen = await all(events);
    expect(seen.at(-1)?.params.data).toMatchObject({
      event: "failed",
      graph_name: "failing",
      error: JSON.stringify({ error: "TypeError", message: "no way" }),
    });
    expect(await client.runs.get(threadId, String(run_id))).toMatchObject({ status: "error" });
  });

  test("custom events, state, checkpoints, forks and the tree", async () => {
    const { thread, client, threadId } = await start("talker");
    const custom = await thread.subscribe({ channels: ["custom"] });
    await thread.run.start({ input: {} });
    await thread.output;
    expect((await all(custom)).map(({ params }) => params.data)).toEqual([{ payload: { progress: 1 } }]);
    const got = await thread.state.get({ namespace: [], keys: ["log"] });
    expect(got).toMatchObject({ values: { log: ["model", "tools"] }, checkpoint: { ns: "" } });
    const { checkpoints } = (await thread.state.listCheckpoints({ limit: 10 })) as {
      checkpoints: { id: string; step: number }[];
    };
    expect(checkpoints.map(({ step }) => step)).toEqual([2, 1, 0, -1]);
    expect(await thread.agent.getTree()).toMatchObject({
      tree: { namespace: [], status: "completed", graph_name: "talker" },
    });
    const at = checkpoints.find(({ step }) => step === 1)?.id ?? "";
    const forked = (await thread.state.fork({ checkpoint_id: at })) as { run_id: string };
    await client.runs.join(threadId, forked.run_id);
    expect((await client.threads.getState(threadId)).values).toMatchObject({ log: ["model", "tools"] });
    expect(await client.runs.list(threadId)).toHaveLength(2);
  });

  test("what cannot be done is refused by name", async () => {
    const { thread } = await start("talker");
    await expect(thread.state.get({ namespace: [] })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(
      thread.input.respond({ namespace: [], interrupt_id: "x", response: 1 }),
    ).rejects.toMatchObject({ code: "invalid_argument" });
    await thread.run.start({ input: {} });
    await thread.output;
    await expect(
      thread.input.respond({ namespace: [], interrupt_id: "x", response: 1 }),
    ).rejects.toMatchObject({ code: "no_such_interrupt" });
    await expect(
      thread.input.inject({ namespace: [], message: { role: "user", content: "x" } }),
    ).rejects.toMatchObject({ code: "unknown_command" });
    await expect(thread.run.start({ input: {}, config: { recursion_limit: -1 } })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});
