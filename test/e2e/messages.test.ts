import { describe, expect, test } from "vitest";
import { graph, list, messages } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { differs } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";
import { aUuid } from "./support/wire.ts";

/** Streams a message that calls a tool, answers as the tool, and adds a last message in blocks, as a whole. */
const chat = graph({
  state: { messages: messages() },
  nodes: {
    think: async (_, ctx) => {
      const message = ctx.message({ model: "m1" });
      message.write("Let me ");
      message.write("look");
      message.toolCall({ name: "look", args: { up: "x" }, id: "call-1" });
      message.usage({ input_tokens: 3, output_tokens: 4 });
      return { messages: [message.end()] };
    },
    look: async () => ({
      messages: [
        { type: "tool", content: "found", tool_call_id: "call-1", name: "look", artifact: { raw: [1] } },
      ],
    }),
    say: async (state, ctx) => {
      const { tone = "plain" } = (ctx.config["configurable"] ?? {}) as { tone?: string };
      const text = `${tone} after ${state.messages.length}`;
      return { messages: [{ role: "assistant", content: [{ type: "text", text }] }] };
    },
  },
  edges: { start: "think", think: "look", look: "say" },
});

const endless = graph({
  state: { log: list<string>() },
  nodes: { again: async () => ({ log: ["again"] }) },
  edges: { start: "again", again: "again" },
});

const common = { additional_kwargs: {}, response_metadata: {}, name: null, example: false };
const anId = expect.any(String) as unknown;
const human = { ...common, type: "human", content: "hi", id: "u1" };
const called = {
  ...common,
  type: "ai",
  content: "Let me look",
  id: anId,
  response_metadata: { model_name: "m1" },
  tool_calls: [{ name: "look", args: { up: "x" }, id: "call-1", type: "tool_call" }],
  invalid_tool_calls: [],
  usage_metadata: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
};
const tool = {
  ...common,
  type: "tool",
  content: "found",
  name: "look",
  id: anId,
  tool_call_id: "call-1",
  artifact: { raw: [1] },
  ...(!differs("statuses of tool messages") && { status: "success" }),
};
const said = (text: string) => ({
  ...common,
  type: "ai",
  content: [{ type: "text", text }],
  id: anId,
  tool_calls: [],
  invalid_tool_calls: [],
  usage_metadata: null,
});
const input = { messages: [{ role: "user", content: "hi", id: "u1" }] };

describe.each(lines)("messages over %s", (_, connect) => {
  const start = async () => {
    const gate = gated();
    const { url } = await serve({ graphs: { chat, endless, held: gate.held } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    return { ...gate, client, thread_id };
  };

  test("stored ones have every field of their type, however they were written", async () => {
    const { client, thread_id } = await start();
    const stored = { messages: [human, called, tool, said("plain after 3")] };
    expect(await client.runs.wait(thread_id, "chat", { input })).toEqual(stored);
    expect((await client.threads.getState(thread_id)).values).toEqual(stored);
    expect((await client.threads.get(thread_id)).values).toEqual(stored);
  });

  test.each(["user", "human"])("an input of the role %s is a human message, and gets an id", async (role) => {
    const { client, thread_id } = await start();
    const { messages: all } = (await client.runs.wait(thread_id, "chat", {
      input: { messages: [{ role, content: "hi" }] },
    })) as { messages: { id: string }[] };
    expect(all[0]).toEqual({ ...human, id: anId });
    expect(new Set(all.map(({ id }) => id)).size).toBe(4);
  });

  test("streams show them as they are stored; the chunks of one are told by its id, and by where they come from", async () => {
    const { client, thread_id } = await start();
    const parts: [event: string, data: unknown][] = [];
    const streamMode: ("values" | "updates" | "messages-tuple")[] = ["values", "updates", "messages-tuple"];
    for await (const { event, data } of client.runs.stream(thread_id, "chat", { input, streamMode })) {
      parts.push([event, data]);
    }
    const of = (name: string) => parts.flatMap(([event, data]) => (event === name ? [data] : []));
    expect(of("values").at(-1)).toEqual({ messages: [human, called, tool, said("plain after 3")] });
    expect(of("updates")).toEqual([
      { think: { messages: [called] } },
      { look: { messages: [tool] } },
      { say: { messages: [said("plain after 3")] } },
    ]);
    const chunks = of("messages") as [
      { id: string; content: unknown; type: string },
      Record<string, unknown>,
    ][];
    const [run] = await client.runs.list(thread_id);
    const ids = new Map<string, number>();
    for (const [chunk, about] of chunks) {
      ids.set(chunk.id, (ids.get(chunk.id) ?? 0) + 1);
      expect(chunk).toMatchObject({
        content: expect.anything() as unknown,
        type: expect.any(String) as unknown,
      });
      expect(about).toMatchObject({
        run_id: run?.run_id,
        thread_id,
        graph_id: "chat",
        assistant_id: run?.assistant_id,
        langgraph_step: expect.any(Number) as unknown,
        langgraph_node: expect.stringMatching(/^(think|look|say)$/) as unknown,
        langgraph_path: ["__pregel_pull", about["langgraph_node"]],
        langgraph_checkpoint_ns: expect.stringMatching(/^(think|look|say):[0-9a-f-]{36}$/) as unknown,
      });
    }
    const shown = (node: string) => chunks.filter(([, about]) => about["langgraph_node"] === node);
    expect(shown("think")[0]?.[1]).toMatchObject({ ls_model_name: "m1" });
    expect(shown("think").length).toBeGreaterThan(1);
    // These two streamed nothing: their messages are shown nevertheless, once and as a whole.
    expect(shown("look").map(([chunk]) => chunk)).toEqual([tool]);
    expect(shown("say").map(([chunk]) => chunk)).toMatchObject([said("plain after 3")]);
    expect(ids.size).toBe(3);
  });

  test("a second assistant sees what the first one's runs left, and speaks by its own configuration", async () => {
    const { client, thread_id } = await start();
    const warm = await client.assistants.create({
      graphId: "chat",
      config: { configurable: { tone: "warm" } },
    });
    const cold = await client.assistants.create({
      graphId: "chat",
      config: { configurable: { tone: "cold" } },
    });
    await client.runs.wait(thread_id, warm.assistant_id, { input });
    const more = { messages: [{ role: "user", content: "more" }] };
    const { messages: all } = (await client.runs.wait(thread_id, cold.assistant_id, { input: more })) as {
      messages: unknown[];
    };
    expect(all).toHaveLength(8);
    expect([all[3], all[7]]).toEqual([said("warm after 3"), said("cold after 7")]);
  });

  test("the state says whose it is: the user and the assistant of the run that made it", async () => {
    const { client, thread_id } = await start();
    const { assistant_id } = await client.assistants.create({ graphId: "chat" });
    const config = { configurable: { user_id: "u-7" } };
    await client.runs.wait(thread_id, assistant_id, { input, config });
    const [run] = await client.runs.list(thread_id);
    const { metadata } = await client.threads.getState(thread_id);
    expect(metadata).toEqual({
      step: 3,
      run_id: run?.run_id,
      source: "loop",
      writes: { say: { messages: [said("plain after 3")] } },
      user_id: "u-7",
      graph_id: "chat",
      thread_id,
      created_by: "user",
      assistant_id,
      parents: {},
    });
    expect(run).toMatchObject({
      kwargs: {
        config: { metadata: { created_by: "user" }, configurable: { user_id: "u-7", assistant_id } },
      },
    });
  });
});

describe.each(lines)("join over %s", (_, connect) => {
  test("answers whatever the run's status is, or comes to be", async () => {
    const gate = gated();
    const { url } = await serve({ graphs: { held: gate.held, endless } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const create = async (assistant: string, options: object) =>
      (await client.runs.create(thread_id, assistant, { multitaskStrategy: "enqueue", ...options })).run_id;
    const join = (run: string) => client.runs.join(thread_id, run);
    const status = async (run: string) => (await client.runs.get(thread_id, run)).status;

    const running = await create("held", { input: { name: "a" } });
    await gate.waits("a");
    const queued = await create("held", { input: { name: "b" } });
    expect([await status(running), await status(queued)]).toEqual(["running", "pending"]);
    const joined = [join(running), join(queued)];
    gate.open("a");
    gate.open("b");
    const [a, b] = await Promise.all(joined);
    expect(a).toEqual({ name: "a", log: ["a began", "a ended"] });
    expect(b).toEqual({ name: "b", log: ["a began", "a ended", "b began", "b ended"] });
    expect([await status(running), await status(queued)]).toEqual(["success", "success"]);

    const paused = await create("held", { input: { name: "c" }, interruptBefore: ["hold"] });
    expect(await join(paused)).toMatchObject({ name: "c", __interrupt__: [] });
    const asked = await create("approval", { input: { topic: "tea" } });
    expect(await join(asked)).toMatchObject({ __interrupt__: [{ when: "during" }] });
    expect([await status(paused), await status(asked)]).toEqual(["success", "success"]);

    const stopped = await create("held", { input: { name: "d" } });
    await gate.waits("d");
    const stopping = join(stopped);
    await client.runs.cancel(thread_id, stopped, true);
    expect(await stopping).toMatchObject({ name: "d" });
    expect([await status(stopped), await join(stopped)]).toEqual(["interrupted", await stopping]);

    // Without another limit, a run takes 25 steps.
    const failed = await create("endless", { input: {} });
    expect(await join(failed)).toEqual({
      __error__: { error: "GraphRecursionError", message: expect.stringContaining("25") as unknown },
    });
    expect(await status(failed)).toBe("error");

    const gone = await create("held", { input: { name: "e" } });
    await gate.waits("e");
    const going = join(gone);
    await client.runs.cancel(thread_id, gone, true, "rollback");
    expect(await going).toEqual((await client.threads.getState(thread_id)).values);
    await expect(join(gone)).rejects.toMatchObject({ status: 404 });
    expect(gone).toEqual(aUuid);
  });
});
