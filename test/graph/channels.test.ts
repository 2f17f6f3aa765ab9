import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ephemeral, list, messages, reduce, untracked, value } from "../../src/index.ts";
import { schemaChannel } from "../../src/graph/channels/last-value.ts";
import type { ChannelRule } from "../../src/graph/channel.ts";
import type { Message } from "../../src/graph/message.ts";

/** Writes in normal form, as the engine reads them. */
const read = (rule: ChannelRule, ...writes: unknown[]) =>
  writes.map((write, i) => rule.read(write, "update.k", (n) => `minted-${i}-${n}`));
const update = (rule: ChannelRule, current: unknown, ...writes: unknown[]) =>
  rule.update(current, read(rule, ...writes), "k");
const set = (to: unknown) => ({ value: to, change: { kind: "set", value: to } });
const append = (to: readonly unknown[], keep: number) => ({
  value: to,
  change: { kind: "append", keep, items: to.slice(keep) },
});
const concurrent = expect.objectContaining({ code: "state.concurrent_update" });
const caught = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (thrown) {
    return thrown;
  }
};

const sum = reduce(z.number().default(0), (a, b) => a + b);
const longest = reduce(z.string(), (a, b) => (b.length > a.length ? b : a));
const count = reduce(0, (n: number, more: readonly string[]) => n + more.length);

test.each<[string, ChannelRule, unknown, unknown[], unknown]>([
  ["value: set", value(), undefined, [1], set(1)],
  ["value: set anew", value(), 1, [2], set(2)],
  ["value: null is a value", value(), 1, [null], set(null)],
  ["value: two writes", value(), 1, [2, 2], concurrent],
  ["schema: checked", schemaChannel(z.number(), "k"), undefined, [1], set(1)],
  [
    "schema: its output is stored",
    schemaChannel(z.object({ a: z.number().default(7) }), "k"),
    undefined,
    [{}],
    set({ a: 7 }),
  ],
  ["schema: two writes", schemaChannel(z.number(), "k"), 1, [2, 3], concurrent],
  ["ephemeral: set", ephemeral(), undefined, [1], set(1)],
  ["ephemeral: two writes", ephemeral(), undefined, [1, 2], concurrent],
  ["untracked: set", untracked(), undefined, [1], set(1)],
  ["untracked: two writes", untracked(), undefined, [1, 2], concurrent],
  ["list: append", list(), ["a"], [["b"], ["c", "d"]], append(["a", "b", "c", "d"], 1)],
  ["list: to none", list(), undefined, [["a"]], append(["a"], 0)],
  ["list: nothing", list(), ["a"], [[], []], undefined],
  ["reduce: fold in order", reduce("", (a: string, b: string) => a + b), "x", ["y", "z"], set("xyz")],
  ["reduce: by schema", sum, 3, [4], set(7)],
  ["reduce: without a default, the first write is the value", longest, undefined, ["ab", "c"], set("ab")],
  ["reduce: updates of another type", count, 1, [["a", "b"], ["c"]], set(4)],
])("%s", (_, rule, current, writes, expected) => {
  expect(caught(() => update(rule, current, ...writes))).toEqual(expected);
});

test.each<[string, ChannelRule, unknown]>([
  ["value()", value(), undefined],
  ["value(1)", value(1), 1],
  ["a schema", schemaChannel(z.string(), "k"), undefined],
  ["a schema with a default", schemaChannel(z.string().default("d"), "k"), "d"],
  ["an optional schema", schemaChannel(z.string().optional(), "k"), undefined],
  ["list()", list(), []],
  ["messages()", messages(), []],
  ["reduce with a default", sum, 0],
  ["reduce without", longest, undefined],
  ["ephemeral()", ephemeral(), undefined],
  ["untracked()", untracked(), undefined],
])("%s begins as expected", (_, rule, initial) => {
  expect(rule.initial).toEqual(initial);
});

test.each<[string, ChannelRule, unknown, string]>([
  ["value: a function", value(), () => 1, "update.k cannot be stored: it is a function"],
  ["value: NaN deep down", value(), { a: [Number.NaN] }, "update.k.a[0] cannot be stored"],
  ["value: __proto__", value(), JSON.parse('{"__proto__":1}'), "update.k.__proto__ cannot be stored"],
  ["schema: refused", schemaChannel(z.object({ a: z.number() }), "k"), { a: "x" }, "update.k.a: "],
  [
    "schema: output not storable",
    schemaChannel(z.any(), "k"),
    new Set(),
    "update.k cannot be stored: it is a Set",
  ],
  ["list: no array", list(), "abc", "update.k must be an array"],
  ["list: a bigint", list(), ["a", 1n], "update.k[1] cannot be stored"],
  ["reduce: refused", sum, "1", "update.k: "],
  ["ephemeral: refused", ephemeral(z.number()), "1", "update.k: "],
  ["untracked: refused", untracked(z.number()), "1", "update.k: "],
])("%s is refused, naming the path", (_, rule, write, message) => {
  expect(() => read(rule, write)).toThrow(message);
});

test("an untracked key may hold what cannot be stored", () => {
  const live = () => 1;
  expect(update(untracked(), undefined, live)).toMatchObject({ value: live });
});

test("a schema that answers later is refused", () => {
  const late = z.string().refine(async () => true);
  expect(() => read({ ...value(), read: ephemeral(late).read }, "x")).toThrow(/asynchronous|async/i);
});

test("a reducer whose result cannot be stored is refused, naming the key", () => {
  const bad = reduce<unknown>(z.unknown(), () => new Map());
  expect(() => update(bad, 1, 2)).toThrow("k cannot be stored: it is a Map");
});

test("the old list is untouched, the new one frozen", () => {
  const old = Object.freeze(["a"]);
  const changed = update(list(), old, ["b"]);
  expect(old).toEqual(["a"]);
  expect(Object.isFrozen(changed?.value)).toBe(true);
});

describe("messages", () => {
  const rule = messages();
  const human = (id: string, content = id) => ({ type: "human", content, id });
  const from = (...likes: unknown[]) => (update(rule, [], likes)?.value ?? []) as readonly Message[];
  const brief = (changed: ReturnType<typeof update>) => ({
    ids: ((changed?.value ?? []) as Message[]).map(({ id, content }) => `${id}:${String(content)}`),
    keep: changed?.change.kind === "append" ? changed.change.keep : undefined,
    items: changed?.change.kind === "append" ? changed.change.items.length : undefined,
  });
  const abc = () => from(human("a"), human("b"), human("c"));

  test.each<[string, unknown[], unknown]>([
    ["append", [[human("d")]], { ids: ["a:a", "b:b", "c:c", "d:d"], keep: 3, items: 1 }],
    ["a single message", [human("d")], { ids: ["a:a", "b:b", "c:c", "d:d"], keep: 3, items: 1 }],
    [
      "of two tasks",
      [[human("d")], [human("e")]],
      { ids: ["a:a", "b:b", "c:c", "d:d", "e:e"], keep: 3, items: 2 },
    ],
    ["replace in place", [[human("b", "B")]], { ids: ["a:a", "b:B", "c:c"], keep: 1, items: 2 }],
    [
      "replace twice: the last one holds",
      [[human("c", "1"), human("c", "2")]],
      { ids: ["a:a", "b:b", "c:2"], keep: 2, items: 1 },
    ],
    [
      "a new one twice: one message",
      [[human("d", "1"), human("d", "2")]],
      { ids: ["a:a", "b:b", "c:c", "d:2"], keep: 3, items: 1 },
    ],
    ["remove the last", [[{ type: "remove", id: "c" }]], { ids: ["a:a", "b:b"], keep: 2, items: 0 }],
    ["remove the first", [[{ type: "remove", id: "a" }]], { ids: ["b:b", "c:c"], keep: 0, items: 2 }],
    [
      "remove and add again",
      [[{ type: "remove", id: "b" }, human("b", "B")]],
      { ids: ["a:a", "b:B", "c:c"], keep: 1, items: 2 },
    ],
    [
      "remove all",
      [[human("x"), { type: "remove", id: "__remove_all__" }, human("d")]],
      { ids: ["d:d"], keep: 0, items: 1 },
    ],
    [
      "add and remove",
      [[human("d"), { type: "remove", id: "d" }]],
      { ids: ["a:a", "b:b", "c:c"], keep: 3, items: 0 },
    ],
  ])("%s", (_, writes, expected) => {
    expect(brief(update(rule, abc(), ...writes))).toEqual(expected);
  });

  test("nothing changes nothing", () => {
    expect(update(rule, abc(), [])).toBeUndefined();
  });

  test("removing what is not there is an error that names it", () => {
    expect(() => update(rule, abc(), [{ type: "remove", id: "x" }])).toThrow("no message with the id x");
  });

  test("two lists that grow out of one do not mix their ids", () => {
    const old = abc();
    const left = update(rule, old, [human("l")])?.value as readonly Message[];
    const right = update(rule, old, [human("r")])?.value as readonly Message[];
    expect([old, left, right].map((list) => ["a", "l", "r"].map((id) => rule.holds?.(list, id)))).toEqual([
      [true, false, false],
      [true, true, false],
      [true, false, true],
    ]);
    expect(brief(update(rule, left, [human("r")])).ids).toEqual(["a:a", "b:b", "c:c", "l:l", "r:r"]);
    expect(brief(update(rule, right, [human("r", "R")])).ids).toEqual(["a:a", "b:b", "c:c", "r:R"]);
  });

  test.each<[string, unknown, object]>([
    ["role user", { role: "user", content: "x" }, { type: "human", content: "x" }],
    ["role human", { role: "human", content: "x" }, { type: "human" }],
    ["role assistant", { role: "assistant", content: "x" }, { type: "ai", tool_calls: [] }],
    ["type ai", { type: "ai", content: null }, { type: "ai", content: "", usage_metadata: null }],
    ["role developer", { role: "developer", content: "x" }, { type: "system" }],
    ["a class name", { type: "AIMessageChunk", content: "x" }, { type: "ai" }],
    ["a text", "x", { type: "human", content: "x" }],
    ["a pair", ["ai", "x"], { type: "ai", content: "x" }],
    [
      "blocks",
      { role: "user", content: [{ type: "text", text: "x" }, "y"] },
      {
        content: [
          { type: "text", text: "x" },
          { type: "text", text: "y" },
        ],
      },
    ],
    ["a name", { role: "user", content: "x", name: "Ann" }, { name: "Ann" }],
    ["kwargs", { role: "user", content: "x", additional_kwargs: { k: 1 } }, { additional_kwargs: { k: 1 } }],
    [
      "a serialized class",
      {
        lc: 1,
        type: "constructor",
        id: ["langchain_core", "messages", "HumanMessage"],
        kwargs: { content: "x" },
      },
      { type: "human", content: "x" },
    ],
    [
      "a tool's answer",
      { role: "tool", content: "x", tool_call_id: "c1", status: "error" },
      { type: "tool", tool_call_id: "c1", artifact: {}, status: "error" },
    ],
    [
      "a tool call",
      { role: "ai", content: "", tool_calls: [{ name: "f", args: { a: 1 }, id: "c1" }] },
      { tool_calls: [{ name: "f", args: { a: 1 }, id: "c1", type: "tool_call" }] },
    ],
    [
      "a tool call of the OpenAI API",
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
      { content: "", tool_calls: [{ name: "f", args: { a: 1 }, id: "c1", type: "tool_call" }] },
    ],
  ])("%s becomes a full message", (_, like, expected) => {
    const [message] = from(like);
    expect(message).toMatchObject({
      additional_kwargs: {},
      response_metadata: {},
      name: null,
      example: false,
      ...expected,
    });
    expect(message?.id).toBe("minted-0-0");
    expect(Object.isFrozen(message)).toBe(true);
  });

  test.each<[unknown, string]>([
    [7, "update.k is no message"],
    [[7], "update.k[0] is no message"],
    [[{ content: "x" }], "update.k[0] has no type"],
    [[{ role: "robot" }], 'update.k[0] is of the type "robot"'],
    [[{ role: "user", content: 7 }], "update.k[0].content must be a string"],
    [[{ role: "user", content: [7] }], "update.k[0].content[0] must be a content block"],
    [
      [{ role: "user", content: "x", additional_kwargs: 7 }],
      "update.k[0].additional_kwargs must be an object",
    ],
    [[{ role: "tool", content: "x" }], "update.k[0].tool_call_id must be a string"],
    [[{ type: "remove" }], "update.k[0] removes a message, but has no id"],
    [[{ role: "ai", tool_calls: [{ args: {} }] }], "update.k[0].tool_calls[0].name must be a string"],
    [[{ role: "ai", response_metadata: { f: () => 1 } }], "update.k[0].response_metadata.f cannot be stored"],
  ])("%j is refused: %s", (likes, message) => {
    expect(() => read(rule, likes)).toThrow(message);
  });
});
