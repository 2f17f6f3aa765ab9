import { expect, test } from "vitest";
import { graph, list, type Ctx } from "../../src/index.ts";
import { directory, serve } from "./support/server.ts";
import { get, postJson } from "./support/wire.ts";

const asks = (name: string) => async (_: unknown, ctx: Ctx) => ({
  log: [`${name} ${String(await ctx.interrupt(name))}`],
});
const two = graph({
  state: { log: list<string>(), other: list<string>() },
  nodes: { a: asks("a"), b: asks("b") },
  edges: { start: ["a", "b"] },
});

async function started() {
  const { url } = await serve({ data: await directory(), graphs: { two } });
  const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
  const thread = `${url}/threads/${thread_id}`;
  const wait = (body: object) =>
    postJson<{ log: string[]; __interrupt__?: { id: string; value: string }[] }>(`${thread}/runs/wait`, {
      assistant_id: "two",
      ...body,
    });
  const state = async () => (await get(`${thread}/state`)).json() as Promise<{ values: object }>;
  return { wait, state };
}

test("an update that came with one of two answers is applied once, though the run pauses again", async () => {
  const { wait, state } = await started();
  const { __interrupt__: asked = [] } = await wait({ input: { log: [] } });
  const [a, b] = asked.map(({ id }) => id);
  await wait({ command: { resume: { [a ?? ""]: 1 }, update: { log: ["with it"] } } });
  expect(await wait({ command: { resume: { [b ?? ""]: 2 } } })).toMatchObject({
    log: ["with it", "a 1", "b 2"],
  });
  expect((await state()).values).toMatchObject({ log: ["with it", "a 1", "b 2"] });
});

test("a run that failed for want of an input leaves nothing to the next one", async () => {
  const { wait, state } = await started();
  expect(await wait({ input: null })).toMatchObject({ __error__: { error: "EmptyInputError" } });
  await wait({ input: { log: ["x"] } });
  expect((await state()).values).toEqual({ log: ["x"], other: [] });
});
