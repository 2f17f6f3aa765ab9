import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, type LangGraphRunnableConfig, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { resolveLibrary } from "../../src/langgraph/user-library.ts";
import { createBaseStore } from "../../src/langgraph/base-store.ts";
import { createStore, DEFAULT_STORE_POLICY } from "../../src/service/store/store.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { deps } from "../storage/support.ts";
import { graphFile, served } from "./support.ts";

const State = Annotation.Root({ found: Annotation<unknown> });

/** A graph of one node, which uses the store. */
const asking = (ask: (config: LangGraphRunnableConfig) => Promise<unknown>) =>
  new StateGraph(State)
    .addNode("ask", async (_, config) => ({ found: await ask(config) }))
    .addEdge("__start__", "ask")
    .compile();

async function start(ask: (config: LangGraphRunnableConfig) => Promise<unknown>) {
  const { url, complaints } = await serve({ langGraphs: await served({ g: asking(ask) }) });
  const client = new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
  const { thread_id } = await client.threads.create();
  const run = () => client.runs.wait(thread_id, "g", { input: {} });
  return { client, thread_id, run, complaints };
}

test("nodes and clients share one store", async () => {
  const { client, run } = await start(async ({ store }) => {
    await store?.put(["users", "ann"], "from a node", { n: 1 });
    const item = await store?.get(["users", "ann"], "from a client");
    return { ...item, isDate: item?.createdAt instanceof Date };
  });
  await client.store.putItem(["users", "ann"], "from a client", { text: "hi" });
  expect(await run()).toMatchObject({
    found: { namespace: ["users", "ann"], key: "from a client", value: { text: "hi" }, isDate: true },
  });
  expect(await client.store.getItem(["users", "ann"], "from a node")).toMatchObject({ value: { n: 1 } });
});

test("search, with a filter and by pages; deletion", async () => {
  const { run } = await start(async ({ store }) => {
    if (store === undefined) throw new Error("there is no store");
    await Promise.all([1, 2, 3].map((n) => store.put(["a", String(n)], "k", { n })));
    await store.put(["b", "1"], "k", { n: 1 });
    const keys = async (...args: Parameters<typeof store.search>) =>
      (await store.search(...args)).map(({ namespace }) => namespace.join("."));
    const found = {
      all: await keys(["a"]),
      filtered: await keys(["a"], { filter: { n: { $gte: 2 } } }),
      page: (await keys(["a"], { limit: 1, offset: 1 })).length,
      long: (await keys(["a"], { limit: 2_500 })).length,
    };
    await store.delete(["b", "1"], "k");
    return { ...found, gone: await store.get(["b", "1"], "k") };
  });
  const { found } = (await run()) as { found: Record<string, unknown[]> };
  expect(found).toMatchObject({ page: 1, long: 3, gone: null });
  expect(found["all"]?.toSorted()).toEqual(["a.1", "a.2", "a.3"]);
  expect(found["filtered"]?.toSorted()).toEqual(["a.2", "a.3"]);
});

test("a message in an item comes back as one, and clients see it as JSON", async () => {
  const { client, run } = await start(async ({ store }) => {
    await store?.put(["memories"], "k", {
      message: new HumanMessage({ id: "1", content: "hi" }),
      at: new Date(0),
    });
    const value = (await store?.get(["memories"], "k"))?.value;
    return [value?.["message"] instanceof HumanMessage, value?.["message"] instanceof AIMessage];
  });
  expect(await run()).toEqual({ found: [true, false] });
  const item = await client.store.getItem(["memories"], "k");
  expect(item?.value).toMatchObject({
    message: { type: "human", content: "hi" },
    at: "1970-01-01T00:00:00.000Z",
  });
});

test("what is refused is an error of the node, and names the field", async () => {
  const { run } = await start(async ({ store }) => {
    await store?.put(["langgraph", "own"], "k", {});
  });
  await expect(run()).rejects.toThrow(/namespace/);
});

test("a node that runs on after its run was cancelled writes no more", async () => {
  const begun = latch();
  const go = latch();
  const { client, thread_id } = await start(async ({ store }) => {
    begun.pass();
    await go.passed;
    await store?.put(["late"], "k", { n: 1 });
  });
  const { run_id } = await client.runs.create(thread_id, "g", { input: {} });
  await begun.passed;
  await client.runs.cancel(thread_id, run_id, true);
  go.pass();
  // A write of the node would have been stored before this one.
  await client.store.putItem(["after"], "k", {});
  expect(await client.store.getItem(["late"], "k")).toBeNull();
});

test("namespaces, by what they begin and end with", async () => {
  const storage = await openStorage({ kind: "memory" }, deps);
  const { items } = storage.catalog;
  const service = createStore({ ...deps, items, policy: DEFAULT_STORE_POLICY });
  const store = createBaseStore(await resolveLibrary(graphFile, null), {
    batch: (ops) => service.batch({ tenant: "_" }, ops),
  });
  for (const namespace of [
    ["a", "1"],
    ["a", "2"],
    ["b", "1", "x"],
  ]) {
    // oxlint-disable-next-line no-await-in-loop
    await store.put(namespace, "k", {});
  }
  expect(await store.listNamespaces()).toEqual([
    ["a", "1"],
    ["a", "2"],
    ["b", "1", "x"],
  ]);
  expect(await store.listNamespaces({ prefix: ["a"] })).toEqual([
    ["a", "1"],
    ["a", "2"],
  ]);
  expect(await store.listNamespaces({ suffix: ["1"] })).toEqual([["a", "1"]]);
  expect(await store.listNamespaces({ maxDepth: 1 })).toEqual([["a"], ["b"]]);
  expect(await store.listNamespaces({ limit: 1, offset: 1 })).toEqual([["a", "2"]]);
  await storage.close();
});
