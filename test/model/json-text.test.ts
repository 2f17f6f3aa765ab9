import { describe, expect, test } from "vitest";
import { toStorable } from "../../src/model/json.ts";
import { toJsonText } from "../../src/model/stringify-json.ts";
import { ClassInstance, NonJsonValue } from "../../src/model/non-json-data.ts";

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { value };
  return value;
}

const shared = { one: "object" };

describe("the text of a value is that of its storable copy", () => {
  test.each([
    ["nothing", undefined],
    ["null", null],
    ["a string", 'line\nof "text" \u2028 and half a pair \ud800'],
    ["numbers", [0, -0, 1.5, -1e300, 2 ** 53]],
    ["an object", { b: 1, a: [true, false, null, { deep: "x" }] }],
    ["members without a value", { a: undefined, b: [undefined, 1] }],
    ["an object without a prototype", Object.assign(Object.create(null) as object, { a: 1 })],
    ["one object in two places", { a: shared, b: [shared] }],
    ["a date", { at: new Date(0) }],
    ["a toJSON of its own", { toJSON: () => ({ in: "its place" }) }],
    ["a member named toJSON", { toJSON: "just a member" }],
    ["what is kept as data", { kept: new ClassInstance("AIMessage", { content: "hi" }) }],
    ["a kept value", [new NonJsonValue({ kind: "number", data: "NaN" })]],
    ["deep data", nested(250)],
  ])("%s", (_, value) => {
    expect(toJsonText(value, "data")).toBe(JSON.stringify(toStorable(value, "data")));
  });

  test("it is one line", () => {
    expect(toJsonText({ text: "a\nb\rc\0" }, "data")).not.toMatch(/[\n\r\0]/);
  });
});

describe("what has no storable copy has no text", () => {
  const circle: { self?: unknown } = {};
  circle.self = circle;
  test.each([
    ["a function", { f: () => 1 }],
    ["NaN", [Number.NaN]],
    ["an invalid date", { at: new Date(Number.NaN) }],
    ["a bigint", { deep: [1n] }],
    ["a map", { map: new Map() }],
    ["a circle", circle],
    ["a member named __proto__", JSON.parse('{"a":{"__proto__":1}}') as unknown],
    ["too deep", nested(300)],
  ])("%s", (_, value) => {
    let refusal: unknown;
    try {
      toStorable(value, "data");
    } catch (thrown) {
      refusal = thrown;
    }
    expect(refusal).toMatchObject({ code: "value.unstorable" });
    expect(() => toJsonText(value, "data")).toThrow((refusal as Error).message);
  });
});
