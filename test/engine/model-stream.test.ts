import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import type { Message } from "../../src/index.ts";
import { attempt } from "./attempt.ts";

async function* stream(...chunks: readonly unknown[]): AsyncGenerator {
  for (const chunk of chunks) yield chunk;
}

async function drained(source: AsyncIterable<unknown> | Iterable<unknown>) {
  const { outcome, facts } = await attempt((ctx) => ctx.message.from(source));
  if (outcome.kind !== "returned") throw new Error(JSON.stringify(outcome));
  const tokens = facts.flatMap((fact) => (fact.t === "token" ? [fact.text] : []));
  return { message: outcome.value as Message, tokens, facts };
}

async function failed(source: unknown): Promise<string> {
  const { outcome } = await attempt((ctx) => ctx.message.from(source as Iterable<unknown>));
  return outcome.kind === "failed" ? `${outcome.error.error}: ${outcome.error.message}` : "did not fail";
}

describe("chunks of the OpenAI API", () => {
  const chunk = (delta: object, more: object = {}) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    model: "gpt-x-2026",
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  });
  const call = (index: number, args: string, first: object = {}) => ({
    tool_calls: [
      { index, ...first, function: { ...("id" in first ? { name: "look" } : {}), arguments: args } },
    ],
  });

  test("text, calls in pieces, usage in a last chunk without a choice", async () => {
    const { message, tokens } = await drained(
      stream(
        chunk({ role: "assistant", content: "" }),
        chunk({ content: "Hel" }),
        chunk({ content: "lo" }),
        chunk(call(0, "", { id: "c1", type: "function" })),
        chunk(call(0, '{"q"')),
        chunk(call(0, ":1}")),
        chunk(call(1, "{", { id: "c2", type: "function" })),
        chunk({}, { finish_reason: "tool_calls" }),
        {
          ...chunk({}),
          choices: [],
          usage: {
            prompt_tokens: 5,
            completion_tokens: 7,
            total_tokens: 12,
            prompt_tokens_details: { cached_tokens: 2 },
            completion_tokens_details: { reasoning_tokens: 3 },
          },
        },
      ),
    );
    expect(tokens).toEqual(["Hel", "lo"]);
    expect(message).toMatchObject({
      content: "Hello",
      tool_calls: [{ name: "look", args: { q: 1 }, id: "c1" }],
      invalid_tool_calls: [{ name: "look", args: "{", id: "c2" }],
      usage_metadata: {
        input_tokens: 5,
        output_tokens: 7,
        total_tokens: 12,
        input_token_details: { cache_read: 2 },
        output_token_details: { reasoning: 3 },
      },
      response_metadata: { id: "chatcmpl-1", model_name: "gpt-x-2026", finish_reason: "tool_calls" },
    });
  });

  test("reasoning of servers that tell it, a refusal, the other choices", async () => {
    const { message } = await drained(
      stream(
        chunk({ reasoning_content: "let me " }),
        chunk({ reasoning_content: "see" }),
        chunk({ content: "no" }),
        chunk({ content: "other" }, { index: 1 }),
        chunk({ refusal: "I can" }),
        chunk({ refusal: "not" }),
      ),
    );
    expect(message).toMatchObject({
      content: [
        { type: "reasoning", reasoning: "let me see" },
        { type: "text", text: "no" },
      ],
      additional_kwargs: { refusal: "I cannot" },
    });
  });

  test("an error in the stream is the node's", async () => {
    expect(await failed(stream(chunk({ content: "a" }), { error: { message: "overloaded" } }))).toBe(
      "Error: overloaded",
    );
  });
});

describe("parts of the AI SDK", () => {
  test("version 5: text, reasoning, a call, usage", async () => {
    const { message, tokens } = await drained(
      stream(
        { type: "start" },
        { type: "start-step", request: {}, warnings: [] },
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", text: "hm" },
        { type: "reasoning-end", id: "r" },
        { type: "text-start", id: "t" },
        { type: "text-delta", id: "t", text: "Hel" },
        { type: "text-delta", id: "t", text: "lo" },
        { type: "text-end", id: "t" },
        { type: "tool-input-start", id: "c1", toolName: "look" },
        { type: "tool-input-delta", id: "c1", delta: '{"q":' },
        { type: "tool-input-delta", id: "c1", delta: "1}" },
        { type: "tool-input-end", id: "c1" },
        { type: "tool-call", toolCallId: "c1", toolName: "look", input: { q: 1 } },
        {
          type: "finish-step",
          response: { id: "resp", modelId: "m", timestamp: new Date(0) },
          finishReason: "tool-calls",
          usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
        },
        {
          type: "finish",
          finishReason: "tool-calls",
          totalUsage: {
            inputTokens: 1,
            outputTokens: 2,
            totalTokens: 3,
            reasoningTokens: 1,
            cachedInputTokens: 0,
          },
        },
      ),
    );
    expect(tokens).toEqual([]);
    expect(message).toMatchObject({
      content: [
        { type: "reasoning", reasoning: "hm" },
        { type: "text", text: "Hello" },
      ],
      tool_calls: [{ name: "look", args: { q: 1 }, id: "c1", type: "tool_call" }],
      usage_metadata: {
        input_tokens: 1,
        output_tokens: 2,
        total_tokens: 3,
        output_token_details: { reasoning: 1 },
      },
      response_metadata: { id: "resp", model_name: "m", finish_reason: "tool-calls" },
    });
  });

  test("version 6: usage with details; a provider's own parts, with arguments as text", async () => {
    const { message } = await drained(
      stream(
        { type: "stream-start", warnings: [] },
        { type: "response-metadata", id: "r", modelId: "m" },
        { type: "text-delta", id: "0", delta: "hi" },
        { type: "tool-call", toolCallId: "c", toolName: "look", input: '{"q":2}' },
        {
          type: "finish",
          finishReason: { unified: "stop", raw: "stop" },
          usage: { inputTokens: { total: 4, cacheRead: 1 }, outputTokens: { total: 6, reasoning: 2 } },
        },
      ),
    );
    expect(message).toMatchObject({
      content: "hi",
      tool_calls: [{ name: "look", args: { q: 2 } }],
      usage_metadata: {
        input_tokens: 4,
        output_tokens: 6,
        total_tokens: 10,
        input_token_details: { cache_read: 1 },
        output_token_details: { reasoning: 2 },
      },
      response_metadata: { finish_reason: "stop" },
    });
    const six = await drained(
      stream({
        type: "finish",
        finishReason: "stop",
        rawFinishReason: "end_turn",
        totalUsage: {
          inputTokens: 4,
          outputTokens: 6,
          totalTokens: 10,
          inputTokenDetails: { cacheReadTokens: 3 },
        },
      }),
    );
    expect(six.message.usage_metadata).toMatchObject({
      total_tokens: 10,
      input_token_details: { cache_read: 3 },
    });
  });

  test("a call that the SDK has answered itself is content, and waits for no one", async () => {
    const { message } = await drained(
      stream(
        { type: "tool-call", toolCallId: "c", toolName: "web", input: { q: 1 }, providerExecuted: true },
        { type: "tool-result", toolCallId: "c", toolName: "web", input: { q: 1 }, output: { hits: 2 } },
        { type: "text-delta", id: "0", text: "two" },
      ),
    );
    expect(message.tool_calls).toEqual([]);
    expect(message.content).toEqual([
      { type: "server_tool_call", id: "c", name: "web", args: { q: 1 } },
      { type: "server_tool_call_result", toolCallId: "c", status: "success", output: { hits: 2 } },
      { type: "text", text: "two" },
    ]);
  });

  test("an error, or an abort, in the stream is the node's", async () => {
    expect(await failed(stream({ type: "error", error: new RangeError("too long") }))).toBe(
      "RangeError: too long",
    );
    expect(await failed(stream({ type: "abort" }))).toContain("AbortError");
  });
});

describe("LangChain", () => {
  test("what a model of theirs streams", async () => {
    const part = (fields: object) => new AIMessageChunk({ content: "", ...fields } as never);
    const answer = stream(
      part({ content: "Hel", usage_metadata: { input_tokens: 3, output_tokens: 0, total_tokens: 3 } }),
      part({ content: "lo" }),
      part({
        tool_call_chunks: [{ name: "look", args: '{"q"', id: "c1", index: 0, type: "tool_call_chunk" }],
      }),
      part({
        tool_call_chunks: [{ args: ":1}", index: 0, type: "tool_call_chunk" }],
        response_metadata: { finish_reason: "stop" },
        usage_metadata: { input_tokens: 0, output_tokens: 5, total_tokens: 5 },
      }),
    );
    const { message, tokens } = await drained(answer);
    expect(tokens).toEqual(["Hel", "lo"]);
    expect(message).toMatchObject({
      content: "Hello",
      tool_calls: [{ name: "look", args: { q: 1 }, id: "c1" }],
      invalid_tool_calls: [],
      usage_metadata: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
      response_metadata: { finish_reason: "stop" },
    });
  });

  test("content in blocks, and a whole message", async () => {
    const { message } = await drained(
      stream(
        new AIMessageChunk({ content: [{ type: "text", text: "a", index: 0 }] }),
        new AIMessageChunk({ content: [{ type: "text", text: "b", index: 0 }] }),
      ),
    );
    expect(message.content).toEqual([{ type: "text", text: "ab", index: 0 }]);
    const whole = new AIMessage({ content: "x", tool_calls: [{ name: "t", args: { a: 1 }, id: "c" }] });
    const { message: same } = await drained([whole]);
    expect(same).toMatchObject({ content: "x", tool_calls: [{ name: "t", args: { a: 1 }, id: "c" }] });
  });
});

test.each<[unknown, string]>([
  [
    stream({ foo: 1, bar: 2 }),
    "TypeError: ctx.message.from cannot read chunk 1 of its source, an object with the fields foo, bar",
  ],
  [stream("a", { type: "telepathy" }), 'chunk 2 of its source, an object of the type "telepathy"'],
  [stream(7), "a number"],
  [stream(null), "null"],
  [stream([]), "an array"],
  [{}, "something to iterate over"],
  [undefined, "something to iterate over"],
])("an unknown shape is an error that says so (%#)", async (source, said) => {
  expect(await failed(source)).toContain(said);
});

test("a source that never answers is left when the run stops, and told so", async () => {
  const controller = new AbortController();
  let released = false;
  const source = {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        controller.abort(new Error("stopped"));
        return new Promise<never>(() => undefined);
      },
      return: async () => {
        released = true;
        return { done: true as const, value: undefined };
      },
    }),
  };
  const { outcome } = await attempt((ctx) => ctx.message.from(source), { signal: controller.signal });
  expect(outcome).toEqual({ kind: "failed", at: 0, error: { error: "Error", message: "stopped" } });
  expect(released).toBe(true);
});

test("a source that fails fails the node", async () => {
  async function* broken() {
    yield "a";
    throw new RangeError("no more");
  }
  expect(await failed(broken())).toBe("RangeError: no more");
});
