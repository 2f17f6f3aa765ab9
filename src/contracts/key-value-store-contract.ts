import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import type { KeyValueStore, ScanRange } from "../ports/key-value-store.ts";
import { defineContract } from "./contract.ts";

/** A store under test, which is empty and open. */
export interface KeyValueStoreHarness {
  readonly store: KeyValueStore;
}

/** All keys that the contract uses. */
const ALL: ScanRange = { gte: "!", lt: "~" };
const UNAVAILABLE = { name: "ServiceError", code: "storage.unavailable" };

type Entries = { readonly [key: string]: string | null };

async function put(store: KeyValueStore, entries: Entries, sync = false): Promise<void> {
  const ops = Object.entries(entries).map(([key, value]) => ({
    key,
    value: value === null ? null : Buffer.from(value),
  }));
  await store.batch(ops, { sync });
}

const get = async (store: KeyValueStore, key: string): Promise<string | undefined> =>
  (await store.get(key))?.toString();

/** Reads several keys at once. */
const getAll = (store: KeyValueStore, ...keys: readonly string[]): Promise<readonly (string | undefined)[]> =>
  Promise.all(keys.map((key) => get(store, key)));

async function entriesOf(store: KeyValueStore, range: ScanRange): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const [key, value] of store.entries(range)) found.push(`${key}=${value.toString()}`);
  return found;
}

async function keysOf(store: KeyValueStore, range: ScanRange): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const page of store.keys(range)) found.push(...page);
  return found;
}

const numbered = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `k/${String(i).padStart(5, "0")}`);

/** The contract of every {@link KeyValueStore}, in this process or over a network. */
export const keyValueStoreContract = defineContract<KeyValueStoreHarness>({
  "gives back what a batch has stored, with sync and without": async ({ store }) => {
    for (const sync of [true, false]) {
      await put(store, { a: "1", b: "2" }, sync);
      deepEqual(await getAll(store, "a", "b", "c"), ["1", "2", undefined]);
      await put(store, { a: "3", b: null }, sync);
      deepEqual(await getAll(store, "a", "b"), ["3", undefined]);
    }
  },

  "keeps values of any bytes and any length, also none": async ({ store }) => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256));
    const ops = [
      { key: "bytes", value: bytes },
      { key: "empty", value: Buffer.alloc(0) },
    ];
    await store.batch(ops, { sync: true });
    ok(bytes.equals((await store.get("bytes")) ?? Buffer.alloc(0)), "the bytes have changed");
    equal((await store.get("empty"))?.length, 0);
  },

  "of two changes of one key in a batch, the later one wins": async ({ store }) => {
    const value = Buffer.from("x");
    const ops = [
      { key: "put", value: null },
      { key: "put", value },
      { key: "deleted", value },
      { key: "deleted", value: null },
    ];
    await store.batch(ops, { sync: false });
    deepEqual(await getAll(store, "put", "deleted"), ["x", undefined]);
  },

  "stores all of several batches that are in flight at once": async ({ store }) => {
    const names = numbered(50);
    await Promise.all(names.map((name, i) => put(store, { [name]: name }, i % 2 === 0)));
    deepEqual(await keysOf(store, ALL), names);
  },

  "values that are known to take long are read like others, however many at once": async ({ store }) => {
    const text = "x".repeat(400_000);
    const keys = Array.from({ length: 10 }, (_, i) => `large${i}`);
    await put(store, Object.fromEntries(keys.map((key, i) => [key, `${i}${text}`])));
    const found = await Promise.all([...keys, "none"].map((key) => store.get(key, true)));
    deepEqual(
      found.map((bytes) => bytes?.length),
      [...keys.map(() => 400_001), undefined],
    );
    equal(found.map((bytes) => bytes?.toString("latin1", 0, 1)).join(""), "0123456789");
  },

  "a large batch is like any other": async ({ store }) => {
    const [first, second] = ["1".repeat(200_000), "2".repeat(200_000)];
    await put(store, { a: "1", b: "2" });
    await put(store, { a: first, b: null, c: second, d: "" }, true);
    ok((await get(store, "a")) === first && (await get(store, "c")) === second, "the texts have changed");
    deepEqual(await getAll(store, "b", "d"), [undefined, ""]);
  },

  "stores nothing for an empty batch, and deletes what is not there": async ({ store }) => {
    await store.batch([], { sync: true });
    await put(store, { none: null });
    deepEqual(await entriesOf(store, ALL), []);
  },

  "reads a range in the order of the bytes, its start included and its end not": async ({ store }) => {
    await put(store, {
      "a/1": "1",
      "a/10": "10",
      "a/2": "2",
      "A/1": "A",
      a0: "beyond",
      b: "b",
      "a/": "first",
    });
    deepEqual(await entriesOf(store, { gte: "a/", lt: "a0" }), ["a/=first", "a/1=1", "a/10=10", "a/2=2"]);
    deepEqual(await keysOf(store, { gte: "a/", lt: "a0" }), ["a/", "a/1", "a/10", "a/2"]);
    deepEqual(await keysOf(store, ALL), ["A/1", "a/", "a/1", "a/10", "a/2", "a0", "b"]);
    deepEqual(await keysOf(store, { gte: "c", lt: "d" }), []);
  },

  "reads from the end of a range, and no more than the limit": async ({ store }) => {
    await put(store, { a: "1", b: "2", c: "3", d: "4" });
    deepEqual(await entriesOf(store, { gte: "a", lt: "d", reverse: true }), ["c=3", "b=2", "a=1"]);
    deepEqual(await entriesOf(store, { gte: "a", lt: "d", reverse: true, limit: 2 }), ["c=3", "b=2"]);
    deepEqual(await keysOf(store, { gte: "b", lt: "~", limit: 2 }), ["b", "c"]);
    deepEqual(await keysOf(store, { gte: "b", lt: "~", reverse: true, limit: 1 }), ["d"]);
  },

  "reads long ranges to their end": async ({ store }) => {
    const names = numbered(3_000);
    await put(store, Object.fromEntries(names.map((name) => [name, name.repeat(10)])));
    deepEqual(await keysOf(store, ALL), names);
    deepEqual(await keysOf(store, { ...ALL, reverse: true }), names.toReversed());
    deepEqual(
      await entriesOf(store, ALL),
      names.map((name) => `${name}=${name.repeat(10)}`),
    );
  },

  "a scan shows one moment: what is stored while it reads is not in it": async ({ store }) => {
    const names = numbered(2_000);
    await put(store, Object.fromEntries(names.map((name) => [name, "before"])));
    const found: string[] = [];
    for await (const [key, value] of store.entries(ALL)) {
      if (found.length === 0) await put(store, { "k/01999": "after", "k/01000": null, "k/new": "new" });
      found.push(`${key}=${value.toString()}`);
    }
    deepEqual(
      found,
      names.map((name) => `${name}=before`),
    );
    deepEqual(await getAll(store, "k/01999", "k/01000", "k/new"), ["after", undefined, "new"]);
  },

  "a scan may be left before its end": async ({ store }) => {
    await put(store, { a: "1", b: "2", c: "3" });
    for await (const [key] of store.entries(ALL)) if (key === "b") break;
    for await (const _ of store.keys(ALL)) break;
    deepEqual(await keysOf(store, ALL), ["a", "b", "c"]);
  },

  "a read that begins during a batch sees all of it or nothing": async ({ store }) => {
    await put(store, { a: "1", b: "1" });
    const stored = put(store, { a: "2", b: "2" }, true);
    const seen = (await entriesOf(store, ALL)).join();
    ok(seen === "a=1,b=1" || seen === "a=2,b=2", `it sees ${seen}`);
    await stored;
    deepEqual(await entriesOf(store, ALL), ["a=2", "b=2"]);
  },

  "while it is closed, it refuses to read and to write; a second close does nothing": async ({ store }) => {
    await store.close();
    await store.close();
    // An async function, because `get` may throw.
    await rejects(async () => store.get("a"), UNAVAILABLE);
    await rejects(async () => store.get("a", true), UNAVAILABLE);
    await rejects(put(store, { a: "1" }), UNAVAILABLE);
    await rejects(entriesOf(store, ALL), UNAVAILABLE);
    await rejects(keysOf(store, ALL), UNAVAILABLE);
  },

  "has everything after a close and an open": async ({ store }) => {
    await put(store, { a: "1" });
    await put(store, { b: "2" }, true);
    await store.close();
    await store.open();
    deepEqual(await entriesOf(store, ALL), ["a=1", "b=2"]);
  },
});
