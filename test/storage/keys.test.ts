import { expect, test } from "vitest";
import {
  parseThreadMark,
  escapeSegment,
  deletionMarkKey,
  unescapeSegment,
  prefixRange,
} from "../../src/storage/keys.ts";
import { encodeOrdinal, parseOrdinal } from "../../src/storage/sortable-numbers.ts";

const hostile = [
  "",
  "/",
  "a/b",
  "%",
  "%002f",
  "%2f",
  "\u0000",
  "!",
  "~",
  "é",
  "\ud800",
  "\ud801",
  "😀",
  "0",
  "A",
  "..",
  "\uffff",
];

test("no two strings are one segment, and none leaves its place", () => {
  const segments = hostile.map(escapeSegment);
  expect(new Set(segments).size).toBe(hostile.length);
  for (const one of segments) expect(one).toMatch(/^[0-9A-Za-z_.:|%-]*$/);
  expect(segments.map(unescapeSegment)).toEqual(hostile);
});

test("every key under a prefix is within its range, and no other one is", () => {
  for (const one of hostile) {
    const { gte, lt } = prefixRange(`t/${escapeSegment(one)}/`);
    for (const other of hostile) {
      for (const rest of hostile) {
        const key = `t/${escapeSegment(other)}/${escapeSegment(rest)}`;
        expect(key >= gte && key < lt).toBe(one === other);
      }
    }
  }
});

test("numbers sort as text", () => {
  const numbers = [
    0,
    1,
    9,
    10,
    35,
    36,
    37,
    1_295,
    1_296,
    65_536,
    2 ** 31,
    2 ** 32,
    2 ** 40,
    Number.MAX_SAFE_INTEGER,
  ];
  const texts = numbers.map(encodeOrdinal);
  expect([...texts].sort()).toEqual(texts);
  expect(texts.map(parseOrdinal)).toEqual(numbers);
});

test("a mark names its thread and run", () => {
  for (const tenant of hostile) {
    const key = { tenant, thread: "0199" };
    expect(parseThreadMark(deletionMarkKey(key, null))).toEqual({ key, run: null });
    expect(parseThreadMark(deletionMarkKey(key, "a/b"))).toEqual({ key, run: "a/b" });
  }
});

test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 54])("%d has no place in an order", (n) => {
  expect(() => encodeOrdinal(n)).toThrow(RangeError);
});
