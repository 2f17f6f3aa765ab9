import { beforeEach, describe, expect, test } from "vitest";
import type { FoundItem, StoreOp } from "../../src/model/store-item.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import type { Store, StoreCaller } from "../../src/ports/store.ts";
import { createStore, DEFAULT_STORE_POLICY, type StorePolicy } from "../../src/service/store/store.ts";
import { ItemSweeper } from "../../src/service/store/item-sweeper.ts";
import { textsAtPaths } from "../../src/service/store/indexed-texts.ts";
import type { Catalog } from "../../src/ports/catalog.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { Timers } from "../http/support.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { deps, turns } from "../storage/support.ts";

const clock = new SimulatedClock();
const MINUTE = 60_000;
const me: StoreCaller = { tenant: "_" };
let catalog: Catalog;
let store: Store;
let timers: Timers;
let warned: string[];

const open = (policy: Partial<StorePolicy> = {}) => {
  const logger = { ...deps.logger, warn: (message: string) => void warned.push(message) };
  return createStore({
    items: catalog.items,
    clock,
    scheduler: timers,
    logger,
    policy: { ...DEFAULT_STORE_POLICY, ...policy },
    budget: new TimeBudget(clock, deps.scheduler),
  });
};

beforeEach(async () => {
  ({ catalog } = await openStorage({ kind: "memory" }, { ...deps, clock }));
  timers = new Timers();
  warned = [];
  store = open();
});

const put = async (namespace: string[], key: string, value: JsonObject = {}, more: object = {}) => {
  await store.batch(me, [{ kind: "put", namespace, key, value, ...more }]);
  clock.advance(1);
};
const get = async (namespace: string[], key: string, more: object = {}) =>
  (await store.batch(me, [{ kind: "get", namespace, key, ...more }]))[0];
const search = async (prefix: string[], more: object = {}): Promise<readonly FoundItem[]> =>
  (await store.batch(me, [{ kind: "search", namespace_prefix: prefix, ...more }]))[0];
const keys = async (prefix: string[], more: object = {}) =>
  (await search(prefix, more)).map(({ key }) => key);
const spaces = async (more: object = {}) =>
  (await store.batch(me, [{ kind: "namespaces", ...more }]))[0].map((labels) => labels.join("/"));

describe("a filter", () => {
  const people: { readonly [key: string]: JsonObject } = {
    ann: { age: 30, name: "Ann", tags: ["a", "b"], at: { city: "Rome", zip: 1 } },
    bob: { age: 40, name: "Bob", tags: [], at: { city: "Oslo" } },
    cy: { age: "30", name: null, at: "Rome" },
    dee: { toString: 1 },
  };
  beforeEach(async () => {
    for (const [key, value] of Object.entries(people)) await put(["people"], key, value);
  });

  test.each<[filter: JsonObject, found: string]>([
    [{}, "ann bob cy dee"],
    [{ age: 30 }, "ann"],
    [{ age: "30" }, "cy"],
    [{ age: { $eq: 30 } }, "ann"],
    [{ age: { $ne: 30 } }, "bob cy dee"],
    [{ age: { $gt: 30 } }, "bob"],
    [{ age: { $gte: 30 } }, "ann bob"],
    [{ age: { $lt: 40 } }, "ann"],
    [{ age: { $lte: 40 } }, "ann bob"],
    [{ age: { $gte: 30, $lt: 40 } }, "ann"],
    [{ age: { $gt: "2" } }, "cy"],
    [{ name: { $gt: "Ann" } }, "bob"],
    [{ age: { $in: [40, "30"] } }, "bob cy"],
    [{ age: { $nin: [40, "30"] } }, "ann dee"],
    [{ age: { $in: [] } }, ""],
    [{ name: null }, "cy dee"],
    [{ name: { $ne: null } }, "ann bob"],
    [{ tags: ["a", "b"] }, "ann"],
    [{ tags: ["b", "a"] }, ""],
    [{ tags: { $eq: [] } }, "bob"],
    [{ at: { city: "Rome" } }, "ann"],
    [{ at: { zip: { $gte: 1 } } }, "ann"],
    [{ at: { $eq: { zip: 1, city: "Rome" } } }, "ann"],
    [{ at: { $eq: { city: "Rome" } } }, ""],
    [{ age: 30, name: "Bob" }, ""],
    [{ toString: 1 }, "dee"],
    [{ valueOf: { $ne: null } }, ""],
    [{ constructor: { name: "Object" } }, ""],
    [JSON.parse('{"__proto__": {"toString": null}}') as JsonObject, ""],
  ])("%j finds: %s", async (filter, found) => {
    expect((await keys(["people"], { filter })).toSorted().join(" ")).toBe(found);
  });

  test.each<[filter: unknown, at: string]>([
    [{ age: { $foo: 1 } }, "filter.age.$foo"],
    [{ age: { $gt: null } }, "filter.age.$gt"],
    [{ age: { $in: 3 } }, "filter.age.$in"],
    [{ age: { $eq: 3, plain: 4 } }, "filter.age.plain"],
    [{ $or: [] }, ""],
    [[], "filter"],
  ])("%j is refused at %s, or asks for a member of that name", async (filter, at) => {
    const asked = search(["people"], { filter });
    if (at === "") return expect(await asked).toEqual([]);
    await expect(asked).rejects.toMatchObject({ code: "validation.failed", fields: [{ at }] });
  });
});

describe("what is refused", () => {
  const place = { namespace: ["a"], key: "k" };
  const deep = Array.from({ length: 33 }, () => "a");
  test.each<[what: string, op: unknown, code: string, at: string]>([
    [
      "no namespace to put in",
      { kind: "put", ...place, namespace: [], value: {} },
      "store.namespace",
      "namespace",
    ],
    ["none to delete from", { kind: "delete", key: "k", namespace: [] }, "store.namespace", "namespace"],
    ["a namespace that is none", { kind: "get", key: "k", namespace: "a" }, "validation.failed", "namespace"],
    ["an empty label", { kind: "get", key: "k", namespace: ["a", ""] }, "validation.failed", "namespace[1]"],
    [
      "a period",
      { kind: "put", key: "k", namespace: ["u.x"], value: {} },
      "validation.failed",
      "namespace[0]",
    ],
    [
      "a label that is no text",
      { kind: "get", key: "k", namespace: [1] },
      "validation.failed",
      "namespace[0]",
    ],
    [
      "a long label",
      { kind: "get", key: "k", namespace: ["a".repeat(257)] },
      "validation.failed",
      "namespace[0]",
    ],
    ["many labels", { kind: "get", key: "k", namespace: deep }, "validation.failed", "namespace"],
    [
      "the platform's own",
      { kind: "put", ...place, namespace: ["langgraph"], value: {} },
      "validation.failed",
      "namespace[0]",
    ],
    ["an empty key", { kind: "get", namespace: ["a"], key: "" }, "validation.failed", "key"],
    [
      "a long key",
      { kind: "put", namespace: ["a"], key: "k".repeat(1_025), value: {} },
      "validation.failed",
      "key",
    ],
    ["no value", { kind: "put", ...place }, "validation.failed", "value"],
    ["a value that is no object", { kind: "put", ...place, value: [1] }, "validation.failed", "value"],
    ["a function", { kind: "put", ...place, value: { f: () => 1 } }, "validation.failed", "value"],
    [
      "a large value",
      { kind: "put", ...place, value: { x: "é".repeat(524_288) } },
      "validation.failed",
      "value",
    ],
    ["no time to live", { kind: "put", ...place, value: {}, ttl: 0 }, "validation.failed", "ttl"],
    ["a text to live", { kind: "put", ...place, value: {}, ttl: "1" }, "validation.failed", "ttl"],
    [
      "an index that is true",
      { kind: "put", ...place, value: {}, index: true },
      "validation.failed",
      "index",
    ],
    [
      "an empty path",
      { kind: "put", ...place, value: {}, index: ["a", ""] },
      "validation.failed",
      "index[1]",
    ],
    ["a limit of 0", { kind: "search", namespace_prefix: [], limit: 0 }, "validation.failed", "limit"],
    ["a limit over 1000", { kind: "namespaces", limit: 1_001 }, "validation.failed", "limit"],
    ["half an offset", { kind: "search", namespace_prefix: [], offset: 0.5 }, "validation.failed", "offset"],
    [
      "a bad prefix",
      { kind: "search", namespace_prefix: ["a."] },
      "validation.failed",
      "namespace_prefix[0]",
    ],
    ["a bad suffix", { kind: "namespaces", suffix: [""] }, "validation.failed", "suffix[0]"],
    ["a depth of 0", { kind: "namespaces", max_depth: 0 }, "validation.failed", "max_depth"],
    ["an unknown operation", { kind: "drop" }, "validation.failed", "kind"],
  ])("%s", async (_, op, code, at) => {
    const asked = store.batch(me, [op as StoreOp]);
    await expect(asked).rejects.toMatchObject({ code });
    await expect(asked).rejects.toMatchObject({ fields: [expect.objectContaining({ at })] });
  });

  test("of several operations it says which, and makes none", async () => {
    const asked = store.batch(me, [
      { kind: "put", ...place, value: {} },
      { kind: "put", ...place, key: "", value: {} },
    ]);
    await expect(asked).rejects.toMatchObject({ fields: [{ at: "ops[1].key" }] });
    expect(await get(["a"], "k")).toBeNull();
  });

  test("what fits to the last character is taken", async () => {
    const namespace = deep.slice(1).map(() => "a".repeat(256));
    const key = "é".repeat(1_024);
    await put(namespace, key, { x: "y".repeat(1024 * 1024 - 8) });
    expect(await get(namespace, key)).toMatchObject({ namespace, key });
  });
});

describe("a batch", () => {
  test("reads what was there, writes all together, the last write of an item counts", async () => {
    await put(["a"], "k", { n: 1 });
    const [before, , , found, spaces] = await store.batch(me, [
      { kind: "get", namespace: ["a"], key: "k" },
      { kind: "put", namespace: ["a"], key: "k", value: { n: 2 } },
      { kind: "put", namespace: ["a"], key: "k", value: { n: 3 } },
      { kind: "search", namespace_prefix: ["a"] },
      { kind: "namespaces" },
      { kind: "delete", namespace: ["a"], key: "none" },
    ]);
    expect(before?.value).toEqual({ n: 1 });
    expect(found.map(({ value }) => value)).toEqual([{ n: 1 }]);
    expect(spaces).toEqual([["a"]]);
    expect((await get(["a"], "k"))?.value).toEqual({ n: 3 });
  });

  test("a caller who may not write any more writes nothing", async () => {
    const check = () => {
      throw new Error("over");
    };
    const write = store.batch({ ...me, check }, [{ kind: "put", namespace: ["a"], key: "k", value: {} }]);
    await expect(write).rejects.toThrow("over");
    expect(await get(["a"], "k")).toBeNull();
  });
});

describe("a caller with a permission", () => {
  const alice: StoreCaller = {
    tenant: "_",
    permission: { members: { owner: "alice" }, allows: (read) => read("owner") === "alice" },
  };
  const put = (owner: string): StoreOp => ({ kind: "put", namespace: ["a"], key: "k", value: { owner } });
  const remove: StoreOp = { kind: "delete", namespace: ["a"], key: "k" };

  test.each<[string, StoreOp]>([
    ["replace", put("alice")],
    ["delete", remove],
  ])("does not %s an item of another that is being written", async (_, op) => {
    await store.batch(me, [put("alice")]);
    const theirs = store.batch(me, [put("bob"), { ...put("bob"), key: "other" }]);
    await expect(store.batch(alice, [op])).rejects.toThrow("Item not found");
    await theirs;
    expect((await get(["a"], "k"))?.value).toEqual({ owner: "bob" });
  });

  test.each<[string, StoreOp]>([
    ["replace", put("alice")],
    ["delete", remove],
  ])("does not %s an item that another has written since it was checked", async (_, op) => {
    await store.batch(me, [put("alice")]);
    let theirs: Promise<unknown> | undefined;
    const { items } = catalog;
    const find: typeof items.find = async (...asked) => {
      const found = await items.find(...asked);
      theirs ??= store.batch(me, [{ ...put("bob"), key: "other" }, put("bob")]);
      await turns(50);
      return found;
    };
    // Reads use `#` members of the storage, so its other methods are called on it.
    catalog = {
      ...catalog,
      items: new Proxy(items, {
        get: (target, name) => {
          if (name === "find") return find;
          const member: unknown = Reflect.get(target, name);
          return typeof member === "function" ? (member.bind(target) as unknown) : member;
        },
      }),
    };
    store = open();
    await store.batch(alice, [op]);
    await theirs;
    catalog = { ...catalog, items };
    store = open();
    expect((await get(["a"], "k"))?.value).toEqual({ owner: "bob" });
  });

  test("waits for writes in the order in which they came", async () => {
    const written = [put("alice"), put("bob"), put("alice"), put("alice")].map((op, i) =>
      store.batch(i === 1 ? me : alice, [op]).then(
        () => true,
        () => false,
      ),
    );
    expect(await Promise.all(written)).toEqual([true, true, false, false]);
    expect((await get(["a"], "k"))?.value).toEqual({ owner: "bob" });
  });
});

describe("a search", () => {
  test("lists the last updated first, page by page", async () => {
    for (const key of ["a", "b", "c", "d", "e"]) await put(["s", key], key, { even: "bd".includes(key) });
    await put(["s", "b"], "b", { even: true });
    await put(["other"], "x");
    expect(await keys(["s"])).toEqual(["b", "e", "d", "c", "a"]);
    expect(await keys(["s"], { limit: 2 })).toEqual(["b", "e"]);
    expect(await keys(["s"], { limit: 2, offset: 3 })).toEqual(["c", "a"]);
    expect(await keys(["s"], { limit: 2, offset: 5 })).toEqual([]);
    expect(await keys(["s"], { filter: { even: false }, limit: 2, offset: 1 })).toEqual(["c", "a"]);
    expect(await keys([])).toEqual(["x", "b", "e", "d", "c", "a"]);
    // Nothing is indexed, so a query makes no difference.
    expect(await search(["s"], { query: "a", limit: 1 })).toMatchObject([{ key: "b", score: null }]);
    expect((await store.batch({ tenant: "other" }, [{ kind: "search", namespace_prefix: [] }]))[0]).toEqual(
      [],
    );
  });

  test("an answer has a size", async () => {
    const value = { x: "y".repeat(1_000_000) };
    for (let i = 0; i < 68; i++) await put(["large"], `k${i}`, value);
    await expect(search(["large"], { limit: 100 })).rejects.toMatchObject({ fields: [{ at: "limit" }] });
    expect(await search(["large"], { limit: 60 })).toHaveLength(60);
  });
});

describe("namespaces", () => {
  beforeEach(async () => {
    for (const path of ["a/b/c", "a/b/d", "a/x/c", "b/b/c", "a", "a/b/c/e"]) await put(path.split("/"), "k");
  });
  test.each<[asked: object, found: string]>([
    [{}, "a a/b/c a/b/c/e a/b/d a/x/c b/b/c"],
    [{ prefix: ["a"] }, "a a/b/c a/b/c/e a/b/d a/x/c"],
    [{ prefix: ["a", "b"] }, "a/b/c a/b/c/e a/b/d"],
    [{ prefix: [] }, "a a/b/c a/b/c/e a/b/d a/x/c b/b/c"],
    [{ suffix: ["c"] }, "a/b/c a/x/c b/b/c"],
    [{ prefix: ["*", "b"] }, "a/b/c a/b/c/e a/b/d b/b/c"],
    [{ prefix: ["a", "*", "c"] }, "a/b/c a/b/c/e a/x/c"],
    [{ prefix: ["a"], suffix: ["b", "*"] }, "a/b/c a/b/d"],
    [{ max_depth: 1 }, "a b"],
    [{ max_depth: 2 }, "a a/b a/x b/b"],
    [{ max_depth: 2, suffix: ["c"] }, "a/b a/x b/b"],
    [{ max_depth: 2, limit: 2, offset: 1 }, "a/b a/x"],
    [{ suffix: ["c"], limit: 1, offset: 1 }, "a/x/c"],
    [{ prefix: ["nobody"] }, ""],
  ])("%j: %s", async (asked, found) => {
    expect((await spaces(asked)).join(" ")).toBe(found);
  });
});

describe("a time to live", () => {
  test("is the item's own, or the configuration's; null is for ever", async () => {
    store = open({ defaultTtl: 10 });
    await put(["t"], "default");
    await put(["t"], "own", {}, { ttl: 0.5 });
    await put(["t"], "ever", {}, { ttl: null });
    clock.advance(MINUTE / 2 - 3);
    expect(await keys(["t"], { refresh_ttl: false })).toEqual(["ever", "own", "default"]);
    clock.advance(1);
    expect(await get(["t"], "own", { refresh_ttl: false })).toBeNull();
    expect(await keys(["t"], { refresh_ttl: false })).toEqual(["ever", "default"]);
    clock.advance(10 * MINUTE);
    expect(await keys(["t"])).toEqual(["ever"]);
    expect(await spaces()).toEqual(["t"]);
  });

  test.each([
    ["unless told otherwise", true, {}, true],
    ["not when told so", true, { refresh_ttl: false }, false],
    ["not when the server is", false, {}, false],
    ["when told so", false, { refresh_ttl: true }, true],
  ])("begins anew with a read: %s", async (_, refreshOnRead, how, lives) => {
    store = open({ refreshOnRead });
    await put(["t"], "got", {}, { ttl: 1 });
    await put(["t"], "found", {}, { ttl: 1 });
    clock.advance(MINUTE - 10);
    await get(["t"], "got", how);
    await search(["t"], { ...how, filter: { none: null }, limit: 1 });
    clock.advance(20);
    expect(await keys(["t"], { refresh_ttl: false })).toEqual(lives ? ["found", "got"] : []);
  });

  test("what has expired is swept away, pass after pass", async () => {
    const sweeper = new ItemSweeper({
      items: catalog.items,
      clock,
      scheduler: timers,
      logger: deps.logger,
      interval: MINUTE,
    });
    await Promise.all(Array.from({ length: 450 }, (_, i) => put(["t"], `${i}`, {}, { ttl: 1 })));
    await put(["t"], "later", {}, { ttl: 5 });
    sweeper.start();
    timers.advance(MINUTE);
    await turns(50);
    expect(await catalog.items.expiring(1_000)).toHaveLength(451);
    clock.advance(MINUTE);
    timers.advance(MINUTE);
    // The committer decides over how many turns the acknowledgements of a batch are spread.
    for (let i = 0; i < 5_000 && (await catalog.items.expiring(2)).length > 1; i++) await turns(1);
    expect((await catalog.items.expiring(1_000)).map(({ key }) => key)).toEqual(["later"]);
    await sweeper.stop();
    clock.advance(10 * MINUTE);
    timers.advance(10 * MINUTE);
    await turns(50);
    expect(await catalog.items.expiring(1_000)).toHaveLength(1);
  });
});

describe("meaning", () => {
  /** An embedder that counts letters. */
  const letters = (texts: string[]) =>
    texts.map((text) => ["a", "b", "c"].map((letter) => text.split(letter).length - 1));
  const index = { embed: letters as (texts: string[]) => unknown, dims: 3, fields: ["text"] };

  test("the nearest come first with their scores, what is not indexed last", async () => {
    store = open({ index });
    await put(["m"], "a", { text: "aaa" });
    await put(["m"], "ab", { text: "ab" });
    await put(["m"], "b", { text: "bb", kind: "x" });
    await put(["m"], "none", { other: "a" });
    await put(["m"], "not", { text: "a" }, { index: false });
    await put(["m"], "own", { text: "c", title: "aac" }, { index: ["title"] });
    const found = await search(["m"], { query: "a" });
    expect(found.map(({ key, score }) => [key, score && Math.round(score * 100)])).toEqual([
      ["a", 100],
      ["own", 89],
      ["ab", 71],
      ["b", 0],
      ["not", null],
      ["none", null],
    ]);
    expect(await keys(["m"], { query: "a", limit: 2, offset: 1 })).toEqual(["own", "ab"]);
    expect(await keys(["m"], { query: "a", filter: { kind: "x" } })).toEqual(["b"]);
    await put(["m"], "a", { text: "c" });
    expect(await keys(["m"], { query: "a", limit: 1 })).toEqual(["own"]);
  });

  test("an item with several texts is as near as the nearest of them", async () => {
    store = open({ index: { ...index, fields: ["parts[*].text"] } });
    await put(["m"], "both", { parts: [{ text: "b" }, { text: "a" }] });
    await put(["m"], "mixed", { parts: [{ text: "aab" }] });
    expect(await keys(["m"], { query: "a" })).toEqual(["both", "mixed"]);
  });

  test.each<[what: string, embed: (texts: string[]) => unknown, message: RegExp]>([
    [
      "throws",
      () => {
        throw new Error("no quota");
      },
      /embedder of the store failed: no quota/,
    ],
    ["rejects", () => Promise.reject(new Error("no quota")), /no quota/],
    ["gives too few", () => [], /1 vectors/],
    ["gives other dimensions", () => [[1, 2]], /vectors of 3 numbers/],
    ["gives no numbers", () => [["1", "2", "3"]], /vectors of 3 numbers/],
    ["gives NaN", () => [[1, 2, Number.NaN]], /not finite/],
  ])("an embedder that %s is told of, and nothing is lost", async (_, embed, message) => {
    store = open({ index });
    await put(["m"], "k", { text: "a" });
    store = open({ index: { ...index, embed } });
    const failed = store.batch(me, [
      { kind: "put", namespace: ["m"], key: "other", value: {} },
      { kind: "put", namespace: ["m"], key: "k", value: { text: "b" } },
    ]);
    await expect(failed).rejects.toMatchObject({
      code: "store.embedding",
      message: expect.stringMatching(message),
    });
    await expect(search(["m"], { query: "a" })).rejects.toMatchObject({ code: "store.embedding" });
    store = open({ index });
    expect(await search(["m"], { query: "a" })).toMatchObject([{ key: "k", value: { text: "a" }, score: 1 }]);
  });

  test("an embedder that does not answer is given up", async () => {
    store = open({ index: { ...index, embed: () => new Promise(() => undefined) } });
    const failed = search(["m"], { query: "a" }).catch(String);
    await turns();
    timers.advance(60_000);
    expect(await failed).toContain("no answer in 60 s");
  });

  test("a writer that is replaced while the embedder works writes nothing", async () => {
    let answer: (vectors: number[][]) => void = () => undefined;
    store = open({ index: { ...index, embed: () => new Promise((resolve) => (answer = resolve)) } });
    let over = false;
    const check = () => {
      if (over) throw new Error("over");
    };
    const put = { kind: "put", namespace: ["m"], key: "k", value: { text: "a" } } as const;
    const write = store.batch({ ...me, check }, [put]).catch(String);
    await turns();
    over = true;
    answer([[1, 2, 3]]);
    expect(await write).toBe("Error: over");
    expect(await get(["m"], "k")).toBeNull();
  });

  test("vectors of an embedder with other dimensions do not count", async () => {
    store = open({ index });
    await put(["m"], "old", { text: "a" });
    store = open({ index: { embed: (texts) => texts.map(() => [1, 0]), dims: 2, fields: ["text"] } });
    await put(["m"], "new", { text: "b" });
    expect((await search(["m"], { query: "x" })).map(({ key, score }) => [key, score])).toEqual([
      ["new", 1],
      ["old", null],
    ]);
  });

  test("where an index is wanted and there is none, a query is refused", async () => {
    store = open({ noIndex: "is not served" });
    await expect(search(["m"], { query: "a" })).rejects.toMatchObject({ fields: [{ at: "query" }] });
    expect(await search(["m"])).toEqual([]);
  });
});

test.each<[path: string, texts: readonly string[]]>([
  ["$", ['{"title":"T","n":3,"tags":["x","y"],"parts":[{"text":"p"},{"text":"q"},{}],"none":null}']],
  ["title", ["T"]],
  ["n", ["3"]],
  ["tags", ['["x","y"]']],
  ["tags[0]", ["x"]],
  ["tags[-1]", ["y"]],
  ["tags[9]", []],
  ["tags[*]", ["x", "y"]],
  ["parts[*].text", ["p", "q"]],
  ["none", []],
  ["title.length", []],
  ["constructor.name", []],
])("the texts at %s", (path, texts) => {
  const value = { title: "T", n: 3, tags: ["x", "y"], parts: [{ text: "p" }, { text: "q" }, {}], none: null };
  expect(textsAtPaths(value, [path])).toEqual(texts);
});
