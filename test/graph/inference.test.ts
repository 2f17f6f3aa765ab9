import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { branch, END, graph, list, send, to, value, type Ctx, type State } from "../../src/index.ts";
import { Thread } from "../engine/driver.ts";

describe("the state is inferred from schemas of any library, and they check what is written", () => {
  const zod = graph({
    state: {
      topic: z.string(),
      tags: z.array(z.string()).default([]),
      note: z.string().optional(),
      log: list<string>(),
    },
    nodes: {
      a: async (state) => {
        expectTypeOf(state.topic).toEqualTypeOf<string>();
        expectTypeOf(state.tags).toEqualTypeOf<string[]>();
        expectTypeOf(state.note).toEqualTypeOf<string | undefined>();
        return { note: `${state.topic} ${state.tags.length}` };
      },
    },
    edges: { start: "a" },
  });
  const valibot = graph({
    state: {
      topic: v.string(),
      tags: v.optional(v.array(v.string()), []),
      note: v.optional(v.string()),
      log: list<string>(),
    },
    nodes: {
      a: async (state) => {
        expectTypeOf(state.topic).toEqualTypeOf<string>();
        expectTypeOf(state.tags).toEqualTypeOf<string[]>();
        expectTypeOf(state.note).toEqualTypeOf<string | undefined>();
        return { note: `${state.topic} ${state.tags.length}` };
      },
    },
    edges: { start: "a" },
  });
  const arktype = graph({
    state: {
      topic: type("string"),
      note: type("string | undefined"),
      log: list<string>(),
    },
    nodes: {
      a: async (state) => {
        expectTypeOf(state.topic).toEqualTypeOf<string>();
        expectTypeOf(state.note).toEqualTypeOf<string | undefined>();
        return { note: `${state.topic} 0` };
      },
    },
    edges: { start: "a" },
  });

  test.each([
    ["zod", zod],
    ["valibot", valibot],
    ["arktype", arktype],
  ])("%s", async (_, made) => {
    const thread = new Thread(made);
    const blank = (input: object) => thread.engine.refuses(thread.record({ input }), {}, true)?.message;
    expect(blank({ topic: 7 })).toContain("input.topic");
    expect(blank({})).toContain("input.topic is required");
    expect((await thread.run({ input: { topic: "tea" } })).values).toMatchObject({
      topic: "tea",
      note: "tea 0",
    });
  });
});

test("context, input, and answers are typed by schemas of any library", () => {
  graph({
    state: { n: value(0) },
    context: v.object({ model: v.picklist(["a", "b"]) }),
    nodes: {
      ask: async (_, ctx) => {
        expectTypeOf(ctx).toEqualTypeOf<Ctx<{ model: "a" | "b" }>>();
        expectTypeOf(await ctx.interrupt("?")).toEqualTypeOf<unknown>();
        const answer = await ctx.interrupt("?", { schema: type({ ok: "boolean" }) });
        expectTypeOf(answer).toEqualTypeOf<{ ok: boolean }>();
        expectTypeOf(await ctx.interrupt("?", { schema: v.number() })).toEqualTypeOf<number>();
        return { n: answer.ok ? 1 : 0 };
      },
      leaf: {
        input: v.object({ id: v.number() }),
        cache: {
          ttl: "1h",
          key: (input, context) => {
            expectTypeOf(input).toEqualTypeOf<{ id: number }>();
            expectTypeOf(context).toEqualTypeOf<{ model: "a" | "b" }>();
            return input.id;
          },
        },
        run: async ({ id }) => {
          expectTypeOf(id).toEqualTypeOf<number>();
          return { n: id };
        },
      },
      plain: {
        cache: { key: (state) => state.n },
        retry: { attempts: 2, initial: "1s", when: (error) => error instanceof TypeError },
        run: async (state) => ({ n: state.n }),
      },
    },
    edges: { start: "ask", ask: "leaf" },
  });
});

test("what is wrong does not compile", () => {
  const state = { n: z.number().default(0), log: list<string>() };
  const nodes = { a: async () => ({ n: 1 }), b: async () => {} };
  const near = branch((s: State<typeof state>) => (s.n > 1 ? END : "b"), ["b", END]);
  graph({ state, nodes, edges: { start: "a", a: near } });
  graph({
    state,
    nodes: {
      // @ts-expect-error -- a list of texts, not of numbers
      a: async () => ({ log: [1] }),
      // @ts-expect-error -- the update that goes along is checked as well
      b: async () => to("a", { n: "x" }),
      // @ts-expect-error -- there is no node "nowhere" to send to
      c: async () => [send("nowhere", {})],
      d: async (s) => {
        // @ts-expect-error -- the state has no such key
        expect(s.more).toBeUndefined();
      },
    },
    edges: { start: "a" },
  });
  const wrong = [
    // @ts-expect-error -- there is no node "c" to start with
    () => graph({ state, nodes, edges: { start: "c" } }),
    // @ts-expect-error -- nor one to come from
    () => graph({ state, nodes, edges: { start: "a", c: "a" } }),
    // @ts-expect-error -- nor one that a branch may lead to
    () => graph({ state, nodes, edges: { start: branch(() => "c", ["c"]) } }),
    // @ts-expect-error -- nor one to wait for
    () => graph({ state, nodes: { a: { after: ["c"], run: nodes.a } }, edges: { start: "a" } }),
    // @ts-expect-error -- the state has no such key
    () => graph({ state, nodes, input: ["m"], edges: { start: "a" } }),
    // @ts-expect-error -- the state has no such key
    () => graph({ state, nodes, output: ["m"], edges: { start: "a" } }),
  ];
  for (const define of wrong) expect(define).toThrow(/names "[cm]"/);
  // @ts-expect-error -- a branch chooses among what it declares
  branch(() => "c", ["a", "b"]);
  graph({ state, nodes, edges: { start: "a" }, migrate: (old) => ({ ...old, n: Number(old["n"]) }) });
  // @ts-expect-error -- a migrated state is one of this graph
  graph({ state, nodes, edges: { start: "a" }, migrate: () => ({ n: "x" }) });
});
