import { defineChapter, type TestedServer } from "../conformance-check.ts";
import { anything, aTimestamp, expectMatch, nullOrAbsent, oneOf } from "../response-pattern.ts";

/** Returns a namespace that no other check uses. */
async function freshNamespace({ client }: TestedServer): Promise<string[]> {
  return ["conformance", (await client.threads.create()).thread_id];
}

export const storeChecks = defineChapter("store", {
  "an item is put, and got by its namespace and key": async (server) => {
    const { store: items } = server.client;
    const namespace = await freshNamespace(server);
    await items.putItem(namespace, "tea", { colour: "green", n: 1 });
    const item = await items.getItem(namespace, "tea");
    expectMatch("the item", item, { namespace, key: "tea", value: { colour: "green", n: 1 } });
    const told = item as unknown as Record<string, unknown>;
    expectMatch("when it was made", told["createdAt"] ?? told["created_at"], aTimestamp);
  },
  "a second put replaces the value": async (server) => {
    const { store: items } = server.client;
    const namespace = await freshNamespace(server);
    await items.putItem(namespace, "tea", { colour: "green" });
    await items.putItem(namespace, "tea", { hot: true });
    const item = await items.getItem(namespace, "tea");
    expectMatch("the members", Object.keys(item?.value ?? {}), ["hot"]);
  },
  "an item that is not there is null or 404": async (server) => {
    const namespace = await freshNamespace(server);
    const path = `/store/items?namespace=${namespace.join(".")}&key=nothing`;
    const { status, body } = await server.http.send("GET", path);
    if (status !== 404) expectMatch("the answer", body, nullOrAbsent);
  },
  "over HTTP, the item of a query is found by its namespace joined with dots": async ({ http }) => {
    const namespace = ["conformance", "dotted"];
    await http.send("PUT", "/store/items", { namespace, key: "tea", value: { n: 1 } });
    const { status, body } = await http.send("GET", "/store/items?namespace=conformance.dotted&key=tea");
    expectMatch("the status", status, 200);
    expectMatch("the item", body, { namespace, key: "tea", value: { n: 1 } });
  },
  "delete takes an item away": async (server) => {
    const { store: items } = server.client;
    const namespace = await freshNamespace(server);
    await items.putItem(namespace, "tea", { n: 1 });
    await items.deleteItem(namespace, "tea");
    expectMatch("those left", await items.searchItems(namespace), { items: [] });
  },
  "search finds below a namespace, by filter and in pages": async (server) => {
    const { store: items } = server.client;
    const namespace = await freshNamespace(server);
    for (const [key, colour] of [
      ["a", "red"],
      ["b", "blue"],
      ["c", "red"],
    ] as const)
      // oxlint-disable-next-line no-await-in-loop -- the check depends on the order in which the items are stored
      await items.putItem([...namespace, "below"], key, { colour });
    const find = async (options?: Parameters<typeof items.searchItems>[1]) =>
      (await items.searchItems(namespace, options)).items.map(({ key }) => key).toSorted();
    expectMatch("all", await find(), ["a", "b", "c"]);
    expectMatch("those with the value", await find({ filter: { colour: "red" } }), ["a", "c"]);
    expectMatch("the number on a page", (await find({ limit: 2 })).length, 2);
    expectMatch("the number on the last page", (await find({ limit: 2, offset: 2 })).length, 1);
  },
  "namespaces are listed by prefix and depth": async (server) => {
    const { store: items } = server.client;
    const namespace = await freshNamespace(server);
    await items.putItem([...namespace, "x", "deep"], "k", { n: 1 });
    await items.putItem([...namespace, "y"], "k", { n: 1 });
    const list = async (options: Parameters<typeof items.listNamespaces>[0]) =>
      (await items.listNamespaces(options)).namespaces.map((each) => each.join("/")).toSorted();
    const base = namespace.join("/");
    expectMatch("all", await list({ prefix: namespace }), [`${base}/x/deep`, `${base}/y`]);
    expectMatch("cut at a depth", await list({ prefix: namespace, maxDepth: 3 }), [`${base}/x`, `${base}/y`]);
  },
  "nodes and clients share the store": async ({ client }) => {
    const { thread_id: key } = await client.threads.create();
    await client.runs.wait(null, "configured", { input: { seen: { key } } });
    expectMatch("the item", await client.store.getItem(["conformance", "nodes"], key), {
      value: { text: `put by a node: ${key}` },
    });
  },
  "over HTTP, a namespace with a dot in a part is refused": async ({ http }) => {
    const item = { namespace: ["a.b"], key: "k", value: { n: 1 } };
    const { status } = await http.send("PUT", "/store/items", item);
    expectMatch("the status", status, oneOf(400, 422));
  },
  "over HTTP, a put answers without an item": async ({ http }) => {
    const { status } = await http.send("PUT", "/store/items", {
      namespace: ["conformance", "http"],
      key: "k",
      value: { n: 1 },
    });
    expectMatch("the status", status, 204);
    const { body } = await http.send("POST", "/store/items/search", {
      namespace_prefix: ["conformance", "http"],
    });
    expectMatch("what is found", body, { items: [{ key: "k", value: { n: 1 }, created_at: anything }] });
  },
});
