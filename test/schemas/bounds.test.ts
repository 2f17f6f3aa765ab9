import { expect, test } from "vitest";
import { contains } from "../../src/model/json.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { compileFilter } from "../../src/service/store/item-filter.ts";
import { parseObject } from "../../src/schemas/read-body.ts";
import { itemPutSchema } from "../../src/schemas/store-schemas.ts";
import { parseCronSearch } from "../../src/schemas/cron-request.ts";
import {
  assistantSearchSchema,
  historyReadSchema,
  runCreateSchema,
  threadCreateSchema,
  threadSearchSchema,
} from "../../src/schemas/request-schemas.ts";

const many = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

function refusal(work: () => unknown): ServiceError {
  try {
    work();
  } catch (cause) {
    if (cause instanceof ServiceError) return cause;
    throw cause;
  }
  throw new Error("it was not refused");
}

/** Milliseconds: the shortest of several runs, because other work slows single ones down. */
function shortest(work: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 3; i++) {
    const from = performance.now();
    work();
    least = Math.min(least, performance.now() - from);
  }
  return least;
}

const wrong: readonly (readonly [string, (n: number) => unknown])[] = [
  ["goto", (n) => runCreateSchema.parse({ assistant_id: "a", command: { goto: many(n, () => 1) } })],
  ["tags", (n) => runCreateSchema.parse({ assistant_id: "a", config: { tags: many(n, () => 1) } })],
  ["supersteps", (n) => threadCreateSchema.parse({ supersteps: many(n, () => 1) })],
];

test.each(wrong)("a body that is wrong everywhere is refused in a moment: %s", (name, parse) => {
  const { code, fields } = refusal(() => parse(300_000));
  expect(code).toBe("validation.failed");
  expect(fields.length).toBeLessThanOrEqual(20);
  expect(fields[0]?.at).toContain(name);
  // A former version took 3 to 14 s.
  expect(shortest(() => refusal(() => parse(300_000)))).toBeLessThan(1_000);
});

test("what is wrong far behind in a body is told, or at least refused", () => {
  const tags = many(1_000, (i) => (i === 999 ? 1 : "t"));
  expect(refusal(() => runCreateSchema.parse({ assistant_id: "a", config: { tags } })).fields).toMatchObject([
    { at: "config.tags[999]" },
  ]);
  const supersteps = many(1_000, (i) => ({
    updates: many(20, (j) => ({ as_node: i + j < 1_018 ? "n" : 1 })),
  }));
  expect(refusal(() => threadCreateSchema.parse({ supersteps })).code).toBe("validation.failed");
  const long = many(100_000, () => "t");
  expect(
    refusal(() => runCreateSchema.parse({ assistant_id: "a", config: { tags: long } })).fields,
  ).toMatchObject([{ at: "config.tags" }]);
});

test.each<[string, (metadata: object) => unknown]>([
  ["threads", (metadata) => threadSearchSchema.parse({ metadata })],
  ["values of threads", (values) => threadSearchSchema.parse({ values })],
  ["assistants", (metadata) => assistantSearchSchema.parse({ metadata })],
  ["a history", (metadata) => historyReadSchema.parse({ metadata })],
  ["crons", (metadata) => parseCronSearch({ metadata })],
])("a filter has a bound, which is named: %s", (_, search) => {
  search({ a: many(999, (i) => i) });
  expect(refusal(() => search({ a: many(1_000, (i) => i) })).fields[0]?.message).toContain("1000");
  let deep: object = {};
  for (let i = 0; i < 40; i++) deep = { deep };
  expect(refusal(() => search(deep)).fields[0]?.message).toContain("32 levels");
});

test("a list in a filter is looked for in another one in time that grows with both, not with their product", () => {
  const part = many(1_000, (i) => 2 * i);
  const few = many(20_000, (i) => i);
  expect(contains(few, part)).toBe(true);
  expect(contains(few, [...part, -1])).toBe(false);
  expect(
    contains(
      many(80_000, (i) => i),
      part,
    ),
  ).toBe(true);
  // A former version took seconds: 30,000 entries, the last of the other list first.
  const all = many(30_000, (i) => i);
  const from = performance.now();
  expect(contains(all, all.toReversed())).toBe(true);
  expect(performance.now() - from).toBeLessThan(1_000);
});

test("lists of objects that would be compared each with each for long are refused", () => {
  const whole = many(30_000, (i) => ({ a: 1, i }));
  const part = many(500, () => ({ a: 1, i: -1 }));
  expect(contains(whole, [{ i: 29_999 }])).toBe(true);
  expect(contains(whole, [{ a: 1, i: -1 }])).toBe(false);
  expect(refusal(() => contains(whole, [...many(400, (i) => ({ a: 1, i: 29_000 + i })), ...part])).code).toBe(
    "validation.failed",
  );
});

test("operands of a store's filter have a bound, and are looked up", () => {
  expect(
    refusal(() => compileFilter({ a: { $in: many(1_001, (i) => i) } }, "filter")).fields[0]?.message,
  ).toContain("1000");
  const two = { a: { $in: many(600, (i) => i) }, b: { $nin: many(600, (i) => i) } };
  expect(refusal(() => compileFilter(two, "filter")).fields[0]?.message).toContain("1000");
  const test = compileFilter({ a: { $in: [1, null, "x", { b: 1, c: [1, { e: 1, d: 2 }] }] } }, "filter");
  const fits = [1, null, "x", undefined, { c: [1, { d: 2, e: 1 }], b: 1 }];
  expect(fits.map((a) => test({ a }))).toEqual(fits.map(() => true));
  const others = [2, "1", true, [], {}, { b: 1 }, { b: 1, c: [{ e: 1, d: 2 }, 1] }];
  expect(others.map((a) => test({ a }))).toEqual(others.map(() => false));
  const none = compileFilter({ a: { $nin: [1, { b: 1 }] } }, "filter");
  expect([none({ a: 1 }), none({ a: { b: 1 } }), none({}), none({ a: { b: 2 } })]).toEqual([
    false,
    false,
    true,
    true,
  ]);
});

test.each<[string, (wide: object) => unknown]>([
  ["metadata", (metadata) => threadCreateSchema.parse({ metadata })],
  ["context", (context) => runCreateSchema.parse({ assistant_id: "a", context })],
  ["value", (value) => itemPutSchema.parse({ namespace: ["a"], key: "k", value })],
])("a wide object is not looked at member by member: %s", (_, parse) => {
  const wide = Object.fromEntries(many(100_000, (i) => [`k${i}`, i]));
  // A former version took 600 ms and more.
  expect(shortest(() => parse(wide))).toBeLessThan(100);
});

test.each<[string, (wide: object) => unknown]>([
  [
    "checkpoint_map",
    (map) => runCreateSchema.parse({ assistant_id: "a", checkpoint: { checkpoint_map: map } }),
  ],
  ["extract", (extract) => threadSearchSchema.parse({ extract })],
])("members of a map are counted before they are looked at: %s", (name, parse) => {
  let looked = 0;
  const wide = new Proxy(Object.fromEntries(many(100_000, (i) => [`k${i}`, ""])), {
    get(members, member) {
      looked++;
      return Reflect.get(members, member) as unknown;
    },
  });
  expect(refusal(() => parse(wide)).fields[0]?.at).toContain(name);
  // As many as are allowed, of 100,000.
  expect(looked).toBeLessThan(2_000);
  parse({ a: "" });
  expect(refusal(() => parse({ a: 1 })).fields[0]?.at).toContain(`${name}.a`);
});

const body = (text: string) => parseObject(new TextEncoder().encode(text));

test("a body has a bound on what takes long to parse: lists, objects and their members", () => {
  const lists = (count: number) => `{"input":[${"[],".repeat(count)}1]}`;
  body(lists(499_990));
  expect(refusal(() => body(lists(500_000)))).toMatchObject({
    code: "body.too_large",
    message: expect.stringContaining("500000 lists, objects and members of objects, in input"),
  });
  const wide = (count: number) => `{"a":{${many(count, (i) => `"${i}":0`).join(",")}}}`;
  body(wide(100_000));
  expect(refusal(() => body(wide(100_001)))).toMatchObject({
    code: "body.too_large",
    message: expect.stringContaining("100000 members, in a"),
  });
  const numbers = (count: number) => `{"input":[${"1,".repeat(count)}1]}`;
  body(numbers(2_000_000));
  expect(refusal(() => body(numbers(2_000_001)))).toMatchObject({
    code: "body.too_large",
    message: expect.stringContaining("2000000 members and list entries, in input"),
  });
  // Brackets within texts are not structure.
  body(`{"a":"${"[{:,".repeat(2_100_000)}"}`);
});

test("texts of a large body with an escape are looked through without a path for each", () => {
  const text = `{"input":["\\ud83d\\ude00",${"1,".repeat(1_900_000)}"\\ud83d"]}`;
  // A former version took seconds.
  expect(refusal(() => body(text)).fields).toMatchObject([{ at: "input[1900001]" }]);
  expect(shortest(() => refusal(() => body(text)))).toBeLessThan(2_000);
});
