import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Ctx, graph, list, ServiceError, value } from "../../src/index.ts";
import { toIso } from "../../src/model/time.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { lines } from "./support/clients.ts";
import { latch } from "./support/latches.ts";
import { differs } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";
import { aTime, get, post } from "./support/wire.ts";

describe.each(lines)("the store over %s", (_, connect) => {
  const start = async (options: Parameters<typeof serve>[0] = {}) => {
    const { url } = await serve(options);
    return { url, store: connect(url).store };
  };

  test("items are put, got, replaced and deleted", async () => {
    const { store } = await start();
    const namespace = ["users", "alice@example", "notes, and more"];
    expect(await store.getItem(namespace, "k")).toBeNull();
    await store.putItem(namespace, "k", { text: "one", n: null });
    const one = await store.getItem(namespace, "k");
    expect(one).toMatchObject({ namespace, key: "k", value: { text: "one", n: null } });
    expect(one).toMatchObject({ created_at: aTime, updated_at: aTime });
    await store.putItem(namespace, "k", { text: "two" });
    const two = await store.getItem(namespace, "k");
    expect(two).toMatchObject({ value: { text: "two" }, createdAt: one?.createdAt });
    await store.deleteItem(namespace, "k");
    await store.deleteItem(namespace, "k");
    expect(await store.getItem(namespace, "k")).toBeNull();
  });

  test("items are searched by prefix and filter, page by page", async () => {
    const { store } = await start();
    for (let n = 0; n < 5; n++) await store.putItem(["a", `${n % 2}`], `k${n}`, { n });
    await store.putItem(["b"], "k", { n: 1 });
    const found = async (...[prefix, options]: Parameters<typeof store.searchItems>) =>
      (await store.searchItems(prefix, options)).items.map(({ key }) => key).toSorted();
    expect(await found(["a"])).toEqual(["k0", "k1", "k2", "k3", "k4"]);
    expect(await found(["a", "1"])).toEqual(["k1", "k3"]);
    expect(await found(["a"], { filter: { n: { $gte: 3 } } })).toEqual(["k3", "k4"]);
    expect(await found([], { filter: { n: 1 } })).toEqual(["k", "k1"]);
    const pages = await Promise.all([0, 2, 4].map((offset) => found(["a"], { limit: 2, offset })));
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 1]);
    expect(pages.flat().toSorted()).toEqual(["k0", "k1", "k2", "k3", "k4"]);
    expect((await store.searchItems(["a"], { limit: 1 })).items).toEqual([
      expect.objectContaining({ namespace: expect.any(Array), value: expect.any(Object), created_at: aTime }),
    ]);
  });

  test("namespaces are listed by prefix, suffix and depth", async () => {
    const { store } = await start();
    for (const path of ["a/x/notes", "a/y/notes", "b/x/todos"]) await store.putItem(path.split("/"), "k", {});
    const listed = async (options?: Parameters<typeof store.listNamespaces>[0]) =>
      (await store.listNamespaces(options)).namespaces.map((labels) => labels.join("/"));
    expect(await listed()).toEqual(["a/x/notes", "a/y/notes", "b/x/todos"]);
    expect(await listed({ prefix: ["a"], suffix: ["*"] })).toEqual(["a/x/notes", "a/y/notes"]);
    expect(await listed({ maxDepth: 1 })).toEqual(["a", "b"]);
    expect(await listed({ suffix: ["todos"] })).toEqual(["b/x/todos"]);
    expect(await listed({ limit: 1, offset: 1 })).toEqual(["a/y/notes"]);
  });

  test("a query finds by meaning, with an embedder in the configuration", async () => {
    const embed = async (texts: string[]) => texts.map((text) => [text.length, 1]);
    const { store } = await start({ store: { index: { embed, dims: 2, fields: ["text"] } } });
    await store.putItem(["m"], "short", { text: "a" });
    await store.putItem(["m"], "long", { text: "a".repeat(50) });
    await store.putItem(["m"], "apart", { text: "a" }, { index: false });
    const { items } = await store.searchItems(["m"], { query: "b" });
    expect(
      items.map(({ key, score }) => [key, score === null ? null : Math.round((score ?? 0) * 10)]),
    ).toEqual([
      ["short", 10],
      ["long", 7],
      ["apart", null],
    ]);
  });

  test("items expire by the server's clock; null is for ever", async () => {
    const clock = new SimulatedClock();
    const { store } = await start({ clock, store: { ttl: { default_ttl: 10, refresh_on_read: false } } });
    await store.putItem(["t"], "default", {});
    await store.putItem(["t"], "short", {}, { ttl: 1 });
    await store.putItem(["t"], "ever", {}, { ttl: null });
    const [ever, short] = [await store.getItem(["t"], "ever"), await store.getItem(["t"], "short")];
    expect(ever).not.toHaveProperty("expires_at");
    expect(short).toMatchObject({ ttl: 1, expires_at: toIso(clock.now() + 60_000) });
    clock.advance(60_000);
    expect(await store.getItem(["t"], "short")).toBeNull();
    expect(await store.getItem(["t"], "default", { refreshTtl: true })).toMatchObject({
      ttl: 10,
      expires_at: toIso(clock.now() + 600_000),
    });
    clock.advance(9.5 * 60_000);
    expect((await store.searchItems(["t"])).items.map(({ key }) => key).toSorted()).toEqual([
      "default",
      "ever",
    ]);
    clock.advance(60_000);
    expect((await store.searchItems(["t"])).items.map(({ key }) => key)).toEqual(["ever"]);
  });

  test("tenants do not see each other's", async () => {
    const { url } = await serve({ keys: ["red:red-key", "blue:blue-key"] });
    const [red, blue] = [connect(url, "red-key").store, connect(url, "blue-key").store];
    await red.putItem(["a"], "k", { of: "red" });
    expect(await blue.getItem(["a"], "k")).toBeNull();
    expect((await blue.searchItems([])).items).toEqual([]);
    expect((await blue.listNamespaces()).namespaces).toEqual([]);
    await blue.deleteItem(["a"], "k");
    expect((await red.getItem(["a"], "k"))?.value).toEqual({ of: "red" });
  });

  test("what is acknowledged is there after a restart", async () => {
    const data = await directory();
    const first = await serve({ data });
    await connect(first.url).store.putItem(["a", "b"], "k", { kept: true });
    await first.close();
    const { url } = await serve({ data });
    expect((await connect(url).store.getItem(["a", "b"], "k"))?.value).toEqual({ kept: true });
  });
});

describe("the store's wire", () => {
  const item = { namespace: ["a"], key: "k", value: {} };
  const put = (url: string, body: unknown) =>
    fetch(`${url}/store/items`, { method: "PUT", body: JSON.stringify(body) });

  test.each<[body: object, status: number, at: string]>([
    [{ ...item, namespace: [] }, 400, "namespace"],
    [{ ...item, namespace: ["u.x"] }, 422, "namespace[0]"],
    [{ ...item, namespace: ["langgraph", "x"] }, 422, "namespace[0]"],
    [{ ...item, namespace: undefined }, 422, "namespace"],
    [{ ...item, key: undefined }, 422, "key"],
    [{ ...item, key: "" }, 422, "key"],
    [{ ...item, value: null }, 422, "value"],
    [{ ...item, value: "text" }, 422, "value"],
    [{ ...item, ttl: -1 }, 422, "ttl"],
    [{ ...item, index: true }, 422, "index"],
    [{ ...item, value: { x: "y".repeat(1024 * 1024) } }, 422, "value"],
  ])("a put of %j is %i at %s", async (body, status, at) => {
    const { url } = await serve();
    const answer = await put(url, body);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ detail: expect.any(String), errors: [{ at }] });
  });

  test("the answers are those of the platform", async () => {
    const { url } = await serve();
    const stored = await put(url, { ...item, namespace: ["a", "b"], index: null, unknown: 1 });
    expect([stored.status, await stored.text()]).toEqual([204, ""]);
    for (const query of ["namespace=a.b", "namespace=a&namespace=b", 'namespace=["a","b"]']) {
      expect(await (await get(`${url}/store/items?${query}&key=k`)).json()).toEqual({
        ...item,
        namespace: ["a", "b"],
        created_at: aTime,
        updated_at: aTime,
      });
    }
    const none = await get(`${url}/store/items?key=k`);
    expect([none.status, await none.text()]).toEqual([200, "null"]);
    expect(await (await get(`${url}/store/items?namespace=a`)).json()).toMatchObject({
      errors: [{ at: "key" }],
    });
    expect(await (await post(`${url}/store/items/search`, { namespace_prefix: null })).json()).toEqual({
      items: [expect.objectContaining({ key: "k" })],
    });
    expect(await (await post(`${url}/store/namespaces`, { prefix: [] })).json()).toEqual({
      namespaces: [["a", "b"]],
    });
    const odd = await post(`${url}/store/items/search`, { filter: { n: { $near: 1 } } });
    expect([odd.status, await odd.json()]).toMatchObject([422, { errors: [{ at: "filter.n.$near" }] }]);
    const gone = await fetch(`${url}/store/items`, { method: "DELETE", body: JSON.stringify(item) });
    expect([gone.status, await gone.text()]).toEqual([204, ""]);
    const nowhere = await fetch(`${url}/store/items`, { method: "DELETE", body: '{"key":"k"}' });
    expect(nowhere.status).toBe(400);
  });

  test("an embedder is loaded from a file, as a function or as LangChain's Embeddings", async () => {
    const home = await directory();
    await writeFile(
      join(home, "embed.ts"),
      `export const texts = async (texts: string[]): Promise<number[][]> => texts.map((t) => [t.includes("x") ? 1 : 0, 1]);
       export default { factor: 1, async embedDocuments(all: string[]) { return all.map((t) => [t.length * this.factor, 1]); } };
       export const none = 3;`,
    );
    const config = async (embed: string) => {
      const path = join(home, "heddle.json");
      await writeFile(
        path,
        JSON.stringify({ graphs: {}, store: { index: { embed, dims: 2, fields: ["t"] } } }),
      );
      return path;
    };
    const nearest = async (embed: string) => {
      const { url } = await serve({ config: await config(embed) });
      for (const t of ["a", "x".repeat(9)]) await put(url, { ...item, key: t, value: { t } });
      const answer = await post(`${url}/store/items/search`, { query: "x", limit: 1 });
      return ((await answer.json()) as { items: { key: string }[] }).items[0]?.key;
    };
    expect(await nearest("./embed.ts:texts")).toBe("x".repeat(9));
    expect(await nearest("./embed.ts")).toBe("a");
    await expect(nearest("./embed.ts:none")).rejects.toThrow(
      /store\.index\.embed: the export "none".* is no function/,
    );
    await expect(nearest("./nowhere.ts:e")).rejects.toThrow(/there is no file/);
    const hosted = await serve({ config: await config("openai:text-embedding-3-small") });
    const refused = await post(`${hosted.url}/store/items/search`, { query: "x" });
    expect([refused.status, await refused.json()]).toMatchObject([422, { errors: [{ at: "query" }] }]);
  });

  test("an embedder that fails is told of, and the item stays as it was", async () => {
    let works = true;
    const embed = (texts: string[]) => {
      if (!works) throw new Error("no quota");
      return texts.map(() => [1]);
    };
    const { url } = await serve({ store: { index: { embed, dims: 1 } } });
    expect((await put(url, { ...item, value: { n: 1 } })).status).toBe(204);
    works = false;
    const failed = await put(url, { ...item, value: { n: 2 } });
    expect([failed.status, await failed.json()]).toMatchObject([
      502,
      { detail: expect.stringContaining("no quota") },
    ]);
    expect(await (await get(`${url}/store/items?namespace=a&key=k`)).json()).toMatchObject({
      value: { n: 1 },
    });
  });
});

describe("ctx.store", () => {
  const memory = graph({
    state: { said: value<string>(), log: list<unknown>() },
    nodes: {
      remember: async ({ said }, { store, threadId }) => {
        const before = await store.get<{ said: string[] }>(["memory", "talk"], "all");
        const all = [...(before?.value.said ?? []), said ?? ""];
        await store.put(["memory", "talk"], "all", { said: all });
        await store.batch([
          { kind: "put", namespace: ["memory", "threads"], key: threadId, value: { said } },
          { kind: "delete", namespace: ["memory"], key: "nothing" },
        ]);
        return { log: [all] };
      },
      recall: async (_, { store }) => {
        const found = await store.search(["memory"], { filter: { said: { $gte: "a" } } });
        const namespaces = await store.listNamespaces({ prefix: ["memory"], maxDepth: 2 });
        return { log: [found.map(({ value }) => value["said"]), namespaces] };
      },
    },
    edges: { start: "remember", remember: "recall" },
  });

  test("nodes share what they keep with clients and with other threads, over a restart", async () => {
    const [[, connect] = []] = lines;
    if (connect === undefined) throw new Error("there is no client");
    const data = await directory();
    const say = async (url: string, said: string) => {
      const client = connect(url);
      const { thread_id } = await client.threads.create();
      const { log } = (await client.runs.wait(thread_id, "memory", { input: { said } })) as {
        log: unknown[];
      };
      return log;
    };
    const first = await serve({ data, graphs: { memory } });
    const namespaces = [
      ["memory", "talk"],
      ["memory", "threads"],
    ];
    expect(await say(first.url, "one")).toEqual([["one"], ["one"], namespaces]);
    await first.close();
    const { url } = await serve({ data, graphs: { memory } });
    expect(await say(url, "two")).toEqual([["one", "two"], ["two", "one"], namespaces]);
    expect((await connect(url).store.getItem(["memory", "talk"], "all"))?.value).toEqual({
      said: ["one", "two"],
    });
  });

  test("a refused call says why, and the run fails with it", async () => {
    const bad = graph({
      state: { log: list<unknown>() },
      nodes: { put: async (_, { store }) => (await store.put(["a.b"], "k", {}), {}) },
      edges: { start: "put" },
    });
    const { url } = await serve({ graphs: { bad } });
    const answer = await post(`${url}/runs/wait`, { assistant_id: "bad", input: {} });
    const why = await answer.text();
    expect(why).toContain("contain periods");
    if (!differs("refused namespaces of the store"))
      expect(why).toContain("namespace[0] cannot be empty or contain periods. Received: a.b");
  });

  test.skipIf(differs("the store of a run that has ended"))(
    "a node that was cancelled, or has returned, does not reach it any more",
    async () => {
      const reached = latch();
      const cancelled = latch();
      const errors: unknown[] = [];
      let kept: Ctx["store"] | undefined;
      const straggler = graph({
        state: { log: list<unknown>() },
        nodes: {
          quick: async (_, { store }) => {
            kept = store;
            await store.put(["s"], "quick", {});
            return {};
          },
          slow: async (_, { store }) => {
            reached.pass();
            await cancelled.passed;
            // The node ignores its abort signal.
            for (const call of [() => store.put(["s"], "late", {}), () => store.get(["s"], "quick")]) {
              await call().catch((error: unknown) => errors.push(error));
            }
            return {};
          },
        },
        edges: { start: "quick", quick: "slow" },
      });
      const { url } = await serve({ graphs: { straggler }, limits: { grace: 10 } });
      const [[, connect] = []] = lines;
      const client = connect?.(url);
      if (client === undefined) throw new Error("there is no client");
      const { thread_id } = await client.threads.create();
      const run = await client.runs.create(thread_id, "straggler", { input: {} });
      await reached.passed;
      await client.runs.cancel(thread_id, run.run_id, true);
      await client.runs.join(thread_id, run.run_id);
      cancelled.pass();
      await expect.poll(() => errors.length).toBe(2);
      for (const error of errors) {
        expect(error).toBeInstanceOf(ServiceError);
        expect(error).toMatchObject({ code: "journal.fenced" });
      }
      await expect(kept?.put(["s"], "after", {})).rejects.toThrow(/is over/);
      expect((await client.store.searchItems([])).items.map(({ key }) => key)).toEqual(["quick"]);
    },
  );

  test.skipIf(differs("timeouts of nodes"))(
    "of a try that took too long, the write on its way is not made",
    async () => {
      let answer: () => void = () => undefined;
      const asked = latch();
      const embed = (texts: string[]) => {
        if (!texts.some((text) => text.includes("first"))) return texts.map(() => [1]);
        asked.pass();
        return new Promise((resolve) => (answer = () => resolve(texts.map(() => [1]))));
      };
      let tries = 0;
      const writes: Promise<unknown>[] = [];
      const twice = graph({
        state: { log: list<string>() },
        nodes: {
          put: {
            timeout: 50,
            retry: { attempts: 2, initial: 1 },
            run: async (_: unknown, { store }: Ctx) => {
              const name = ++tries === 1 ? "first" : "second";
              const write = store.put(["t"], "k", { name });
              writes.push(write.catch((error: unknown) => error));
              await write;
              return { log: [name] };
            },
          },
        },
        edges: { start: "put" },
      });
      const { url } = await serve({ graphs: { twice }, store: { index: { embed, dims: 1 } } });
      const wait = post(`${url}/runs/wait`, { assistant_id: "twice", input: {} });
      await asked.passed;
      expect(await (await wait).json()).toEqual({ log: ["second"] });
      answer();
      expect(await writes[0]).toMatchObject({ code: "journal.fenced" });
      expect(await (await get(`${url}/store/items?namespace=t&key=k`)).json()).toMatchObject({
        value: { name: "second" },
      });
    },
  );
});
