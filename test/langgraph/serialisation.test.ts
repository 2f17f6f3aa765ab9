import {
  AIMessage,
  AIMessageChunk,
  type AIMessageFields,
  BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { Send } from "@langchain/langgraph";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { beforeAll, describe, expect, test } from "vitest";
import { graphFile, isBelow } from "./support.ts";
import { packValue, unpackValue } from "../../src/codec/value-encoding.ts";
import { resolveLibrary, type LangGraphLibrary } from "../../src/langgraph/user-library.ts";
import { deserialise } from "../../src/langgraph/deserialisation.ts";
import { serialise } from "../../src/langgraph/serialisation.ts";
import { ClassInstance } from "../../src/model/non-json-data.ts";
import { isObject, type JsonObject } from "../../src/model/json.ts";

let library: LangGraphLibrary;
beforeAll(async () => {
  library = await resolveLibrary(graphFile, null);
});

/** Stores a value and reads it again. */
const stored = (shown: unknown): unknown => unpackValue(packValue(shown, 0), 0);
const again = (value: unknown): unknown => deserialise(library, stored(serialise(value)));
const onWire = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

class Twice extends HumanMessage {}
class Point {
  x = 1;
  get double() {
    return this.x * 2;
  }
}

const call = { id: "c", name: "search", args: { q: "a" }, type: "tool_call" as const };
const messages: readonly (readonly [string, BaseMessage])[] = [
  ["HumanMessage", new HumanMessage({ id: "1", content: "hi", name: "Ann" })],
  ["AIMessage", new AIMessage({ id: "2", content: [{ type: "text", text: "yes" }], tool_calls: [call] })],
  [
    "AIMessage",
    new AIMessage({
      id: "3",
      content: "",
      usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
      response_metadata: { model: "m" },
    } as object as AIMessageFields),
  ],
  [
    "AIMessageChunk",
    new AIMessageChunk({
      id: "4",
      content: "a",
      tool_call_chunks: [{ id: "c", name: "search", args: '{"q":"a"}', index: 0, type: "tool_call_chunk" }],
    }),
  ],
  [
    "ToolMessage",
    new ToolMessage({ id: "5", content: "r", tool_call_id: "c", artifact: { n: 1 }, status: "error" }),
  ],
  ["SystemMessage", new SystemMessage({ id: "6", content: "be kind" })],
  ["ChatMessage", new ChatMessage({ id: "7", content: "x", role: "critic" })],
  ["FunctionMessage", new FunctionMessage({ id: "8", content: "x", name: "f" })],
  ["RemoveMessage", new RemoveMessage({ id: "9" })],
  ["HumanMessage", new Twice({ id: "10", content: "of a class of the user's own" })],
  ["HumanMessage", new HumanMessage({ id: "11", content: "half a pair: \ud83d" })],
  [
    "HumanMessage",
    new HumanMessage({ id: "12", content: "hi", example: true, rating: { stars: 5 } } as object),
  ],
  ["AIMessage", new AIMessage({ id: "13", content: "yes", rating: null } as object)],
];

describe("messages", () => {
  test.each(messages)("a %s comes back as one", (name, message) => {
    const back = again(message) as BaseMessage;
    const { [name as "HumanMessage"]: Class } = library.messages;
    expect(Object.getPrototypeOf(back)).toBe(Class.prototype);
    expect(back.toDict()).toEqual(message.toDict());
    expect(back.lc_kwargs).not.toBe(message.lc_kwargs);
  });

  test.each(messages)("a %s that nobody has changed is shown as it was stored", (_, message) => {
    const read = stored(serialise(message));
    const live = deserialise(library, read);
    expect(serialise(live)).toBe(read);
  });

  test("are shown in the form of the wire", () => {
    expect(onWire(serialise(messages[0]?.[1]))).toEqual({
      type: "human",
      content: "hi",
      name: "Ann",
      id: "1",
      additional_kwargs: {},
      response_metadata: {},
      example: false,
    });
    expect(onWire(stored(serialise(messages[1]?.[1])))).toEqual({
      type: "ai",
      content: [{ type: "text", text: "yes" }],
      id: "2",
      name: null,
      additional_kwargs: {},
      response_metadata: {},
      tool_calls: [call],
      invalid_tool_calls: [],
      usage_metadata: null,
      example: false,
    });
    expect(isObject(stored(serialise(messages[0]?.[1])))).toBe(true);
  });

  test("changed in place, they are shown anew, and the others of a list as before", () => {
    const [one, two] = [new AIMessage({ id: "1", content: "a" }), new AIMessage({ id: "2", content: "b" })];
    const list = [one, two];
    const before = serialise(list) as unknown[];
    expect(serialise(list)).toBe(before);
    two.content = "c";
    const after = serialise(list) as unknown[];
    expect(after[0]).toBe(before[0]);
    expect(onWire(after[1])).toMatchObject({ content: "c" });
    expect(onWire(before[1])).toMatchObject({ content: "b" });
    list.push(new AIMessage({ id: "3", content: "d" }));
    expect(serialise(list)).toHaveLength(3);
    expect(after).toHaveLength(2);
  });

  test("the list of content blocks that a message was made of is its content", () => {
    const made = new AIMessage({ id: "1", contentBlocks: [{ type: "text", text: "yes" }, call] });
    const shown = onWire(stored(serialise(made)));
    expect(shown).toMatchObject({ content: [{ type: "text", text: "yes" }, call], tool_calls: [call] });
    expect(shown).not.toHaveProperty("contentBlocks");
    expect(shown).not.toHaveProperty("content_blocks");
    expect((again(made) as BaseMessage).contentBlocks).toEqual(made.contentBlocks);
  });

  test("a plain object that looks like one stays a plain object", () => {
    const plain = { type: "human", content: "hi", id: "1" };
    expect(again(plain)).toEqual(plain);
    expect(again(plain)).not.toBeInstanceOf(BaseMessage);
  });
});

describe("other values", () => {
  const values: readonly (readonly [string, unknown])[] = [
    ["plain data", { a: [1, "b", null, { c: true }] }],
    ["undefined in a list", [1, undefined, 2]],
    ["numbers", [Number.NaN, Number.POSITIVE_INFINITY, -1.5]],
    ["bigint", 12345678901234567890n],
    ["Date", new Date(5)],
    [
      "Map",
      new Map<unknown, unknown>([
        ["a", 1],
        [{ k: 1 }, new Set([1])],
      ]),
    ],
    ["Set", new Set(["a", { b: 1 }])],
    ["RegExp", /a+/giu],
    ["bytes", new Uint8Array([1, 2, 255])],
    ["floats", new Float32Array([0.5, -2])],
    ["TypeError", new TypeError("no")],
    ["deep", { at: [{ m: new Map([["x", new Date(1)]]), text: "\udc00" }] }],
  ];

  test.each(values)("%s come back as they were", (_, value) => {
    const back = again({ value }) as { readonly value: unknown };
    expect(back.value).toEqual(value);
    expect(Object.getPrototypeOf(Object(back.value))).toBe(Object.getPrototypeOf(Object(value)));
  });

  test("JSON shows the nearest that it has", () => {
    const shown = stored(
      serialise([new Map([["a", 1]]), new Set([1]), new Date(0), 5n, Number.NaN, undefined, /a/u]),
    );
    expect(onWire(shown)).toEqual([{ a: 1 }, [1], "1970-01-01T00:00:00.000Z", "5", null, null, "/a/u"]);
    expect(onWire(serialise(new Error("no")))).toEqual({ name: "Error", message: "no" });
  });

  test("LangGraph's own: Send, with what it carries", () => {
    const send = again(new Send("work", { message: new HumanMessage("hi") })) as Send;
    expect(send).toBeInstanceOf(library.langgraph.Send);
    expect(send.node).toBe("work");
    expect((send.args as { message: unknown }).message).toBeInstanceOf(HumanMessage);
  });

  test.skipIf(isBelow(4))("LangGraph's own: DeltaSnapshot", () => {
    const snapshot = again(new DeltaSnapshot([new HumanMessage("hi")])) as DeltaSnapshot;
    expect(snapshot).toBeInstanceOf(library.checkpoint.DeltaSnapshot);
    expect((snapshot.value as unknown[])[0]).toBeInstanceOf(HumanMessage);
  });

  test("a class of LangGraph's that this version lacks comes back as plain data", () => {
    const older = { ...library, checkpoint: {}, langgraph: {} } as unknown as LangGraphLibrary;
    const kept = (kind: string, members: object) =>
      deserialise(older, new ClassInstance(kind, members as JsonObject));
    expect(kept("DeltaSnapshot", { value: [1] })).toEqual({ value: [1] });
    expect(kept("Overwrite", { __overwrite__: 1 })).toEqual({ __overwrite__: 1 });
  });

  test("a class that nobody knows comes back as plain data; functions and symbols are left out", () => {
    expect(again(new Point())).toEqual({ x: 1 });
    expect(again({ a: 1, f: () => 1, s: Symbol("s"), u: undefined })).toEqual({ a: 1 });
    expect(again(new URL("http://a/"))).toBe("http://a/");
  });

  test("what comes back is shared with nobody", () => {
    const read = stored(serialise({ list: [{ a: 1 }] })) as { list: { a: number }[] };
    const [one, two] = [deserialise(library, read), deserialise(library, read)] as [typeof read, typeof read];
    Object.assign(one.list[0] ?? {}, { a: 2 });
    expect(two.list[0]?.a).toBe(1);
    expect(read.list[0]?.a).toBe(1);
  });

  test("what cannot be stored is refused with its path", () => {
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    expect(() => serialise({ a: [circle] })).toThrow(/at \.a\[0\]: it contains itself$/);
    circle["self"] = { list: [{ above: circle }] };
    expect(() => serialise(circle)).toThrow(/at \.self\.list\[0\]\.above: it contains itself$/);
    const map = new Map<string, unknown>();
    map.set("self", map);
    expect(() => serialise({ map })).toThrow(
      /at \.map: it contains itself, or is nested deeper than \d+ levels$/,
    );
    let deep: unknown = 1;
    for (let i = 0; i < 300; i++) deep = { deeper: deep };
    expect(() => serialise({ deep })).toThrow(
      /at \.deep(\.deeper){1,12}[\w.]*\.\.\.: it contains itself, or is nested deeper than \d+ levels$/,
    );
    expect(() => serialise({ a: JSON.parse('{"__proto__":1}') as unknown })).toThrow(
      /at \.a\.__proto__: the key is reserved/,
    );
  });
});
