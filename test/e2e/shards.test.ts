import { describe, expect, test } from "vitest";
import { shardOf } from "../../src/model/shard-of.ts";
import { graph, list, value } from "../../src/index.ts";
import { lines, type Client } from "./support/clients.ts";
import { headersOf, owned } from "./support/auth.ts";
import { directory, openShards, serve } from "./support/server.ts";
import { get, post, postJson } from "./support/wire.ts";

const SHARDS = 4;

interface Run {
  readonly run_id: string;
  readonly thread_id: string;
}

const named = graph({
  state: { name: value(""), log: list<string>() },
  nodes: {
    work: async ({ name }, ctx) => {
      await ctx.store.put(["runs", name], "done", { name });
      await ctx.store.put([name], "done", { name });
      return { log: [name] };
    },
  },
  edges: { start: "work" },
});

const connect = lines[0]?.[1] as (url: string) => Client;

async function start(data?: string) {
  const storage = await openShards(SHARDS, data === undefined ? {} : { data });
  const server = await serve({ graphs: { named }, storage });
  return { server, url: server.url, client: connect(server.url) };
}

const shards = (ids: readonly string[]) => new Set(ids.map((id) => shardOf(id, SHARDS)));

/** Reads all pages of a list. */
async function pages<T>(read: (offset: number, limit: number) => Promise<readonly T[]>, limit: number) {
  const all: T[] = [];
  for (;;) {
    const page = await read(all.length, limit);
    expect(page.length).toBeLessThanOrEqual(limit);
    if (page.length === 0) return all;
    all.push(...page);
  }
}

describe("over four shards", () => {
  test("threads without an id are spread, and lists of all shards come in order, page by page", async () => {
    const { url, client } = await start();
    const created: string[] = [];
    for (let n = 0; n < 23; n++) {
      const metadata = { n, half: n % 2 };
      created.push((await client.threads.create({ metadata })).thread_id);
    }
    expect(shards(created).size).toBe(SHARDS);
    const newest = created.toReversed();
    const idsOf = (threads: readonly { thread_id: string }[]) => threads.map(({ thread_id }) => thread_id);
    const search = (query: object) => (offset: number, limit: number) =>
      client.threads.search({ ...query, offset, limit });
    for (const limit of [1, 7, 100]) {
      expect(idsOf(await pages(search({}), limit))).toEqual(newest);
      expect(idsOf(await pages(search({ sortBy: "thread_id", sortOrder: "asc" }), limit))).toEqual(created);
      const odd = newest.filter((_, i) => (22 - i) % 2 === 1);
      expect(idsOf(await pages(search({ metadata: { half: 1 } }), limit))).toEqual(odd);
    }
    expect(await (await post(`${url}/threads/count`, { metadata: { half: 1 } })).json()).toBe(11);
    const middle = await post(`${url}/threads/search`, { limit: 10, offset: 10 });
    expect(Number(middle.headers.get("x-pagination-total"))).toBe(23);
    expect(middle.headers.get("x-pagination-next")).toBe("20");
    const last = await post(`${url}/threads/search`, { limit: 10, offset: 20 });
    expect(last.headers.get("x-pagination-next")).toBeNull();
    // By their last change.
    for (const n of [3, 11, 4, 20])
      await client.runs.wait(created[n] as string, "named", { input: { name: "x" } });
    const changed = await client.threads.search({ sortBy: "updated_at", limit: 4 });
    expect(idsOf(changed)).toEqual([20, 4, 11, 3].map((n) => created[n]));
    expect(changed[0]).toMatchObject({ values: { log: ["x"] } });
  });

  test("the runs of all threads are found page by page", async () => {
    const { url, client } = await start();
    const created: string[] = [];
    for (let n = 0; n < 17; n++) {
      const { thread_id } = await client.threads.create();
      created.push((await client.runs.create(thread_id, "named", { input: { name: `${n}` } })).run_id);
      await client.runs.join(thread_id, created.at(-1) as string);
    }
    for (const limit of [1, 5, 100]) {
      for (const sort_order of ["desc", "asc"]) {
        const found: string[] = [];
        for (let cursor: string | null | undefined; cursor !== null;) {
          const response = await post(`${url}/runs/search`, { limit, sort_order, ...(cursor && { cursor }) });
          found.push(...((await response.json()) as Run[]).map(({ run_id }) => run_id));
          cursor = response.headers.get("x-pagination-next");
        }
        expect(found).toEqual(sort_order === "asc" ? created : created.toReversed());
      }
    }
  });

  test("crons are found, changed and deleted by id, and go with their assistant", async () => {
    const { url, client } = await start();
    const assistant = await client.assistants.create({ graphId: "named" });
    const created: string[] = [];
    for (let n = 0; n < 9; n++) {
      const { thread_id } = await client.threads.create();
      const payload = { schedule: "0 9 * * *", metadata: { n } };
      const cron = await (n % 2 === 0
        ? client.crons.create(n < 4 ? assistant.assistant_id : "named", payload)
        : client.crons.createForThread(thread_id, "named", payload));
      if (n % 2 === 1) expect(shardOf(cron.cron_id, SHARDS)).toBe(shardOf(thread_id, SHARDS));
      created.push(cron.cron_id);
    }
    const search = (offset: number, limit: number) => client.crons.search({ offset, limit });
    const idsOf = (crons: readonly { cron_id: string }[]) => crons.map(({ cron_id }) => cron_id);
    for (const limit of [2, 4, 100]) {
      const found = await pages(search, limit);
      expect(idsOf(found)).toEqual(created.toReversed());
    }
    expect(await (await post(`${url}/runs/crons/count`)).json()).toBe(9);
    await client.crons.update(created[5] as string, { metadata: { changed: true } });
    await client.crons.delete(created[6] as string);
    await client.assistants.delete(assistant.assistant_id);
    expect(idsOf(await search(0, 100))).toEqual([8, 7, 5, 4, 3, 1].map((n) => created[n]));
  });

  test("items of the store are found below every prefix, and nodes see one store", async () => {
    const { client } = await start();
    const names = ["ann", "bob", "cy", "di", "ed", "flo"];
    for (const name of names) await client.runs.wait(null, "named", { input: { name } });
    const { items } = await client.store.searchItems([], { limit: 100 });
    expect(items.map(({ namespace }) => namespace.join("/")).toSorted()).toEqual(
      [...names, ...names.map((name) => `runs/${name}`)].toSorted(),
    );
    const first = await pages(
      async (offset, limit) => (await client.store.searchItems([], { offset, limit })).items,
      5,
    );
    expect(first.map(({ namespace }) => namespace)).toEqual(items.map(({ namespace }) => namespace));
    const { namespaces } = await client.store.listNamespaces({ maxDepth: 1 });
    expect(namespaces).toEqual([...names, "runs"].map((name) => [name]));
    expect(await client.store.getItem(["ann"], "done")).toMatchObject({ value: { name: "ann" } });
    await client.store.deleteItem(["ann"], "done");
    expect(await client.store.getItem(["ann"], "done")).toBeNull();
  });

  test("a batch is started in one shard, whole or not at all", async () => {
    const { url, server } = await start();
    const entry = { assistant_id: "named", input: { name: "x" }, on_completion: "keep" };
    const runs = await postJson<Run[]>(
      `${url}/runs/batch`,
      Array.from({ length: 8 }, () => entry),
    );
    expect(shards(runs.map(({ thread_id }) => thread_id)).size).toBe(1);
    for (const { thread_id, run_id } of runs)
      expect((await get(`${url}/threads/${thread_id}/runs/${run_id}/join`)).status).toBe(200);
    expect((await post(`${url}/runs/batch`, [entry, { ...entry, assistant_id: "nobody" }])).status).toBe(404);
    expect(server.system.figures.graphs.get("named")).toMatchObject({ success: 8 });
  });

  test("a run without a thread is started once for an idempotency key", async () => {
    const { url } = await start();
    const send = (key: string) =>
      fetch(`${url}/runs`, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": key },
        body: JSON.stringify({ assistant_id: "named", input: { name: "x" }, on_completion: "keep" }),
      }).then(async (response) => ((await response.json()) as Run).run_id);
    for (const key of ["one", "two", "three", "four", "five"]) {
      const runs = await Promise.all([send(key), send(key)]);
      expect([...runs, await send(key)]).toEqual([runs[0], runs[0], runs[0]]);
    }
  });

  test("the runs of users are in the shard of their thread, of their batch and of their key", async () => {
    const storage = await openShards(SHARDS);
    const { url } = await serve({ graphs: { named }, storage, auth: owned() });
    const ask = async (path: string, body: unknown, more: Record<string, string> = {}) => {
      const headers = { "content-type": "application/json", ...headersOf("alice"), ...more };
      const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      expect(response.status).toBe(200);
      return (await response.json()) as Run & readonly Run[];
    };
    const entry = { assistant_id: "named", input: { name: "x" }, on_completion: "keep" };
    for (let n = 0; n < 5; n++) {
      const { thread_id } = await ask("/threads", {});
      const { run_id } = await ask(`/threads/${thread_id}/runs`, entry);
      expect(shards([run_id, thread_id]).size).toBe(1);
      const { cron_id } = (await ask(`/threads/${thread_id}/runs/crons`, {
        assistant_id: "named",
        schedule: "0 9 * * *",
      })) as unknown as { cron_id: string };
      expect(shards([cron_id, thread_id]).size).toBe(1);
      const batch = await ask("/runs/batch", [entry, entry, entry]);
      expect(shards(batch.flatMap((run) => [run.run_id, run.thread_id])).size).toBe(1);
      const key = { "idempotency-key": `key ${n}` };
      expect((await ask("/runs", entry, key)).run_id).toBe((await ask("/runs", entry, key)).run_id);
    }
    expect(await ask("/threads/search", { limit: 100 })).toHaveLength(5 * (1 + 3 + 1));
  });

  test("an assistant that was created is known in every shard", async () => {
    const { url, client } = await start();
    const { assistant_id } = await client.assistants.create({ graphId: "named" });
    for (let n = 0; n < 8; n++) {
      const { thread_id } = await client.threads.create();
      expect(await client.runs.wait(thread_id, assistant_id, { input: { name: "x" } })).toMatchObject({
        log: ["x"],
      });
    }
    const address = `${url}/assistants/${assistant_id}?delete_threads=true`;
    expect((await fetch(address, { method: "DELETE" })).status).toBe(204);
    expect(await client.threads.search()).toEqual([]);
  });

  test("all of it is there after a restart over the same directories", async () => {
    const data = await directory();
    const first = await start(data);
    const threads: string[] = [];
    for (let n = 0; n < 8; n++) {
      const { thread_id } = await first.client.threads.create();
      await first.client.runs.wait(thread_id, "named", { input: { name: `${n}` } });
      threads.push(thread_id);
    }
    expect(first.server.storage.stats().batches).toBeGreaterThan(16);
    expect(
      (await (await get(`${first.url}/metrics`)).text()).match(/heddle_runs_ended_total.*success.* 8/),
    ).not.toBeNull();
    expect((await get(`${first.url}/ready`)).status).toBe(200);
    await first.server.close();
    const { url, client } = await start(data);
    for (const [n, thread] of threads.entries())
      expect((await client.threads.getState(thread)).values).toMatchObject({ log: [`${n}`] });
    expect(await (await post(`${url}/threads/count`)).json()).toBe(8);
  });
});
