import { expect, test } from "vitest";
import { isSmallJson, jsonPieces } from "../../src/codec/large-json.ts";
import { memorySizeOf } from "../../src/model/memory-size.ts";
import { ClassInstance, NonJsonValue } from "../../src/model/non-json-data.ts";

const many = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));
const members = (count: number) => Object.fromEntries(many(count, (i) => [`m${i}`, { i, t: `"${i}"\n` }]));
const date = new NonJsonValue({ kind: "date", data: 0 });
const none = new NonJsonValue({ kind: "undefined", data: null });
const deep = (levels: number, value: unknown): unknown =>
  levels === 0 ? value : [1, { a: deep(levels - 1, value) }];

const large: readonly (readonly [string, unknown])[] = [
  ["a text", "x".repeat(1_000_000)],
  ["a text of escapes", '"\\\n\u0001'.repeat(100_000)],
  ["a text of pairs", `a${"😀".repeat(200_000)}`],
  ["a text of halves of pairs", `a${"\ud83d".repeat(200_000)}`],
  ["numbers", many(200_000, (i) => i / 3)],
  ["empty lists", many(200_000, () => [])],
  ["objects", many(50_000, (i) => ({ i, b: [true, null] }))],
  ["an object with many members", members(50_000)],
  [
    "an object of large members",
    { a: "x".repeat(200_000), b: members(20_000), c: 1, d: many(20_000, (i) => i) },
  ],
  [
    "members without a form in JSON",
    { a: undefined, b: "x".repeat(200_000), c: none, d: () => 1, e: many(9_000, () => undefined) },
  ],
  [
    "one that is deep",
    deep(
      100,
      many(50_000, (i) => `${i}`),
    ),
  ],
  [
    "objects of other classes",
    new ClassInstance("c", {
      at: date,
      b: new ClassInstance("d", { t: "x".repeat(200_000) }),
      c: many(20_000, () => date),
    }),
  ],
  ["a value with a form of its own", [{ toJSON: () => ({ t: "x".repeat(200_000) }) }, many(20_000, () => 1)]],
];

test.each(large)("a large value is written as JSON.stringify does, in pieces: %s", (_, value) => {
  const pieces = [...jsonPieces(value)];
  expect(isSmallJson(value)).toBe(false);
  expect(pieces.length).toBeGreaterThan(1);
  expect(pieces.join("") === JSON.stringify(value)).toBe(true);
});

test("no piece is much longer than 64 KiB, but for escapes", () => {
  const value = { t: "x".repeat(3_000_000), l: many(200_000, (i) => i), m: members(50_000) };
  expect(Math.max(...Array.from(jsonPieces(value), ({ length }) => length))).toBeLessThan(160 * 1024);
});

test.each([null, true, 1, "", "text", [], {}, { a: [1, { b: "c" }] }, date, none, undefined])(
  "a small value is one piece: %j",
  (value) => {
    expect(isSmallJson(value)).toBe(true);
    expect([...jsonPieces(value)]).toEqual([JSON.stringify(value) ?? "null"]);
  },
);

test("the size of a value is told about", () => {
  expect(memorySizeOf({ a: "x".repeat(1_000_000) })).toBeGreaterThan(1_000_000);
  expect(memorySizeOf(many(50_000, (i) => i))).toBeGreaterThan(400_000);
  expect(memorySizeOf("x")).toBeLessThan(100);
});
