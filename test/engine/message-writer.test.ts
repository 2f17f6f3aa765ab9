import { AIMessageChunk } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import {
  graph,
  messages,
  to,
  type Ctx,
  type Message,
  type MessageLike,
  type MessageWriter,
} from "../../src/index.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { attempt, call } from "./attempt.ts";
import { Thread } from "./driver.ts";

/** Writes one message, and gives what was streamed of it and what it was at the end. */
async function written(write: (message: MessageWriter) => void, init?: Parameters<Ctx["message"]>[0]) {
  const { outcome, facts } = await attempt((ctx) => {
    const message = ctx.message(init);
    write(message);
    return message.end();
  });
  if (outcome.kind !== "returned") throw new Error(JSON.stringify(outcome));
  return { message: outcome.value as Message, facts, pieces: facts.slice(1).map(messageOfChunk) };
}

function messageOfChunk(fact: Fact): unknown {
  if (fact.t === "token") return fact.text;
  return fact.t === "piece" ? fact.chunk : fact;
}

/** What LangChain's own classes, and with them the SDK, put together from the pieces. */
function joined(facts: readonly Fact[]): AIMessageChunk {
  const blank = { tool_calls: [], invalid_tool_calls: [], tool_call_chunks: [], additional_kwargs: {} };
  const chunks = facts.slice(1).map((fact) => {
    const chunk: JsonObject = fact.t === "piece" ? fact.chunk : { content: (fact as { text: string }).text };
    return new AIMessageChunk({ content: "", ...blank, response_metadata: {}, ...chunk } as never);
  });
  return chunks.reduce((left, right) => left.concat(right));
}

describe("content", () => {
  const image = { type: "image_url", image_url: { url: "https://x/y.png" } };
  test.each<[string, (message: MessageWriter) => void, unknown]>([
    ["text", (m) => ["a", "b"].forEach((text) => m.write(text)), "ab"],
    ["a block of text alone is text", (m) => m.write({ type: "text", text: "a" }), "a"],
    ["a block", (m) => m.write(image), [image]],
    [
      "text, a block, text",
      (m) => ["a", "b", image, "c", "d"].forEach((part) => m.write(part)),
      [{ type: "text", text: "ab" }, image, { type: "text", text: "cd" }],
    ],
    [
      "reasoning goes on with reasoning",
      (m) => {
        m.write({ type: "reasoning", reasoning: "so" });
        m.write({ type: "reasoning", reasoning: " on" });
        m.write("done");
      },
      [
        { type: "reasoning", reasoning: "so on" },
        { type: "text", text: "done" },
      ],
    ],
    [
      "a block goes on with the one of its index",
      (m) => {
        m.write({ type: "thinking", thinking: "a", index: 0 });
        m.write({ type: "text", text: "x", index: 1 });
        m.write({ type: "thinking", thinking: "b", signature: "s", index: 0 });
        m.write({ type: "text", text: "y", index: 1 });
      },
      [
        { type: "thinking", thinking: "ab", signature: "s", index: 0 },
        { type: "text", text: "xy", index: 1 },
      ],
    ],
  ])("%s", async (_, write, content) => {
    const { message, facts } = await written(write);
    expect(message.content).toEqual(content);
    const bare = (value: unknown) =>
      Array.isArray(value) ? value.map(({ index: _index, ...block }) => block) : value;
    expect(bare(joined(facts).content)).toEqual(bare(content));
  });

  test.each<[unknown, string]>([
    [7, "takes text or a content block"],
    [["a"], "not an array"],
    [null, "takes text or a content block"],
    [{ type: "x", f: () => 1 }, "message.write.f cannot be stored"],
  ])("%o is refused", async (part, said) => {
    const { outcome, facts } = await attempt((ctx) => ctx.message().write(part as string));
    expect(outcome).toMatchObject({ kind: "failed", error: { message: expect.stringContaining(said) } });
    expect(facts.map(({ t }) => t)).toEqual(["message", "log"]);
  });

  test("a message that never ends is cut off", async () => {
    const { outcome } = await attempt((ctx) => {
      const message = ctx.message();
      for (;;) message.write("x".repeat(1024 * 1024));
    });
    expect(outcome).toMatchObject({ kind: "failed", error: { error: "RangeError" } });
  });
});

describe("tool calls", () => {
  test("arguments that are streamed are pieces, and one call at the end", async () => {
    const { message, pieces, facts } = await written((m) => {
      m.toolCall({ name: "look", id: "c1", index: 0, args: "" });
      m.toolCall({ index: 0, args: '{"q":' });
      m.toolCall({ name: "look", id: "c2", index: 1, args: '{"q":2}' });
      m.toolCall({ index: 0, args: "1}" });
    });
    expect(message.tool_calls).toEqual([
      { name: "look", args: { q: 1 }, id: "c1", type: "tool_call" },
      { name: "look", args: { q: 2 }, id: "c2", type: "tool_call" },
    ]);
    const piece = (index: number, name: string | null, id: string | null, args: string) => ({
      tool_call_chunks: [{ name, args, id, index, type: "tool_call_chunk" }],
    });
    expect(pieces).toEqual([
      piece(0, "look", "c1", ""),
      piece(0, null, null, '{"q":'),
      piece(1, "look", "c2", '{"q":2}'),
      piece(0, null, null, "1}"),
    ]);
    expect(joined(facts).tool_calls).toEqual(message.tool_calls);
  });

  test("whole calls are joined to the same by clients", async () => {
    const { message, facts } = await written((m) => {
      m.toolCall({ name: "a", args: { x: 1 } });
      m.toolCall({ name: "b" });
    });
    expect(message.tool_calls).toMatchObject([
      { name: "a", args: { x: 1 }, id: expect.stringMatching(/^call_[0-9a-f]{32}$/) },
      { name: "b", args: {} },
    ]);
    expect(joined(facts).tool_calls).toEqual(message.tool_calls);
  });

  test("without an index: by id, or the last one; servers that number every call 0 are understood", async () => {
    const { message } = await written((m) => {
      m.toolCall({ name: "a", id: "1", args: '{"x"' });
      m.toolCall({ args: ":1}" });
      m.toolCall({ name: "b", id: "2", args: "{" });
      m.toolCall({ id: "2", args: "}" });
    });
    expect(message.tool_calls?.map(({ name, args }) => [name, args])).toEqual([
      ["a", { x: 1 }],
      ["b", {}],
    ]);
    const zeroes = await written((m) => {
      m.toolCall({ name: "a", id: "1", index: 0, args: "{}" });
      m.toolCall({ name: "b", id: "2", index: 0, args: "{}" });
    });
    expect(zeroes.message.tool_calls?.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  test.each(['{"q":', "[1]", "null", '{"__proto__":{}}'])(
    "arguments %s are an invalid call",
    async (args) => {
      const { message } = await written((m) => m.toolCall({ name: "look", id: "c", args }));
      expect(message.tool_calls).toEqual([]);
      expect(message.invalid_tool_calls).toEqual([
        { name: "look", args, id: "c", error: expect.any(String), type: "invalid_tool_call" },
      ]);
    },
  );
});

test("usage is told once, at the end: the last word counts, and totals are made", async () => {
  const { message, pieces } = await written((m) => {
    m.write("x");
    m.usage({ input_tokens: 1, output_tokens: 1, total_tokens: 2 });
    m.usage({ input_tokens: 3, output_tokens: 4, input_token_details: { cache_read: 1 } });
  });
  const usage = {
    input_tokens: 3,
    output_tokens: 4,
    total_tokens: 7,
    input_token_details: { cache_read: 1 },
  };
  expect(message.usage_metadata).toEqual(usage);
  expect(pieces).toEqual(["x", { usage_metadata: usage }]);
  const { outcome } = await attempt((ctx) => ctx.message().usage({ input_tokens: -1 }));
  expect(outcome).toMatchObject({ error: { message: expect.stringContaining("usage.input_tokens") } });
});

test("id, name and model: told with the message, kept in it", async () => {
  const { message, facts, pieces } = await written((m) => m.write("x"), {
    id: "mine",
    name: "bot",
    model: "m1",
  });
  expect(facts[0]).toEqual({
    t: "message",
    id: "mine",
    name: "bot",
    ns: "",
    meta: { ...call.meta, ls_model_type: "chat", ls_model_name: "m1" },
  });
  expect(message).toMatchObject({ id: "mine", name: "bot", response_metadata: { model_name: "m1" } });
  expect(pieces).toEqual(["x", { response_metadata: { model_name: "m1" } }]);
});

test.each(["", "x".repeat(257), 7])("the id %o is refused", async (id) => {
  const { outcome } = await attempt((ctx) => ctx.message({ id: id as string }));
  expect(outcome).toMatchObject({
    kind: "failed",
    error: { message: expect.stringContaining("id of a message") },
  });
});

test("an ended message takes nothing more, and says the same again", async () => {
  const { outcome } = await attempt((ctx) => {
    const message = ctx.message();
    message.write("x");
    const done = message.end();
    expect(message.end()).toBe(done);
    expect(() => message.write("y")).toThrow("ended");
    expect(() => message.write({ type: "image" })).toThrow("ended");
    expect(() => message.toolCall({ name: "a" })).toThrow("ended");
    expect(() => message.usage({})).toThrow("ended");
    return done;
  });
  expect(outcome).toMatchObject({ kind: "returned", value: { content: "x" } });
});

test("what a node returns is told once: streamed under an id of its own or not, from any of its forms", async () => {
  const thread = new Thread(
    graph({
      state: { messages: messages() },
      nodes: {
        a: async (_, ctx) => {
          const own = ctx.message({ id: "own" });
          own.write("streamed");
          return to("b", { messages: [own.end(), { role: "ai", content: "whole", id: "w" }] });
        },
        // What is in the state already, whoever streamed it, is no news.
        b: async (state) => ({ messages: [...state.messages, ["ai", "pair"]] as MessageLike[] }),
        c: async () => [{ messages: { type: "remove", id: "w" } }] as never,
      },
      edges: { start: "a", b: "c" },
    }),
  );
  const { facts, error } = await thread.run({ input: { messages: "hi" } });
  expect(error).toBeNull();
  const told = facts.flatMap((fact) => {
    if (fact.t !== "complete") return [];
    const { type, content, id } = fact.message;
    return [[type, content ?? id, fact.streamed]];
  });
  expect(told).toEqual([
    ["ai", "streamed", true],
    ["ai", "whole", false],
    ["ai", "pair", false],
    ["remove", "w", false],
  ]);
});
