import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { directory, serve } from "./support/server.ts";
import { aTime, get, NOBODY, post } from "./support/wire.ts";

/** Stores the tone from its context. */
const tone = graph({
  state: { log: list<string>() },
  nodes: {
    say: async (_, { context }) => ({ log: [String((context as { tone?: string }).tone ?? "plain")] }),
  },
  edges: { start: "say" },
});

describe.each(lines)("versions over %s", (_, connect) => {
  const start = async () => connect((await serve({ graphs: { tone } })).url);

  test("a change makes a new version: metadata is merged, the rest replaced, what is not named is kept", async () => {
    const client = await start();
    const made = await client.assistants.create({
      graphId: "tone",
      name: "one",
      config: { tags: ["a"], recursion_limit: 5 },
      context: { tone: "warm", size: 1 },
      metadata: { a: 1, deep: { x: 1 } },
    });
    const changed = await client.assistants.update(made.assistant_id, {
      name: "two",
      context: { tone: "cold" },
      metadata: { b: 2, deep: { y: 2 } },
    });
    expect(changed).toEqual({
      ...made,
      version: 2,
      name: "two",
      context: { tone: "cold" },
      metadata: { a: 1, b: 2, deep: { y: 2 } },
      updated_at: aTime,
    });
    expect(await client.assistants.get(made.assistant_id)).toEqual(changed);
    const { thread_id } = await client.threads.create();
    expect(await client.runs.wait(thread_id, made.assistant_id, { input: {} })).toEqual({ log: ["cold"] });
    expect(await client.assistants.update(made.assistant_id, {})).toMatchObject({ version: 3, name: "two" });
  });

  test("all versions are listed, newest first, and an earlier one can be gone back to", async () => {
    const client = await start();
    const { assistant_id: id } = await client.assistants.create({
      graphId: "tone",
      context: { tone: "1" },
      description: "first",
    });
    for (const n of ["2", "3"]) {
      await client.assistants.update(id, {
        graphId: n === "3" ? "agent" : "tone",
        context: { tone: n },
        metadata: { [`v${n}`]: true },
        description: `the ${n}`,
      });
    }
    const versions = await client.assistants.getVersions(id);
    expect(versions.map(({ version }) => version)).toEqual([3, 2, 1]);
    expect(versions[2]).toEqual({
      assistant_id: id,
      graph_id: "tone",
      version: 1,
      name: "Untitled",
      description: "first",
      config: {},
      context: { tone: "1" },
      metadata: {},
      created_at: aTime,
    });
    const numbers = async (query: Parameters<typeof client.assistants.getVersions>[1]) =>
      (await client.assistants.getVersions(id, query)).map(({ version }) => version);
    expect(await numbers({ limit: 1, offset: 1 })).toEqual([2]);
    expect(await numbers({ offset: 3 })).toEqual([]);
    expect(await numbers({ metadata: { v2: true } })).toEqual([3, 2]);

    const back = await client.assistants.setLatest(id, 1);
    expect(back).toMatchObject({
      version: 1,
      graph_id: "tone",
      context: { tone: "1" },
      description: "first",
    });
    expect(back.metadata).toEqual({});
    expect(await numbers({})).toEqual([3, 2, 1]);
    // A version number is never reused.
    expect(await client.assistants.update(id, { name: "on" })).toMatchObject({
      version: 4,
      graph_id: "tone",
    });
    await expect(client.assistants.setLatest(id, 9)).rejects.toMatchObject({ status: 404 });
    expect(await client.assistants.get(id)).toMatchObject({ version: 4 });
  });

  test("changes at once each make a version", async () => {
    const client = await start();
    const { assistant_id: id } = await client.assistants.create({ graphId: "tone" });
    const metadata = Array.from({ length: 8 }, (_1, i) => ({ [`key${i}`]: i }));
    const made = await Promise.all(metadata.map((one) => client.assistants.update(id, { metadata: one })));
    expect(made.map(({ version }) => version).sort((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    expect((await client.assistants.get(id)).metadata).toEqual(Object.assign({}, ...metadata));
  });

  test("a deleted assistant is gone with its versions; its id is free, its runs stay", async () => {
    const client = await start();
    await client.assistants.create({ graphId: "tone", assistantId: NOBODY });
    await client.assistants.update(NOBODY, { name: "two" });
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, NOBODY, { input: {} });
    await client.assistants.delete(NOBODY);
    await expect(client.assistants.delete(NOBODY)).rejects.toMatchObject({ status: 404 });
    await expect(client.assistants.get(NOBODY)).rejects.toMatchObject({ status: 404 });
    await expect(client.assistants.getVersions(NOBODY)).rejects.toMatchObject({ status: 404 });
    await expect(client.runs.create(thread_id, NOBODY)).rejects.toMatchObject({ status: 404 });
    expect(await client.runs.list(thread_id)).toMatchObject([{ status: "success", assistant_id: NOBODY }]);
    await client.assistants.create({ graphId: "tone", assistantId: NOBODY });
    expect((await client.assistants.getVersions(NOBODY)).map(({ version }) => version)).toEqual([1]);
  });

  test("a deleted assistant takes its threads along when that is asked for, and no other's", async () => {
    const client = await start();
    await client.assistants.create({ graphId: "tone", assistantId: NOBODY });
    const run = async (assistant: string) => {
      const { thread_id } = await client.threads.create();
      await client.runs.wait(thread_id, assistant, { input: {} });
      return thread_id;
    };
    const own = [await run(NOBODY), await run(NOBODY)];
    const other = await run("tone");
    await client.assistants.delete(NOBODY, { deleteThreads: true });
    for (const id of own) await expect(client.threads.get(id)).rejects.toMatchObject({ status: 404 });
    expect(await client.threads.get(other)).toMatchObject({ thread_id: other });
  });

  test("a deleted assistant leaves its threads with their states and their runs, and starts no more", async () => {
    const client = await start();
    await client.assistants.create({ graphId: "tone", assistantId: NOBODY });
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, NOBODY, { input: {} });
    const before = [await client.runs.list(thread_id), await client.threads.getHistory(thread_id)];
    await client.assistants.delete(NOBODY);
    expect([await client.runs.list(thread_id), await client.threads.getHistory(thread_id)]).toEqual(before);
    expect(before[0]).toMatchObject([{ assistant_id: NOBODY, status: "success" }]);
    const again = client.runs.wait(thread_id, NOBODY, { input: {} });
    await expect(again).rejects.toMatchObject({ status: 404 });
  });

  test("a default assistant can be changed, and is as it was made once it is deleted", async () => {
    const client = await start();
    const made = await client.assistants.get("tone");
    const changed = await client.assistants.update("tone", {
      context: { tone: "own" },
      metadata: { mine: 1 },
    });
    expect(changed).toMatchObject({
      assistant_id: made.assistant_id,
      version: 2,
      metadata: { created_by: "system", mine: 1 },
    });
    expect(await client.assistants.get(made.assistant_id)).toEqual(changed);
    const found = await client.assistants.search({ graphId: "tone", includePagination: false });
    expect(found).toEqual([changed]);
    expect(await client.assistants.search({ metadata: { mine: 1 }, includePagination: false })).toEqual([
      changed,
    ]);
    const versions = await client.assistants.getVersions("tone");
    expect(versions.map(({ version }) => version)).toEqual([2, 1]);
    const { thread_id } = await client.threads.create();
    expect(await client.runs.wait(thread_id, "tone", { input: {} })).toEqual({ log: ["own"] });

    await client.assistants.delete(made.assistant_id);
    expect(await client.assistants.get("tone")).toEqual(made);
    expect((await client.assistants.getVersions("tone")).map(({ version }) => version)).toEqual([1]);
    expect(await client.runs.wait(thread_id, "tone", { input: {} })).toEqual({ log: ["own", "plain"] });
    await client.assistants.delete("tone");
    expect(await client.assistants.get("tone")).toEqual(made);
  });

  test("they are counted as they are found", async () => {
    const client = await start();
    for (const name of ["alpha", "beta"]) {
      await client.assistants.create({ graphId: "tone", name, metadata: { name } });
    }
    expect(await client.assistants.count()).toBe(5);
    expect(await client.assistants.count({ graphId: "tone" })).toBe(3);
    expect(await client.assistants.count({ name: "ALPH" })).toBe(1);
    expect(await client.assistants.count({ metadata: { name: "beta" } })).toBe(1);
    expect(await client.assistants.count({ graphId: "nope" })).toBe(0);
  });
});

test("versions and a changed default assistant outlive the server", async () => {
  const data = await directory();
  const first = await serve({ graphs: { tone }, data });
  await fetch(`${first.url}/assistants/tone`, { method: "PATCH", body: JSON.stringify({ name: "mine" }) });
  await first.close();
  const { url } = await serve({ graphs: { tone }, data });
  expect(await (await get(`${url}/assistants/tone`)).json()).toMatchObject({ name: "mine", version: 2 });
  expect(await (await post(`${url}/assistants/tone/versions`)).json()).toMatchObject([
    { version: 2, name: "mine" },
    { version: 1, name: "tone" },
  ]);
  const back = await post(`${url}/assistants/tone/latest`, { version: 1 });
  expect(await back.json()).toMatchObject({ version: 1, name: "tone" });
});

test("a change that is refused changes nothing", async () => {
  const { url } = await serve({ graphs: { tone } });
  const patch = (body: unknown) =>
    fetch(`${url}/assistants/tone`, { method: "PATCH", body: JSON.stringify(body) });
  expect((await patch({ graph_id: "nope", name: "x" })).status).toBe(404);
  expect((await patch({ config: { configurable: 1 } })).status).toBe(422);
  expect((await fetch(`${url}/assistants/nope`, { method: "PATCH", body: "{}" })).status).toBe(404);
  expect(await (await get(`${url}/assistants/tone`)).json()).toMatchObject({ version: 1, name: "tone" });
});
