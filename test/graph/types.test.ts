import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  branch,
  END,
  ephemeral,
  graph,
  list,
  messages,
  reduce,
  send,
  to,
  untracked,
  value,
  type Message,
} from "../../src/index.ts";

test("the literal infers the state in nodes and edges, the context, and each node's own input", () => {
  const agent = graph({
    name: "agent",
    state: {
      messages: messages(),
      topic: z.string().optional(),
      notes: list<string>(),
      total: reduce(z.number().default(0), (a, b) => a + b),
      count: reduce(0, (a: number, b: readonly number[]) => a + b.length),
      hint: ephemeral<{ readonly n: number }>(),
      live: untracked(z.boolean()),
      free: value<Date>(),
      fixed: value("x"),
    },
    context: z.object({ model: z.string().default("m") }),
    nodes: {
      plan: async (state, ctx) => {
        expectTypeOf(state.messages).toEqualTypeOf<readonly Message[]>();
        expectTypeOf(state.topic).toEqualTypeOf<string | undefined>();
        expectTypeOf(state.notes).toEqualTypeOf<readonly string[]>();
        expectTypeOf(state.total).toEqualTypeOf<number>();
        expectTypeOf(state.count).toEqualTypeOf<number>();
        expectTypeOf(state.hint).toEqualTypeOf<{ readonly n: number } | undefined>();
        expectTypeOf(state.live).toEqualTypeOf<boolean | undefined>();
        expectTypeOf(state.free).toEqualTypeOf<Date | undefined>();
        expectTypeOf(state.fixed).toEqualTypeOf<string>();
        expectTypeOf(ctx.context.model).toEqualTypeOf<string>();
        return { topic: ctx.context.model };
      },
      ask: async (_state, ctx) => {
        const answer = await ctx.interrupt({ question: "ok?" }, { schema: z.object({ ok: z.boolean() }) });
        expectTypeOf(answer).toEqualTypeOf<{ ok: boolean }>();
        return answer.ok ? to("work", { notes: ["ok"] }) : to(END);
      },
      work: { run: async (state) => ({ notes: [...state.notes, "done"] }), retry: 3, timeout: "30s" },
      leaf: {
        input: z.object({ n: z.string() }),
        run: async ({ n }, ctx) => {
          expectTypeOf(n).toEqualTypeOf<string>();
          expectTypeOf(ctx.context.model).toEqualTypeOf<string>();
          return { notes: [n] };
        },
      },
      join: { after: ["work", "leaf"], run: async (state) => ({ total: state.notes.length, count: [1, 2] }) },
      fan: async (state) => state.notes.map((n) => send("leaf", { n })),
      chat: async (_state, ctx) => {
        expectTypeOf(await ctx.step("k", () => 1)).toEqualTypeOf<number>();
        const message = ctx.message();
        message.write("hi");
        return { messages: [message.end(), { role: "assistant", content: "there" }] };
      },
      nothing: async () => {},
    },
    edges: {
      start: "plan",
      plan: ["ask", "nothing"],
      work: (s) => s.notes.map((n) => send("leaf", { n })),
      leaf: branch(
        (s: { readonly notes: readonly string[] }) => (s.notes.length > 3 ? END : "join"),
        [END, "join"],
      ),
      join: (s) => (s.total > 1 ? END : "chat"),
    },
  });
  expectTypeOf(agent).toExtend<{ readonly hash: string }>();

  graph({
    state: { n: z.number() },
    nodes: {
      // @ts-expect-error -- a number is no string
      a: async () => ({ n: "x" }),
      // @ts-expect-error -- there is no node "nowhere"
      b: async () => to("nowhere"),
    },
    edges: { start: "a" },
  });
  expect(() =>
    graph({
      state: { n: z.number() },
      nodes: { a: async (s) => ({ n: s.n + 1 }) },
      // @ts-expect-error -- there is no node "c"
      edges: { start: "a", a: "c" },
    }),
  ).toThrow('edges.a names "c"');
});
