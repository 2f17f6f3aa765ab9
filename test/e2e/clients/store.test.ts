import { setImmediate } from "node:timers/promises";
import { expect } from "vitest";
import { aTime } from "../support/wire.ts";
import { proves } from "./table.ts";

/** The times of items are in milliseconds; items of the same time have no order among themselves. */
async function nextMillisecond(): Promise<void> {
  const before = Date.now();
  while (Date.now() === before) await setImmediate();
}

const ANN = ["users", "ann"];
const BO = ["users", "bo"];

proves("store", {
  putItem: [
    "stores a value, and another one in its place",
    async ({ client: { store } }) => {
      await store.putItem(ANN, "tea", { cups: 1, kind: "green" });
      const first = await store.getItem(ANN, "tea");
      expect(first).toMatchObject({ value: { cups: 1, kind: "green" }, key: "tea", namespace: ANN });
      await store.putItem(ANN, "tea", { cups: 2 });
      const second = await store.getItem(ANN, "tea");
      expect(second).toMatchObject({ value: { cups: 2 }, createdAt: first?.createdAt });
      expect(second?.value).toEqual({ cups: 2 });
      expect(Date.parse(String(second?.updatedAt))).toBeGreaterThanOrEqual(
        Date.parse(String(first?.updatedAt)),
      );
      await expect(store.putItem([], "k", {})).rejects.toMatchObject({ status: 400 });
    },
  ],
  getItem: [
    "gives the item, or null where there is none",
    async ({ client: { store } }) => {
      await store.putItem(ANN, "tea", { cups: 1 });
      expect(await store.getItem(ANN, "tea")).toMatchObject({
        value: { cups: 1 },
        key: "tea",
        namespace: ANN,
        createdAt: aTime,
        updatedAt: aTime,
      });
      expect(await store.getItem(BO, "tea")).toBeNull();
      expect(await store.getItem(ANN, "milk")).toBeNull();
      expect(await store.getItem([], "tea")).toBeNull();
    },
  ],
  deleteItem: [
    "takes an item away; one that is not there is no error",
    async ({ client: { store } }) => {
      await store.putItem(ANN, "tea", { cups: 1 });
      await store.putItem(BO, "tea", { cups: 2 });
      await store.deleteItem(ANN, "tea");
      expect(await store.getItem(ANN, "tea")).toBeNull();
      expect(await store.getItem(BO, "tea")).toMatchObject({ value: { cups: 2 } });
      await store.deleteItem(ANN, "tea");
    },
  ],
  searchItems: [
    "finds what lies under a namespace, by what it holds, in pages, the latest first",
    async ({ client: { store } }) => {
      await store.putItem(ANN, "tea", { cups: 1, kind: "green" });
      await nextMillisecond();
      await store.putItem(BO, "tea", { cups: 2, kind: "black" });
      await nextMillisecond();
      await store.putItem(["others"], "tea", { cups: 3, kind: "green" });
      const cups = async (...asked: Parameters<typeof store.searchItems>) =>
        (await store.searchItems(...asked)).items.map(({ value }) => value["cups"]);
      expect(await cups(["users"])).toEqual([2, 1]);
      expect(await cups(ANN)).toEqual([1]);
      expect(await cups([])).toEqual([3, 2, 1]);
      expect(await cups(["users"], { filter: { kind: "green" } })).toEqual([1]);
      expect(await cups(["users"], { filter: { cups: { $gt: 1 } } })).toEqual([2]);
      expect(await cups([], { limit: 1, offset: 1 })).toEqual([2]);
      expect((await store.searchItems(BO)).items).toMatchObject([
        { key: "tea", namespace: BO, value: { cups: 2 }, createdAt: aTime, updatedAt: aTime },
      ]);
    },
  ],
  listNamespaces: [
    "lists the namespaces in use, by how they begin and end, cut to a depth",
    async ({ client: { store } }) => {
      for (const namespace of [ANN, BO, [...ANN, "notes"], ["others", "notes"]]) {
        await store.putItem(namespace, "k", { a: 1 });
      }
      const found = async (query?: Parameters<typeof store.listNamespaces>[0]) =>
        (await store.listNamespaces(query)).namespaces.map((labels) => labels.join("/"));
      expect(await found()).toEqual(["others/notes", "users/ann", "users/ann/notes", "users/bo"]);
      expect(await found({ prefix: ["users"] })).toEqual(["users/ann", "users/ann/notes", "users/bo"]);
      expect(await found({ suffix: ["notes"] })).toEqual(["others/notes", "users/ann/notes"]);
      expect(await found({ maxDepth: 1 })).toEqual(["others", "users"]);
      expect(await found({ limit: 1, offset: 1 })).toEqual(["users/ann"]);
    },
  ],
});
