import { expect, test } from "vitest";
import { graph, send, value } from "../../src/index.ts";
import { NodeResultCache } from "../../src/engine/node-result-cache.ts";
import { Thread } from "./driver.ts";

/** A graph whose one node counts how often its body runs. */
function counting(cache: object, extra: object = {}) {
  let ran = 0;
  const define = graph as unknown as (literal: object) => unknown;
  const thread = new Thread(
    define({
      state: { n: value(0), out: value<string>(), ...extra },
      nodes: {
        a: {
          cache,
          run: async (s: { n: number }, ctx: { emit(data: unknown): void }) => {
            ctx.emit("ran");
            return { out: `${s.n} at ${++ran}` };
          },
        },
      },
      edges: { start: "a" },
    }),
  );
  const run = async (n: number, context: object = {}) => {
    const { values, facts } = await thread.run({ input: { n, out: "" }, context: context as never });
    return { out: values["out"], facts };
  };
  return { thread, run, ran: () => ran };
}

test("the same input gets the kept result; the body does not run, and the update says so", async () => {
  const { run, ran } = counting({});
  const first = await run(1);
  expect(first.out).toBe("1 at 1");
  expect(first.facts.find(({ t }) => t === "result")).not.toHaveProperty("cached");
  const again = await run(1);
  expect(again.out).toBe("1 at 1");
  expect(again.facts.some(({ t }) => t === "custom")).toBe(false);
  expect(again.facts.find(({ t }) => t === "result")).toMatchObject({
    cached: true,
    update: { out: "1 at 1" },
  });
  expect((await run(2)).out).toBe("2 at 2");
  expect(ran()).toBe(2);
});

test("another context is another input", async () => {
  const { run, ran } = counting({});
  await run(1, { model: "a" });
  await run(1, { model: "b" });
  expect(ran()).toBe(2);
});

test("a result is kept for its ttl", async () => {
  const { thread, run, ran } = counting({ ttl: "1m" });
  await run(1);
  thread.time = 59_999;
  await run(1);
  expect(ran()).toBe(1);
  thread.time = 60_000;
  await run(1);
  expect(ran()).toBe(2);
});

test("by a key of its own", async () => {
  const { run, ran } = counting({
    key: (s: { n: number }, context: { who?: string }) => [s.n % 2, context.who],
  });
  await run(1, { who: "x" });
  await run(3, { who: "x" });
  expect(ran()).toBe(1);
  await run(3, { who: "y" });
  expect(ran()).toBe(2);
});

test("a key that throws fails the node by name", async () => {
  const { thread } = counting({
    key: () => {
      throw new Error("no key");
    },
  });
  expect((await thread.run({ input: { n: 1 } })).error).toEqual({ error: "Error", message: "no key" });
});

test("of a node a thousand results are kept, or 16 MiB: the oldest go first", () => {
  const cache = new NodeResultCache();
  const rule = { ttl: null, key: undefined };
  const node = {} as never;
  const known = (key: string) => cache.get(node, key, 0) !== undefined;
  for (let n = 0; n <= 1_000; n++) cache.put(node, rule, `${n}`, n, 0);
  expect(["0", "1", "1000"].map(known)).toEqual([false, true, true]);
  cache.put(node, rule, "wide", "x".repeat(15 * 1024 * 1024), 0);
  cache.put(node, rule, "wider", "x".repeat(2 * 1024 * 1024), 0);
  expect(["1000", "wide", "wider"].map(known)).toEqual([false, false, true]);
  cache.put(node, rule, "never", new Map(), 0);
  cache.put({} as never, rule, "elsewhere", 1, 0);
  expect(["never", "elsewhere"].map(known)).toEqual([false, false]);
});

test("the same data has the same key in any order; tenants have keys of their own", () => {
  const cache = new NodeResultCache();
  const rule = { ttl: null, key: undefined };
  const key = (input: unknown, tenant = "_") => cache.keyOf(rule, { tenant, input, context: {} } as never);
  expect(key({ a: 1, b: { c: 2, d: 3 } })).toBe(key({ b: { d: 3, c: 2 }, a: 1 }));
  expect(new Set([key({ a: 1 }), key([["a", 1]]), key({ a: "1" }), key({ a: 1 }, "other")]).size).toBe(4);
  expect(key({ a: () => 1 })).toBeNull();
});

test("what an answer led to is not kept; failures are not; sends and moves are", async () => {
  let asked = 0;
  let failed = 0;
  let fanned = 0;
  const thread = new Thread(
    graph({
      state: { n: value(0), out: value<unknown>() },
      nodes: {
        ask: { cache: {}, run: async (_, ctx) => ({ out: [++asked, await ctx.interrupt("?")] }) },
        fail: {
          cache: {},
          run: async () => {
            if (++failed === 1) throw new Error("once");
            return { out: "well" };
          },
        },
        fan: { cache: {}, run: async () => [send("leaf", { n: ++fanned })] },
        leaf: { run: async (s) => ({ out: s.n }) },
      },
      edges: { start: (s) => ["ask", "fail", "fan"][s.n] as "ask" },
    }),
  );
  for (const answer of ["x", "y"]) {
    await thread.run({ input: { n: 0, out: null } });
    expect((await thread.run({ command: { resume: answer } })).values["out"]).toContain(answer);
  }
  expect((await thread.run({ input: { n: 1, out: null } })).error?.message).toBe("once");
  expect((await thread.run({ input: { n: 1, out: null } })).values["out"]).toBe("well");
  await thread.run({ input: { n: 2, out: null } });
  expect((await thread.run({ input: { n: 2, out: null } })).values["out"]).toBe(1);
});
