import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { differs } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";
import { post } from "./support/wire.ts";

const shown = graph({
  state: { topic: z.string().min(2), log: list<string>(), secret: value<string>() },
  input: ["topic"],
  output: ["log"],
  context: z.object({ model: z.enum(["a", "b"]).default("a") }),
  nodes: {
    one: { cache: {}, run: async (s, ctx) => ({ log: [`${s.topic} by ${ctx.context.model}`], secret: "s" }) },
    two: async (_, ctx) => ({ log: [String(await ctx.interrupt("?"))] }),
  },
  edges: { start: "one", one: "two" },
});

describe.each(lines)("a graph's definition, over %s", (_, connect) => {
  test.skipIf(differs("the keys of an output"))(
    "output: its keys alone in results and values, all of them in the thread's state",
    async () => {
      const client = connect((await serve({ graphs: { shown } })).url);
      const { thread_id } = await client.threads.create();
      const events: unknown[] = [];
      const input = { topic: "tea" };
      for await (const { event, data } of client.runs.stream(thread_id, "shown", {
        input,
        streamMode: ["values"],
      })) {
        if (event === "values") events.push(data);
      }
      expect(events.slice(0, 2)).toEqual([{ log: [] }, { log: ["tea by a"] }]);
      expect(events.at(-1)).toEqual({
        log: ["tea by a"],
        __interrupt__: [expect.objectContaining({ value: "?" })],
      });
      const run = await client.runs.create(thread_id, "shown", { command: { resume: "yes" } });
      const log = ["tea by a", "yes"];
      expect(await client.runs.join(thread_id, run.run_id)).toEqual({ log });
      expect((await client.threads.getState(thread_id)).values).toEqual({ topic: "tea", log, secret: "s" });
      expect(await client.runs.join(thread_id, run.run_id)).toEqual({ log });
    },
  );

  test("cache: the update of a node that did not run says so", async () => {
    const client = connect((await serve({ graphs: { shown } })).url);
    const updates: unknown[] = [];
    for (let n = 0; n < 2; n++) {
      const { thread_id } = await client.threads.create();
      const asked = { input: { topic: "coffee" }, streamMode: ["updates" as const], interruptAfter: ["one"] };
      for await (const { event, data } of client.runs.stream(thread_id, "shown", asked)) {
        if (event === "updates") updates.push(data);
      }
    }
    const one = { log: ["coffee by a"], secret: "s" };
    expect(updates).toEqual([
      { one },
      { __interrupt__: [] },
      { one, __metadata__: { cached: true } },
      { __interrupt__: [] },
    ]);
  });
});

test.skipIf(differs("what does not fit")).each<[object, string, string]>([
  [
    { interrupt_before: ["nope"] },
    "interrupt_before",
    'interrupt_before names "nope", which is no node; the nodes are one, two',
  ],
  [{ interrupt_after: ["one", "nope"] }, "interrupt_after", '"nope"'],
  [{ command: { goto: "nope" } }, "command.goto", 'command.goto names "nope", which is no node'],
  [
    { command: { update: { nope: 1 } } },
    "command.update.nope",
    "the state has no such key; it has topic, log, secret",
  ],
  [{ context: { model: "c" } }, "context.model", "context.model"],
  [{ input: { topic: "t" } }, "input.topic", "input.topic"],
  [{ input: { topic: 7 } }, "input.topic", "expected string"],
  [{}, "input.topic", "input.topic is required: the state has no value for it yet"],
  [{ input: null }, "input.topic", "input.topic is required: the state has no value for it yet"],
  [{ input: {} }, "input.topic", "input.topic is required: the state has no value for it yet"],
  [
    { input: { topic: "tea", secret: "x" } },
    "input.secret",
    "input.secret is no input of this graph; it takes topic",
  ],
])("%j is refused at creation, naming the field", async (body, at, message) => {
  const { url } = await serve({ graphs: { shown } });
  const { thread_id } = (await (await post(`${url}/threads`, {})).json()) as { thread_id: string };
  for (const path of ["runs", "runs/wait", "runs/stream"]) {
    const answer = await post(`${url}/threads/${thread_id}/${path}`, { assistant_id: "shown", ...body });
    expect(answer.status).toBe(422);
    const { detail, errors } = (await answer.json()) as { detail: string; errors: { at: string }[] };
    expect(detail).toContain(message);
    expect(errors[0]?.at).toBe(at);
  }
  const runs = await fetch(`${url}/threads/${thread_id}/runs`);
  expect(await runs.json()).toEqual([]);
});
