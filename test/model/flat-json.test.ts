import { describe, expect, test } from "vitest";
import { stringifyPlainJson } from "../../src/model/plain-json-writer.ts";

/** Seeded numbers from 0 to below `n`: Lehmer's generator. */
function dice(seed: number): (n: number) => number {
  let state = seed + 1;
  return (n) => {
    state = (state * 48_271) % 0x7fff_ffff;
    return state % n;
  };
}

function anything(roll: (n: number) => number, alphabet: string, depth: number): unknown {
  const text = (most: number) =>
    Array.from({ length: roll(most) }, () => alphabet[roll(alphabet.length)]).join("");
  switch (roll(depth > 0 ? 8 : 6)) {
    case 0:
      return null;
    case 1:
      return roll(2) === 0;
    case 2:
      return (roll(2_000_000) - 1_000_000) / 10 ** roll(9);
    case 3:
      return roll(300);
    case 4:
      return text(12);
    case 5:
      return text(80);
    case 6:
      return Array.from({ length: roll(5) }, () => anything(roll, alphabet, depth - 1));
    default:
      return Object.fromEntries(
        Array.from({ length: roll(5) }, () => [`name ${roll(1_000)}`, anything(roll, alphabet, depth - 1)]),
      );
  }
}

const LATIN = ' !"#/0azAZ[\\]{}:,\u007f\u00e9\u00ff\n\t\0\ud800';

test("the text is the runtime's", () => {
  const roll = dice(1);
  for (let i = 0; i < 3_000; i++) {
    const value = anything(roll, LATIN, 4);
    expect(stringifyPlainJson(value)).toBe(JSON.stringify(value));
  }
});

test("or there is none", () => {
  const roll = dice(2);
  const found = new Set<boolean>();
  for (let i = 0; i < 3_000; i++) {
    const value = anything(roll, `${LATIN}\u0100\u4f60\u2028`, 2);
    const text = stringifyPlainJson(value);
    found.add(text === undefined);
    if (text !== undefined) expect(text).toBe(JSON.stringify(value));
  }
  expect(found.size).toBe(2);
});

const LONG = "a long text, which the runtime writes: ";

test.each([
  ["numbers", [0, -0, 1, -1, 0.1, 1e21, 1e-7, 2 ** 53, -1.5e-300]],
  ["members without a value", { a: undefined, b: 1, c: undefined, d: 2 }],
  ["no members", [{}, [], { a: undefined }]],
  ["quotes, lines and half a pair", ['"', "\\", "\n\r\t\0\x1f", "\x7f", "\ud800"]],
  ["the same in a long text", [`${LONG}"`, `${LONG}\\`, `${LONG}\n`, `${LONG}\0`, `${LONG}\ud800`]],
  ["Latin-1", { text: "é ÿ \xa0", more: `${LONG}é` }],
  ["names", { "a name": 1, é: 2, "": 3 }],
])("%s", (_, value) => expect(stringifyPlainJson(value)).toBe(JSON.stringify(value)));

const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;
let deep: unknown = 1;
for (let i = 0; i < 70; i++) deep = [deep];

test.each([
  ["nothing", undefined],
  ["NaN", [Number.NaN]],
  ["a hole", [undefined]],
  ["a function", { f: () => 1 }],
  ["a bigint", [1n]],
  ["a date", new Date(0)],
  ["a map", { map: new Map() }],
  ["a toJSON", { toJSON: () => 1 }],
  ["a member named __proto__", JSON.parse('{"__proto__":1}') as unknown],
  ["one without a value", Object.defineProperty({}, "__proto__", { value: undefined, enumerable: true })],
  ["what is beyond Latin-1", "\u4f60\u597d"],
  ["the same in a name", { "\u4f60": 1 }],
  ["the same in a long text", `${LONG}\u4f60`],
  ["the same beside a quote", '"\u4f60'],
  ["a circle", cyclic],
  ["deep data", deep],
  ["a name that is long", { ["n".repeat(100)]: 1 }],
  ["a name with a quote", { 'a "name"': 1 }],
])("%s has no text", (_, value) => expect(stringifyPlainJson(value)).toBeUndefined());

describe("at the end of the room that there is", () => {
  const nest = (value: unknown): unknown => {
    let outer = value;
    for (let i = 0; i < 30; i++) outer = i % 2 === 0 ? [outer] : { "a name of 20 signs...": outer };
    return outer;
  };

  test.each([
    ["a text", (length: number) => "x".repeat(length)],
    ["one with quotes", (length: number) => '"'.repeat(length / 2)],
    ["many numbers", (length: number) => Array.from({ length: length / 8 }, (_, i) => i + 1e6)],
    ["many short texts", (length: number) => Array.from({ length: length / 8 }, () => "short")],
    ["many members", (length: number) => Array.from({ length: length / 8 }, () => ({ a: 1 }))],
  ])("%s is whole, or has no text", (_, make) => {
    const found = new Set<boolean>();
    for (let length = 63_000; length < 66_500; length += 10) {
      const value = nest(make(length));
      const text = stringifyPlainJson(value);
      found.add(text !== undefined);
      if (text !== undefined && text !== JSON.stringify(value)) expect.fail(`${length}: ${text.length}`);
    }
    expect([...found].sort()).toEqual([false, true]);
  });
});

test("a getter that comes here again spoils nothing", () => {
  const inner: unknown[] = [];
  const value = {
    a: 1,
    get b() {
      inner.push(stringifyPlainJson({ x: "y" }));
      return 2;
    },
    c: 3,
  };
  expect(stringifyPlainJson(value)).toBe('{"a":1,"b":2,"c":3}');
  expect(inner).toEqual([undefined]);
});

test("nor does one that throws", () => {
  const value = {
    get a(): number {
      throw new Error("not today");
    },
  };
  expect(() => stringifyPlainJson(value)).toThrow("not today");
  expect(stringifyPlainJson([1])).toBe("[1]");
});
