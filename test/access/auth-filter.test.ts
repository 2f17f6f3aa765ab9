import { describe, expect, test } from "vitest";
import { compileAuthFilter } from "../../src/access/auth-filter.ts";
import { permitsOf } from "../../src/model/permitted-resources.ts";

const matches = (filter: unknown, metadata: object): boolean =>
  permitsOf(compileAuthFilter(filter))?.(metadata as never) ?? true;

const or = { $or: [{ owner: "a" }, { shared: true }] };

describe("a filter and metadata", () => {
  test.each<readonly [filter: object, metadata: object, is: boolean]>([
    [{}, {}, true],
    // Equality.
    [{ owner: "a" }, { owner: "a", more: 1 }, true],
    [{ owner: "a" }, { owner: "b" }, false],
    [{ owner: "a" }, {}, false],
    [{ owner: "a" }, { owner: ["a"] }, false],
    [{ owner: { $eq: "a" } }, { owner: "a" }, true],
    [{ owner: { $eq: "a" } }, { owner: "b" }, false],
    [{ n: 1 }, { n: "1" }, false],
    [{ n: 0 }, { n: 0 }, true],
    [{ n: 0 }, { n: 1 }, false],
    [{ n: { $eq: 0 } }, { n: 1 }, false],
    [{ on: { $eq: false } }, { on: true }, false],
    [{ text: { $eq: "" } }, { text: "x" }, false],
    [{ owner: null }, { owner: null }, true],
    [{ owner: null }, {}, false],
    // Entries of lists.
    [{ members: { $contains: "a" } }, { members: ["b", "a"] }, true],
    [{ members: { $contains: "a" } }, { members: ["b"] }, false],
    [{ members: { $contains: "a" } }, { members: "a" }, false],
    [{ members: { $contains: "a" } }, {}, false],
    [{ members: { $contains: ["a", "b"] } }, { members: ["c", "b", "a"] }, true],
    [{ members: { $contains: ["a", "b"] } }, { members: ["a"] }, false],
    [{ members: { $contains: "a", $eq: "a" } }, { members: ["a"] }, false],
    // All conditions must hold.
    [{ org: "o", members: { $contains: "a" } }, { org: "o", members: ["a"] }, true],
    [{ org: "o", members: { $contains: "a" } }, { org: "p", members: ["a"] }, false],
    // One of several conditions must hold.
    [or, { owner: "a" }, true],
    [or, { owner: "b", shared: true }, true],
    [or, { owner: "b" }, false],
    [{ ...or, org: "o" }, { owner: "a" }, false],
    [{ $and: [{ a: 1 }, { b: 2 }] }, { a: 1, b: 2 }, true],
    [{ $and: [{ a: 1 }, { b: 2 }] }, { a: 1 }, false],
    [{ $and: [{ a: 1 }, { a: 2 }] }, { a: 2 }, false],
    // Names of members that every object inherits.
    [{ constructor: "a" }, {}, false],
    [{ toString: { $eq: "a" } }, {}, false],
    [JSON.parse('{"__proto__":"a"}') as object, {}, false],
    [JSON.parse('{"__proto__":"a"}') as object, JSON.parse('{"__proto__":"a"}') as object, true],
  ])("%j and %j: %s", (filter, metadata, is) => {
    expect(matches(filter, metadata)).toBe(is);
  });
});

describe("a filter that would let in more than its author believes is refused", () => {
  test.each<readonly [filter: unknown, why: string]>([
    [[{ owner: "a" }], "must be an object, not a list"],
    ["owner", "must be an object"],
    [7, "must be an object"],
    [{ owner: undefined }, '"owner" is of the type undefined'],
    [{ owner: Number.NaN }, '"owner" is of the type number'],
    [{ owner: ["a"] }, '"owner" is a list'],
    [{ owner: () => true }, '"owner" is of the type function'],
    [{ owner: {} }, '"owner" has no operator'],
    [{ owner: { id: "a" } }, 'no operator "id"'],
    [{ owner: { $ne: "a" } }, 'no operator "$ne"'],
    [{ owner: { $eq: undefined } }, '"owner".$eq is of the type undefined'],
    [{ owner: { $eq: { a: 1 } } }, '"owner".$eq is of the type object'],
    [{ owner: { $contains: undefined } }, '"owner".$contains holds of the type undefined'],
    [{ owner: { $contains: [] } }, '"owner".$contains must be a list with entries'],
    [{ owner: { $contains: [["a"]] } }, '"owner".$contains holds a list'],
    [{ $not: { owner: "a" } }, 'no operator "$not"'],
    [{ $or: [] }, "$or must be a list with entries"],
    [{ $or: { owner: "a" } }, "$or must be a list with entries"],
    [{ $or: [null] }, "must be an object, not null"],
    [new Map([["owner", "a"]]), "a filter must be a plain object, not of the class Map"],
    [new Error("not yours"), "a filter must be a plain object, not of the class Error"],
    [{ $and: [new Set(["a"])] }, "a filter must be a plain object, not of the class Set"],
    [{ owner: new Date(0) }, `the filter's "owner" must be a plain object, not of the class Date`],
  ])("%j", (filter, why) => {
    expect(() => compileAuthFilter(filter)).toThrow(why);
  });

  test("as is one that is too large", () => {
    const wide = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`a${i}`, i]));
    expect(() => compileAuthFilter(wide)).toThrow("more than 1000 conditions");
    const long = { a: { $contains: Array.from({ length: 1_001 }, (_, i) => i) } };
    expect(() => compileAuthFilter(long)).toThrow("more than 1000 conditions");
    let deep: object = { a: 1 };
    for (let level = 0; level < 10; level++) deep = { $or: [deep] };
    expect(() => compileAuthFilter(deep)).toThrow("more than 8 levels");
  });
});

test("an index gets what every match has, and no more", () => {
  const membersOf = (filter: object) => compileAuthFilter(filter).members;
  expect(membersOf({ owner: "a", n: { $eq: 0 }, x: null, list: { $contains: 1 } })).toEqual({
    owner: "a",
    n: 0,
  });
  expect(membersOf({ $and: [{ a: 1 }, { b: 2 }] })).toEqual({ a: 1, b: 2 });
  expect(membersOf(or)).toEqual({});
  const odd = membersOf(JSON.parse('{"__proto__":"a"}') as object);
  expect([Object.keys(odd), Object.getPrototypeOf(odd)]).toEqual([["__proto__"], Object.prototype]);
});
