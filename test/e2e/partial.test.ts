import { expect, test } from "vitest";
import { graph, messages, type Ctx, type Message } from "../../src/index.ts";
import { lines, type Client } from "./support/clients.ts";
import { latch, unlessAborted } from "./support/latches.ts";
import { differs } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";
import { aUuid } from "./support/wire.ts";

const connect = lines[0]?.[1] as (url: string) => Client;

/** A graph that streams half a sentence and waits; when it is released, it streams the other half. */
function speaker(
  options: Parameters<typeof messages>[0],
  speak: (ctx: Ctx, half: () => Promise<void>) => unknown,
) {
  const reached = latch();
  const opened = latch();
  const half = (ctx: Ctx) => () => {
    reached.pass();
    return unlessAborted(opened.passed, ctx.signal);
  };
  let others = 0;
  const speaks = graph({
    state: { messages: messages(options) },
    nodes: {
      speak: async (_, ctx) => (await speak(ctx, half(ctx))) as never,
      other: async () => ({ messages: [{ role: "ai", content: "whole", id: `other ${++others}` }] }),
    },
    edges: { start: ["speak", "other"] },
  });
  return { speaks, waits: reached.passed, open: opened.pass };
}

const says = async (ctx: Ctx, half: () => Promise<void>) => {
  const message = ctx.message({ name: "bot", model: "m1" });
  message.write("half ");
  message.toolCall({ name: "never", args: '{"a', index: 0 });
  await half();
  message.write("and half");
  return { messages: [message.end()] };
};

const brief = (state: { values: unknown }) =>
  (state.values as { messages: Message[] }).messages.map(({ type, content }) => [type, content]);

test.skipIf(differs("half messages"))(
  "keep: what was said stays, and the output of the run that supersedes it follows",
  async () => {
    const { speaks, waits } = speaker({ onInterrupt: "keep" }, says);
    const { url } = await serve({ graphs: { speaks } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const a = await client.runs.create(thread_id, "speaks", { input: { messages: ["hi"] } });
    await waits;
    const values = await client.runs.wait(thread_id, "agent", {
      input: { messages: [{ role: "user", content: "again" }] },
      config: { configurable: { delay_ms: 0 } },
      multitaskStrategy: "interrupt",
    });
    expect(brief({ values })).toEqual([
      ["human", "hi"],
      ["ai", "whole"],
      ["ai", "half "],
      ["human", "again"],
      ["ai", "You said: again"],
    ]);
    expect(await client.runs.get(thread_id, a.run_id)).toMatchObject({ status: "interrupted" });
  },
);

test.skipIf(differs("half messages"))(
  "keep: cancelled, then gone on with: the whole message takes its place, siblings are not run again",
  async () => {
    const { speaks, waits, open } = speaker({ onInterrupt: "keep" }, says);
    const { url } = await serve({ graphs: { speaks } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const a = await client.runs.create(thread_id, "speaks", {
      input: { messages: [{ role: "user", content: "hi" }] },
      streamMode: ["values"],
    });
    await waits;
    await client.runs.cancel(thread_id, a.run_id, true);
    const state = await client.threads.getState<{ messages: Message[] }>(thread_id);
    expect(brief(state)).toEqual([
      ["human", "hi"],
      ["ai", "whole"],
      ["ai", "half "],
    ]);
    // The parallel node has finished already.
    expect(state.next).toEqual(["speak"]);
    expect(state.values.messages[2]).toEqual({
      type: "ai",
      id: aUuid,
      name: "bot",
      content: "half ",
      additional_kwargs: {},
      response_metadata: { model_name: "m1", interrupted: true },
      example: false,
      tool_calls: [],
      invalid_tool_calls: [],
      usage_metadata: null,
    });
    expect(await client.runs.get(thread_id, a.run_id)).toMatchObject({ status: "interrupted" });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
    // Replays of its stream show it too.
    const seen: unknown[] = [];
    for await (const { event, data } of client.runs.joinStream(thread_id, a.run_id, { lastEventId: "-1" })) {
      if (event === "values") seen.push(data);
    }
    expect(brief({ values: seen.at(-1) })).toEqual(brief(state));

    open();
    await client.runs.wait(thread_id, "speaks", { input: null });
    const after = await client.threads.getState<{ messages: Message[] }>(thread_id);
    expect(brief(after)).toEqual([
      ["human", "hi"],
      ["ai", "whole"],
      ["ai", "half and half"],
    ]);
    expect(after.values.messages[2]?.id).toBe(state.values.messages[2]?.id);
    expect(after.values.messages[2]?.response_metadata).toEqual({ model_name: "m1" });
  },
);

test.skipIf(differs("half messages"))(
  "keep: also of a body that does not listen, and of one that ends its message when told to stop",
  async () => {
    const deaf = speaker({ onInterrupt: "keep" }, (ctx, half) => {
      ctx.message().write("never ");
      half().catch(() => undefined);
      return new Promise(() => undefined);
    });
    const polite = speaker({ onInterrupt: "keep" }, async (ctx, half) => {
      const message = ctx.message();
      message.write({ type: "reasoning", reasoning: "so" });
      message.write("far");
      await half().catch(() => undefined);
      return { messages: [message.end()] };
    });
    const { url } = await serve({ graphs: { deaf: deaf.speaks, polite: polite.speaks } });
    const client = connect(url);
    const said = async (name: string, waits: Promise<void>) => {
      const { thread_id } = await client.threads.create();
      const { run_id } = await client.runs.create(thread_id, name, { input: { messages: "hi" } });
      await waits;
      await client.runs.cancel(thread_id, run_id, true);
      return brief(await client.threads.getState(thread_id)).at(-1);
    };
    expect(await said("deaf", deaf.waits)).toEqual(["ai", "never "]);
    expect(await said("polite", polite.waits)).toEqual([
      "ai",
      [
        { type: "reasoning", reasoning: "so" },
        { type: "text", text: "far" },
      ],
    ]);
  },
);

test.skipIf(differs("half messages"))("what is kept is on disk", async () => {
  const { speaks, waits } = speaker({ onInterrupt: "keep" }, says);
  const data = await directory();
  const first = await serve({ graphs: { speaks }, data });
  const client = connect(first.url);
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, "speaks", { input: { messages: "hi" } });
  await waits;
  await client.runs.cancel(thread_id, run_id, true);
  await first.close(0);
  const again = await serve({ graphs: { speaks }, data });
  expect(brief(await connect(again.url).threads.getState(thread_id))).toEqual([
    ["human", "hi"],
    ["ai", "whole"],
    ["ai", "half "],
  ]);
});

test.each([
  ["by default, whole supersteps alone are kept", undefined, "interrupt"],
  ["drop", { onInterrupt: "drop" }, "interrupt"],
  ["a rollback keeps nothing", { onInterrupt: "keep" }, "rollback"],
] as const)("%s", async (_, options, action) => {
  const { speaks, waits } = speaker(options, says);
  const { url } = await serve({ graphs: { speaks } });
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, "speaks", { input: { messages: "hi" } });
  await waits;
  await client.runs.cancel(thread_id, run_id, true, action);
  const { values } = await client.threads.getState<{ messages?: Message[] }>(thread_id);
  expect((values.messages ?? []).map(({ content }) => content)).toEqual(action === "interrupt" ? ["hi"] : []);
});

test("another word than keep or drop is refused", () => {
  expect(() => messages({ onInterrupt: "maybe" as never })).toThrow('must be "keep" or "drop"');
});
