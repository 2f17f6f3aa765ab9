import { beforeEach, expect, test } from "vitest";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { openStorage, type Storage } from "../../src/storage/open-storage.ts";
import { all } from "./samples.ts";
import { deps } from "./support.ts";

const item = { namespace: ["a", "b"], key: "k" };
let kv: MemoryKeyValueStore;
let storage: Storage;

beforeEach(async () => {
  kv = new MemoryKeyValueStore();
  storage = await openStorage({ kind: "key-value", store: kv }, deps);
  const put = { kind: "put", ...item, value: {}, ttl: 60_000, vectors: [Float32Array.of(1)] } as const;
  await storage.catalog.items.change("_", [put], { now: 1_000, durable: true });
});

const found = async () => (await all(storage.journal.verify())).map(({ what }) => what);
const NAME = 'item "k" of ["a","b"]';

test("nothing is wrong with what is whole", async () => {
  expect(await found()).toEqual([]);
});

/** The only key with this prefix. */
async function keyOf(prefix: string): Promise<string> {
  const keys = (await all(kv.entries({ gte: prefix, lt: `${prefix}~` }))).map(([at]) => at);
  expect(keys).toHaveLength(1);
  return keys[0] ?? "";
}

test.each([
  ["_/sv/", [`${NAME} has no value`]],
  ["!expire/", [`${NAME} expires, and nothing will delete it`]],
  [
    "_/s/",
    [
      `${NAME} is to expire, and is not there or lives on`,
      `${NAME} has a value and no record`,
      `${NAME} has vectors and no record`,
    ],
  ],
])("that %s is missing is told", async (prefix, told) => {
  await kv.batch([{ key: await keyOf(prefix), value: null }], { sync: true });
  expect(await found()).toEqual(told);
});

test("a byte that is wrong is told, and not read over", async () => {
  for (const room of ["_/s/", "_/sv/", "_/sx/"]) {
    const key = await keyOf(room);
    const bytes = Buffer.from(kv.get(key) ?? "");
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await kv.batch([{ key, value: bytes }], { sync: true });
  }
  expect(await found()).toEqual(Array(3).fill(expect.stringContaining("its checksum is wrong")));
  const damaged = expect.objectContaining({ code: "journal.damaged" }) as Error;
  await expect(all(storage.catalog.items.heads("_", []))).rejects.toEqual(damaged);
  await expect(all(storage.catalog.items.vectors("_", []))).rejects.toEqual(damaged);
  expect(() => storage.catalog.items.find("_", item)).toThrow(damaged);
});
