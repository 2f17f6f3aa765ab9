import { describe, expect, test } from "vitest";
import { ClassInstance } from "../../src/model/non-json-data.ts";
import { memorySizeOf } from "../../src/model/memory-size.ts";

class Point {
  readonly x = "x".repeat(1_000);
}

describe("the size of a value in memory", () => {
  test.each<[string, unknown, number]>([
    ["text by its characters", "four", 4],
    ["a number", 1, 8],
    ["null", null, 8],
    ["a list with its items", ["ab", 1], 16 + (8 + 2) + (8 + 8)],
    ["an object with its members", { a: "ab", b: { c: "d" } }, 16 + (8 + 2) + (8 + 16 + 8 + 1)],
    ["an object without a prototype", Object.assign(Object.create(null) as object, { a: "ab" }), 16 + 8 + 2],
    ["an instance that is kept as data", new ClassInstance("AIMessage", { a: "ab" }), 16 + 8 + 2],
    ["an object of another class, which is not looked into", new Point(), 8],
    ["an object that is written as something else", { a: "x".repeat(99), toJSON: () => "b" }, 8],
    ["an object with a member of that name", { toJSON: "b" }, 16 + 8 + 1],
  ])("%s", (_, value, size) => {
    expect(memorySizeOf(value)).toBe(size);
  });

  test("leaves out what is more than it may look at", () => {
    const list = Array.from({ length: 10 }, () => "abcd");
    expect(memorySizeOf(list)).toBe(16 + 10 * 12);
    expect(memorySizeOf(list, 4)).toBe(16 + 3 * 12);
    expect(memorySizeOf({ a: "abcd", b: "abcd", c: "abcd" }, 3)).toBe(16 + 2 * 12);
  });
});
