import { expect, test } from "vitest";
import { z } from "zod";
import { graph, list } from "../../src/index.ts";
import { differs } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";
import { aHex32, get, newThread, NOBODY, post, postJson } from "./support/wire.ts";

interface Question {
  readonly id: string;
  readonly response_schema: Record<string, unknown> | null;
}

const answer = z.object({ ok: z.boolean(), note: z.string().optional() });

const inner = graph({
  state: { log: list<string>() },
  nodes: {
    deep: async (_, ctx) => ({ log: [String(await ctx.interrupt("how many?", { schema: z.number() }))] }),
  },
  edges: { start: "deep" },
});

const asks = graph({
  state: { log: list<string>() },
  nodes: {
    review: async (_, ctx) => {
      const { ok } = await ctx.interrupt({ draft: "a" }, { schema: answer });
      return { log: [String(ok)] };
    },
    free: async (_, ctx) => ({ log: [String(await ctx.interrupt("anything?"))] }),
    within: inner,
  },
  edges: { start: ["review", "free", "within"] },
});

const questions = async (url: string, thread: string): Promise<readonly Question[]> =>
  (await (await get(`${url}/threads/${thread}/interrupts`)).json()) as readonly Question[];

/** The schemas of the questions, by the questions' values. */
const schemas = async (url: string, thread: string) =>
  new Map(
    (await questions(url, thread)).map((one) => [JSON.stringify((one as { value?: unknown }).value), one]),
  );

test.skipIf(differs("answer schemas"))(
  "questions that wait are told with the schemas of their answers; elsewhere they are as the contract has them",
  async () => {
    const data = await directory();
    const { url, close } = await serve({ graphs: { asks }, data });
    const thread = await newThread(url);
    const result = await postJson<{ __interrupt__: object[] }>(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "asks",
      input: {},
    });
    const members = ["id", "ns", "resumable", "value", "when"];
    for (const one of result.__interrupt__) expect(Object.keys(one).toSorted()).toEqual(members);
    const state = await (await get(`${url}/threads/${thread}/state`)).text();
    const record = await (await get(`${url}/threads/${thread}`)).text();
    for (const text of [state, record]) expect(text).not.toContain("schema");

    const all = await schemas(url, thread);
    expect([...all.keys()].toSorted()).toEqual(['"anything?"', '"how many?"', '{"draft":"a"}']);
    expect(all.get('{"draft":"a"}')).toMatchObject({
      id: aHex32,
      resumable: true,
      when: "during",
      response_schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
    });
    expect(all.get('"anything?"')?.response_schema).toBeNull();
    expect(all.get('"how many?"')?.response_schema).toMatchObject({ type: "number" });

    await close(0);
    const again = await serve({ graphs: { asks }, data });
    expect(await schemas(again.url, thread)).toEqual(all);

    // One question gets a valid answer, another one an invalid one.
    const by = (text: string) => all.get(text)?.id ?? "";
    const resume = { [by('"anything?"')]: "x", [by('"how many?"')]: 3, [by('{"draft":"a"}')]: { ok: "no" } };
    await post(`${again.url}/threads/${thread}/runs/wait`, { assistant_id: "asks", command: { resume } });
    const left = await schemas(again.url, thread);
    expect([...left.keys()]).toEqual(['{"draft":"a"}']);
    expect(left.get('{"draft":"a"}')).toEqual(all.get('{"draft":"a"}'));
  },
);

test("a thread that asks nothing has none; an unknown one is 404, a bad id 422", async () => {
  const { url } = await serve({ graphs: { asks } });
  expect(await questions(url, await newThread(url))).toEqual([]);
  expect((await get(`${url}/threads/${NOBODY}/interrupts`)).status).toBe(404);
  expect((await get(`${url}/threads/nope/interrupts`)).status).toBe(422);
});
