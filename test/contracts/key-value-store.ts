import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { KeyValueStore, ScanRange } from "../../src/ports/key-value-store.ts";

/** A store under test. */
export interface KeyValueHarness {
  readonly store: KeyValueStore;
  /** Frees what the store has used. The store is closed by then. */
  end?(): void | Promise<void>;
}

/** The contract of every key-value store; run for each of them. */
export function keyValueStoreContract(name: string, make: () => KeyValueHarness): void {
  describe(`key-value store: ${name}`, () => {
    let harness: KeyValueHarness;
    beforeEach(async () => {
      harness = make();
      await harness.store.open();
    });
    afterEach(async () => {
      await harness.store.close();
      await harness.end?.();
    });

    const put = (entries: { readonly [key: string]: string | null }, sync = false): Promise<void> =>
      harness.store.batch(
        Object.entries(entries).map(([key, value]) => ({
          key,
          value: value === null ? null : Buffer.from(value),
        })),
        { sync },
      );
    const get = async (key: string): Promise<string | undefined> =>
      (await harness.store.get(key))?.toString();
    const entries = async (range: ScanRange): Promise<string[]> => {
      const found: string[] = [];
      for await (const [key, value] of harness.store.entries(range)) found.push(`${key}=${value.toString()}`);
      return found;
    };
    const keys = async (range: ScanRange): Promise<string[]> => {
      const found: string[] = [];
      for await (const page of harness.store.keys(range)) found.push(...page);
      return found;
    };
    const all: ScanRange = { gte: "!", lt: "~" };

    test.each([true, false])("gives back what a batch has stored, with sync %s", async (sync) => {
      await put({ a: "1", b: "2" }, sync);
      expect([await get("a"), await get("b"), await get("c")]).toEqual(["1", "2", undefined]);
      await put({ a: "3", b: null }, sync);
      expect([await get("a"), await get("b")]).toEqual(["3", undefined]);
    });

    test("keeps values of any bytes and any length, also none", async () => {
      const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256));
      const ops = [
        { key: "bytes", value: bytes },
        { key: "empty", value: Buffer.alloc(0) },
      ];
      await harness.store.batch(ops, { sync: true });
      expect(bytes.equals((await harness.store.get("bytes")) ?? Buffer.alloc(0))).toBe(true);
      expect((await harness.store.get("empty"))?.length).toBe(0);
    });

    test("of two changes of one key in a batch, the later one wins", async () => {
      const value = Buffer.from("x");
      const ops = [
        { key: "put", value: null },
        { key: "put", value },
        { key: "deleted", value },
        { key: "deleted", value: null },
      ];
      await harness.store.batch(ops, { sync: false });
      expect([await get("put"), await get("deleted")]).toEqual(["x", undefined]);
    });

    test("values that are known to take long are read like others, however many at once", async () => {
      const text = "x".repeat(400_000);
      const keys = Array.from({ length: 10 }, (_, i) => `large${i}`);
      await put(Object.fromEntries(keys.map((key, i) => [key, `${i}${text}`])));
      const found = await Promise.all([...keys, "none"].map((key) => harness.store.get(key, true)));
      expect(found.map((bytes) => bytes?.length)).toEqual([...keys.map(() => 400_001), undefined]);
      expect(found.map((bytes) => bytes?.toString("latin1", 0, 1)).join("")).toBe("0123456789");
    });

    test("a large batch is like any other", async () => {
      const [first, second] = ["1", "2"].map((text) => text.repeat(200_000)) as [string, string];
      await put({ a: "1", b: "2" });
      await put({ a: first, b: null, c: second, d: "" }, true);
      expect((await get("a")) === first && (await get("c")) === second).toBe(true);
      expect([await get("b"), await get("d")]).toEqual([undefined, ""]);
    });

    test("stores nothing for an empty batch, and deletes what is not there", async () => {
      await harness.store.batch([], { sync: true });
      await put({ none: null });
      expect(await entries(all)).toEqual([]);
    });

    test("reads a range in the order of the bytes, its start included and its end not", async () => {
      await put({ "a/1": "1", "a/10": "10", "a/2": "2", "A/1": "A", a0: "beyond", b: "b", "a/": "first" });
      expect(await entries({ gte: "a/", lt: "a0" })).toEqual(["a/=first", "a/1=1", "a/10=10", "a/2=2"]);
      expect(await keys({ gte: "a/", lt: "a0" })).toEqual(["a/", "a/1", "a/10", "a/2"]);
      expect(await keys(all)).toEqual(["A/1", "a/", "a/1", "a/10", "a/2", "a0", "b"]);
      expect(await keys({ gte: "c", lt: "d" })).toEqual([]);
    });

    test("reads from the end of a range, and no more than the limit", async () => {
      await put({ a: "1", b: "2", c: "3", d: "4" });
      expect(await entries({ gte: "a", lt: "d", reverse: true })).toEqual(["c=3", "b=2", "a=1"]);
      expect(await entries({ gte: "a", lt: "d", reverse: true, limit: 2 })).toEqual(["c=3", "b=2"]);
      expect(await keys({ gte: "b", lt: "~", limit: 2 })).toEqual(["b", "c"]);
      expect(await keys({ gte: "b", lt: "~", reverse: true, limit: 1 })).toEqual(["d"]);
    });

    test("reads long ranges to their end", async () => {
      const names = Array.from({ length: 3_000 }, (_, i) => `k/${String(i).padStart(5, "0")}`);
      await put(Object.fromEntries(names.map((name) => [name, name.repeat(10)])));
      expect(await keys(all)).toEqual(names);
      expect(await keys({ ...all, reverse: true })).toEqual(names.toReversed());
      expect(await entries(all)).toEqual(names.map((name) => `${name}=${name.repeat(10)}`));
    });

    test("a scan shows one moment: what is stored while it reads is not in it", async () => {
      const names = Array.from({ length: 2_000 }, (_, i) => `k/${String(i).padStart(5, "0")}`);
      await put(Object.fromEntries(names.map((name) => [name, "before"])));
      const found: string[] = [];
      for await (const [key, value] of harness.store.entries(all)) {
        if (found.length === 0) await put({ "k/01999": "after", "k/01000": null, "k/new": "new" });
        found.push(`${key}=${value.toString()}`);
      }
      expect(found).toEqual(names.map((name) => `${name}=before`));
      expect([await get("k/01999"), await get("k/01000"), await get("k/new")]).toEqual([
        "after",
        undefined,
        "new",
      ]);
    });

    test("a scan may be left before its end", async () => {
      await put({ a: "1", b: "2", c: "3" });
      for await (const [key] of harness.store.entries(all)) if (key === "b") break;
      for await (const _ of harness.store.keys(all)) break;
      expect(await keys(all)).toEqual(["a", "b", "c"]);
    });

    test("a read that begins during a batch sees all of it or nothing", async () => {
      await put({ a: "1", b: "1" });
      const stored = put({ a: "2", b: "2" }, true);
      const seen = await entries(all);
      expect([
        ["a=1", "b=1"],
        ["a=2", "b=2"],
      ]).toContainEqual(seen);
      await stored;
      expect(await entries(all)).toEqual(["a=2", "b=2"]);
    });

    test("while it is closed, it refuses to read and to write; a second close does nothing", async () => {
      await harness.store.close();
      await harness.store.close();
      const unavailable = { code: "storage.unavailable" };
      await expect((async () => harness.store.get("a"))()).rejects.toMatchObject(unavailable);
      await expect((async () => harness.store.get("a", true))()).rejects.toMatchObject(unavailable);
      await expect(put({ a: "1" })).rejects.toMatchObject(unavailable);
      await expect(entries(all)).rejects.toMatchObject(unavailable);
      await expect(keys(all)).rejects.toMatchObject(unavailable);
    });

    test("has everything after a close and an open", async () => {
      await put({ a: "1" });
      await put({ b: "2" }, true);
      await harness.store.close();
      await harness.store.open();
      expect(await entries(all)).toEqual(["a=1", "b=2"]);
    });
  });
}
