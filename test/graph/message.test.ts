import { AIMessage, HumanMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { messages, REMOVE_ALL, type Message } from "../../src/index.ts";

const rule = messages();
const read = (write: unknown) =>
  rule.read(write, "input.messages", (n) => `minted-${n}`) as readonly Message[];
const one = (like: unknown) => read([like])[0];

const base = { additional_kwargs: {}, response_metadata: {}, name: null, id: "minted-0", example: false };
const ai = { ...base, type: "ai", tool_calls: [], invalid_tool_calls: [], usage_metadata: null };
const call = { name: "f", args: { a: 1 }, id: "c1", type: "tool_call" };
const blocks = [
  { type: "text", text: "see" },
  { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
  { type: "file", mime_type: "application/pdf", data: "AA==" },
  { type: "reasoning", reasoning: "hm", extras: { signature: "s" } },
];

describe("every field is there, whatever form it came in", () => {
  test.each<[string, unknown, object]>([
    ["a text", "hi", { ...base, type: "human", content: "hi" }],
    ["a role", { role: "user", content: "hi" }, { ...base, type: "human", content: "hi" }],
    ["a pair", ["assistant", "hi"], { ...ai, content: "hi" }],
    ["a pair with blocks", ["user", blocks], { ...base, type: "human", content: blocks }],
    [
      "a developer's",
      { role: "developer", content: "x" },
      { ...base, type: "system", content: "x", additional_kwargs: { __openai_role__: "developer" } },
    ],
    [
      "blocks, kept as they are",
      { type: "human", content: blocks },
      { ...base, type: "human", content: blocks },
    ],
    [
      "calls of the OpenAI API, sound and broken",
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "c1", type: "function", function: { name: "f", arguments: '{"a":1}' } },
          { id: "c2", type: "function", function: { name: "g", arguments: "{a" } },
          { id: "c3", type: "function", function: { name: "h", arguments: "" } },
        ],
      },
      {
        ...ai,
        content: "",
        tool_calls: [call, { name: "h", args: {}, id: "c3", type: "tool_call" }],
        invalid_tool_calls: [
          {
            name: "g",
            args: "{a",
            id: "c2",
            error: expect.stringContaining("cannot be read"),
            type: "invalid_tool_call",
          },
        ],
      },
    ],
    [
      "calls that were left in additional_kwargs",
      {
        type: "ai",
        content: "",
        additional_kwargs: { tool_calls: [{ id: "c1", function: { name: "f", arguments: '{"a":1}' } }] },
      },
      { ...ai, content: "", tool_calls: [call], additional_kwargs: expect.anything() },
    ],
    [
      "usage, with its total made",
      { type: "ai", content: "", usage_metadata: { input_tokens: 1, output_tokens: 2 } },
      { ...ai, content: "", usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } },
    ],
    [
      "usage, details kept",
      {
        type: "ai",
        content: "",
        usage_metadata: {
          input_tokens: 1,
          output_tokens: 2,
          total_tokens: 9,
          input_token_details: { audio: 1 },
        },
      },
      {
        ...ai,
        content: "",
        usage_metadata: {
          input_tokens: 1,
          output_tokens: 2,
          total_tokens: 9,
          input_token_details: { audio: 1 },
        },
      },
    ],
    [
      "a tool's answer",
      { type: "tool", content: "1", tool_call_id: "c1", name: "f", artifact: { raw: [1] } },
      {
        ...base,
        type: "tool",
        content: "1",
        tool_call_id: "c1",
        name: "f",
        artifact: { raw: [1] },
        status: "success",
      },
    ],
    [
      "an object of LangChain's",
      new HumanMessage({ content: "hi", id: "h1", name: "Ann" }),
      { ...base, type: "human", content: "hi", id: "h1", name: "Ann" },
    ],
    [
      "an ai message of LangChain's",
      new AIMessage({
        content: "x",
        tool_calls: [{ name: "f", args: { a: 1 }, id: "c1", type: "tool_call" }],
      }),
      { ...ai, content: "x", tool_calls: [call] },
    ],
    [
      "a tool message of LangChain's, as JSON",
      JSON.parse(JSON.stringify(new ToolMessage({ content: "x", tool_call_id: "c1", status: "error" }))),
      { ...base, type: "tool", content: "x", tool_call_id: "c1", artifact: {}, status: "error" },
    ],
    [
      "as LangChain stores it",
      new AIMessage({ content: "x", id: "a1" }).toDict(),
      { ...ai, content: "x", id: "a1", additional_kwargs: expect.anything() },
    ],
  ])("%s", (_, like, expected) => {
    expect(one(like)).toEqual(expected);
  });

  test("what has been read reads the same again", () => {
    for (const like of [{ role: "user", content: blocks }, new AIMessage("x"), ["tool", "x"] as const]) {
      const full = one(Array.isArray(like) ? { type: "tool", content: "x", tool_call_id: "c" } : like);
      expect(one(full)).toEqual(full);
    }
  });
});

test("a pair is one message; a list of texts is many", () => {
  expect(read(["user", "hi"]).map(({ type, content }) => [type, content])).toEqual([["human", "hi"]]);
  expect(read(["hi", "there"]).map(({ content }) => content)).toEqual(["hi", "there"]);
  expect(
    read([
      ["user", "a"],
      ["ai", "b"],
    ]).map(({ type }) => type),
  ).toEqual(["human", "ai"]);
});

test("remove: one by its id, or all that come before", () => {
  const old = read([
    { role: "user", content: "a", id: "a" },
    { role: "user", content: "b", id: "b" },
  ]);
  const left = (write: unknown) =>
    ((rule.update(old, [read(write)], "messages")?.value ?? []) as Message[]).map(({ content }) => content);
  expect(left([{ type: "remove", id: "a" }])).toEqual(["b"]);
  expect(left([new RemoveMessage({ id: "b" })])).toEqual(["a"]);
  expect(left([JSON.parse(JSON.stringify(new RemoveMessage({ id: "b" })))])).toEqual(["a"]);
  expect(left([{ type: "remove", id: REMOVE_ALL }, "new"])).toEqual(["new"]);
});

test.each<[unknown, string]>([
  [{ type: "ai", id: 7 }, ".id must be a string"],
  [{ type: "ai", name: 7 }, ".name must be a string"],
  [{ type: "ai", example: "yes" }, ".example must be true or false"],
  [{ type: "ai", tool_calls: {} }, ".tool_calls must be an array"],
  [{ type: "ai", tool_calls: [7] }, ".tool_calls[0] must be an object"],
  [{ type: "ai", tool_calls: [{ name: "f", args: "x" }] }, ".tool_calls[0].args must be an object"],
  [{ type: "ai", tool_calls: [{ name: "f", id: 7 }] }, ".tool_calls[0].id must be a string"],
  [{ type: "ai", tool_calls: [{ function: {} }] }, ".tool_calls[0].function.name must be a string"],
  [
    { type: "ai", tool_calls: [{ function: { name: "f", arguments: 7 } }] },
    ".tool_calls[0].function.arguments must be a string",
  ],
  [{ type: "ai", invalid_tool_calls: [7] }, ".invalid_tool_calls[0] must be an object"],
  [{ type: "ai", usage_metadata: 7 }, ".usage_metadata must be an object"],
  [{ type: "ai", usage_metadata: { input_tokens: "1" } }, ".usage_metadata.input_tokens must be a number"],
  [{ type: "ai", usage_metadata: { input_tokens: -1 } }, ".usage_metadata.input_tokens must be a number"],
  [
    { type: "ai", usage_metadata: { output_token_details: 1 } },
    ".usage_metadata.output_token_details must be an object",
  ],
  [{ type: "tool", tool_call_id: "c", status: "fine" }, '.status must be "success" or "error"'],
  [{ type: "tool", tool_call_id: 7 }, ".tool_call_id must be a string"],
  [{ type: "human", content: {} }, ".content must be a string or an array"],
  [{ type: "human", content: [{ f: () => 1 }] }, ".content[0].f cannot be stored"],
  [{ type: "remove", id: "" }, " removes a message, but has no id"],
  [["robot", "hi"], " is no message"],
  [null, " is no message"],
  [{ type: "constructor", id: ["x", "NoMessageAtAll"], kwargs: {} }, ' is of the type "NoMessageAtAll"'],
])("%j is refused by its path", (like, said) => {
  expect(() => one(like)).toThrow(`input.messages[0]${said}`);
});
