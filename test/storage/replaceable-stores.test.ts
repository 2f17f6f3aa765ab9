import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { KeyValueStore, ReplaceableKeyValueStore } from "../../src/ports/key-value-store.ts";
import { LevelDbKeyValueStore } from "../../src/storage/leveldb-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { temporary } from "./support.ts";

function newDirectory(): string {
  const directory = temporary();
  onTestFinished(directory.remove);
  return join(directory.path, "level");
}

const put = (store: KeyValueStore, entries: { readonly [key: string]: string }): Promise<void> =>
  store.batch(
    Object.entries(entries).map(([key, value]) => ({ key, value: Buffer.from(value) })),
    { sync: false },
  );

async function contents(store: KeyValueStore): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const [key, value] of store.entries({ gte: "", lt: "~" })) found[key] = value.toString();
  return found;
}

describe.each<[string, () => ReplaceableKeyValueStore]>([
  ["LevelDB", () => new LevelDbKeyValueStore(newDirectory(), false)],
  ["memory", () => new MemoryKeyValueStore()],
])("a store that can be replaced: %s", (_, make) => {
  test("has the new content alone, also after it is opened again, and can be replaced again", async () => {
    const store = make();
    await store.open();
    await put(store, { a: "1", b: "2" });
    await store.replace((empty) => put(empty, { b: "3", c: "4" }));
    expect(await contents(store)).toEqual({ b: "3", c: "4" });
    await put(store, { d: "5" });
    await store.close();
    await store.open();
    expect(await contents(store)).toEqual({ b: "3", c: "4", d: "5" });
    await store.replace(async (empty) => expect(await contents(empty)).toEqual({}));
    expect(await contents(store)).toEqual({});
    await store.close();
  });

  test("has its earlier content if it cannot be filled", async () => {
    const store = make();
    await store.open();
    await put(store, { a: "1" });
    const filled = store.replace(async (empty) => {
      await put(empty, { b: "2" });
      throw new Error("the source is gone");
    });
    await expect(filled).rejects.toThrow("the source is gone");
    expect(await contents(store)).toEqual({ a: "1" });
    await put(store, { c: "3" });
    expect(await contents(store)).toEqual({ a: "1", c: "3" });
    await store.close();
  });
});

describe("a process that ends while it replaces a LevelDB database", () => {
  async function filled(directory: string, value: string): Promise<void> {
    const store = new LevelDbKeyValueStore(directory, false);
    await store.open();
    await put(store, { a: value });
    await store.close();
  }

  async function opened(directory: string): Promise<LevelDbKeyValueStore> {
    const store = new LevelDbKeyValueStore(directory, false);
    await store.removeLeftovers();
    await store.open();
    onTestFinished(() => store.close());
    return store;
  }

  test("before the new one is complete: the earlier one is used, and the new one deleted", async () => {
    const directory = newDirectory();
    await filled(directory, "earlier");
    mkdirSync(`${directory}.new`);
    writeFileSync(join(`${directory}.new`, "000003.log"), "half");
    const store = await opened(directory);
    expect(await contents(store)).toEqual({ a: "earlier" });
    expect(existsSync(`${directory}.new`)).toBe(false);
    await store.replace((empty) => put(empty, { a: "new" }));
    expect(await contents(store)).toEqual({ a: "new" });
  });

  test("between the two: there is an empty one, which can be replaced", async () => {
    const directory = newDirectory();
    await filled(directory, "earlier");
    await filled(`${directory}.new`, "new");
    renameSync(directory, `${directory}.old`);
    const store = await opened(directory);
    expect(await contents(store)).toEqual({});
    await store.replace((empty) => put(empty, { a: "again" }));
    expect(await contents(store)).toEqual({ a: "again" });
    for (const rest of ["new", "old"]) expect(existsSync(`${directory}.${rest}`)).toBe(false);
  });

  test("before the earlier one is deleted: the new one is used", async () => {
    const directory = newDirectory();
    await filled(directory, "new");
    await filled(`${directory}.old`, "earlier");
    expect(await contents(await opened(directory))).toEqual({ a: "new" });
    expect(existsSync(`${directory}.old`)).toBe(false);
  });
});
