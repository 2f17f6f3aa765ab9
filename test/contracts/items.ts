import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ItemKey, Namespace } from "../../src/model/store-item.ts";
import type { ItemChange, StoreItems, ItemWrite } from "../../src/ports/store-items.ts";
import { all, threadKey, Writer } from "../storage/samples.ts";
import type { Harness } from "./harness.ts";

/** The contract of every catalog's store of items; run for each storage. */
export function itemsContract(name: string, open: () => Promise<Harness>): void {
  describe(`items on ${name}`, () => {
    let harness: Harness;
    let items: StoreItems;
    beforeEach(async () => {
      harness = await open();
      ({ items } = harness.catalog);
    });
    afterEach(async () => {
      expect(await all(harness.journal.verify())).toEqual([]);
      await harness.close();
    });

    const at = (path: string): ItemKey => {
      const labels = path.split("/");
      return { key: labels.pop() ?? "", namespace: labels };
    };
    const put = (path: string, value: object = {}, more: { ttl?: number; vectors?: Float32Array[] } = {}) =>
      ({ kind: "put", ...at(path), value, ttl: null, vectors: [], ...more }) as ItemChange;
    const change = (
      changes: readonly ItemChange[],
      now = 1_000,
      { tenant = "_", ...write }: Partial<ItemWrite> & { tenant?: string } = {},
    ) => items.change(tenant, changes, { now, durable: true, ...write });
    const under = async (prefix: Namespace, tenant = "_") =>
      (await all(items.heads(tenant, prefix))).map(({ namespace, key }) => [...namespace, key].join("/"));
    const spaces = async (prefix: Namespace, depth = Infinity, now = 0) =>
      (await all(items.namespaces("_", { prefix, depth, now }))).map((labels) => labels.join("/"));

    test("an item comes back as it was last put; the first put's date stays", async () => {
      expect(await items.find("_", at("a/k"))).toBeUndefined();
      await change([put("a/k", { n: 1, deep: { é: [null, "x"] } })], 1_000);
      expect(await items.find("_", at("a/k"))).toEqual({
        ...at("a/k"),
        value: { n: 1, deep: { é: [null, "x"] } },
        created_at: 1_000,
        updated_at: 1_000,
        ttl: null,
        expires_at: null,
        bytes: expect.any(Number),
      });
      await change([put("a/k", { n: 2 })], 2_000);
      expect(await items.find("_", at("a/k"))).toMatchObject({
        value: { n: 2 },
        created_at: 1_000,
        updated_at: 2_000,
      });
      expect(await items.find("other", at("a/k"))).toBeUndefined();
      expect(await under([], "other")).toEqual([]);
    });

    test("changes in flight see one another", async () => {
      await Promise.all([
        change([put("a/k", { n: 1 }, { ttl: 50 })], 1_000),
        change([put("a/k", { n: 2 }, { ttl: 90 })], 1_001),
        change([{ kind: "delete", ...at("a/gone") }, put("a/gone"), { kind: "delete", ...at("a/gone") }]),
      ]);
      expect(await items.find("_", at("a/k"))).toMatchObject({
        created_at: 1_000,
        updated_at: 1_001,
        expires_at: 1_091,
      });
      expect(await items.expiring(10)).toEqual([{ tenant: "_", ...at("a/k"), expires_at: 1_091 }]);
      expect(await under(["a"])).toEqual(["a/k"]);
    });

    test("one that is changed while it is read is read whole, or not at all", async () => {
      await change([put("a/k", { n: 0 })], 0);
      for (let n = 1; n <= 20; n++) {
        const changed = change([n % 4 === 0 ? { kind: "delete", ...at("a/k") } : put("a/k", { n })], n);
        const found = await Promise.all(Array.from({ length: 5 }, () => items.find("_", at("a/k"))));
        const torn = found.filter((one) => one !== undefined && one.value["n"] !== one.updated_at);
        expect(torn).toEqual([]);
        await changed;
      }
    });

    test("those below a prefix are found, and no others", async () => {
      const paths = [
        "a/k",
        "a/b/k",
        "a/b/l",
        "a/b/c/k",
        "ab/k",
        "a-b/k",
        "b/k",
        "a/b!/k",
        "a/b#c/k",
        "a/k/k",
      ];
      await change(paths.map((path) => put(path)));
      await change([put("a/b/theirs")], 1, { tenant: "other" });
      await change([put("a/b/theirs")], 1, { tenant: "_2" });
      expect((await under([])).toSorted()).toEqual(paths.toSorted());
      expect(await under(["a", "b"])).toEqual(["a/b/k", "a/b/l", "a/b/c/k"]);
      expect(await under(["a", "b", "c"])).toEqual(["a/b/c/k"]);
      expect(await under(["a", "b", "k"])).toEqual([]);
      expect(await under(["b"])).toEqual(["b/k"]);
      expect(await under(["a", "b"], "other")).toEqual(["a/b/theirs"]);
    });

    test("names may hold anything", async () => {
      const odd = ["é", "/", "%", "#!", "\u0000", "\uD800", "..", "__proto__", "*", "a b", "\u{1F600}"];
      const places = odd.map((label, i) => ({ namespace: [label, odd.at(-i) ?? ""], key: `${label}/${i}` }));
      await change(places.map((place) => ({ kind: "put", ...place, value: {}, ttl: 5, vectors: [] })));
      for (const place of places) expect(await items.find("_", place)).toMatchObject(place);
      const listed = await all(items.heads("_", []));
      expect(listed.map(({ key }) => key).toSorted()).toEqual(places.map(({ key }) => key).toSorted());
      expect((await items.expiring(100)).map(({ key }) => key).toSorted()).toEqual(
        places.map(({ key }) => key).toSorted(),
      );
    });

    test("a deleted item takes all of it along", async () => {
      await change([put("a/k", {}, { ttl: 10, vectors: [Float32Array.of(1, 0)] }), put("a/l")]);
      await change([
        { kind: "delete", ...at("a/k") },
        { kind: "delete", ...at("a/never") },
      ]);
      expect(await items.find("_", at("a/k"))).toBeUndefined();
      expect(await all(items.vectors("_", []))).toEqual([]);
      expect(await items.expiring(10)).toEqual([]);
      expect(await under([])).toEqual(["a/l"]);
    });

    test("vectors come back to the bit, by prefix; a put without any takes them away", async () => {
      const vector = Float32Array.from({ length: 64 }, (_, i) => Math.sin(i) / 3);
      // Bytes that look like a text that cannot be encoded.
      const awkward = new Float32Array(Uint8Array.of(0xed, 0xa0, 0x80, 0xed, 0xef, 0xbf, 0xbd, 0x01).buffer);
      await change([
        put("a/k", {}, { vectors: [vector, awkward] }),
        put("a/b/l", {}, { vectors: [awkward] }),
        put("c/m", {}, { vectors: [vector] }),
        put("a/none"),
      ]);
      expect(await all(items.vectors("_", ["a"]))).toEqual([
        { ...at("a/k"), vectors: [vector, awkward] },
        { ...at("a/b/l"), vectors: [awkward] },
      ]);
      await change([put("a/k")]);
      expect(await all(items.vectors("_", ["a"]))).toEqual([{ ...at("a/b/l"), vectors: [awkward] }]);
    });

    test("namespaces come once each, parents first, cut where it is asked", async () => {
      expect(await spaces([])).toEqual([]);
      await change(
        ["a/b/c/1", "a/b/c/2", "a/b/d/1", "a/1", "a/2", "a-b/1", "b/x/y/1", "b/x/z/1"].map((path) =>
          put(path),
        ),
      );
      expect(await spaces([])).toEqual(["a", "a/b/c", "a/b/d", "a-b", "b/x/y", "b/x/z"]);
      expect(await spaces([], 1)).toEqual(["a", "a-b", "b"]);
      expect(await spaces([], 2)).toEqual(["a", "a/b", "a-b", "b/x"]);
      expect(await spaces(["a", "b"])).toEqual(["a/b/c", "a/b/d"]);
      expect(await spaces(["a", "b"], 1)).toEqual(["a"]);
      expect(await spaces(["nobody"])).toEqual([]);
    });

    test("a namespace of which all has expired is none", async () => {
      await change(
        [put("a/1", {}, { ttl: 10 }), put("a/2", {}, { ttl: 10 }), put("b/1", {}, { ttl: 10 })],
        100,
      );
      await change([put("b/2"), put("c/1", {}, { ttl: 500 })], 100);
      expect(await spaces([], Infinity, 109)).toEqual(["a", "b", "c"]);
      expect(await spaces([], Infinity, 110)).toEqual(["b", "c"]);
    });

    test("what expires is told by when, and goes when it has", async () => {
      await change([put("a/late", {}, { ttl: 900 }), put("a/soon", {}, { ttl: 100 }), put("a/never")], 1_000);
      await change([put("a/theirs", {}, { ttl: 300 })], 1_000, { tenant: "other" });
      const due = await items.expiring(10);
      expect(due.map(({ key, expires_at, tenant }) => [tenant, key, expires_at])).toEqual([
        ["_", "soon", 1_100],
        ["other", "theirs", 1_300],
        ["_", "late", 1_900],
      ]);
      expect(await items.expiring(1)).toEqual(due.slice(0, 1));
      expect(await items.expiring(0)).toEqual([]);
      // It exists until its expiry is processed.
      expect(await items.find("_", at("a/soon"))).toBeDefined();
      await change(
        due.flatMap(({ tenant, ...one }) => (tenant === "_" ? [{ kind: "expire" as const, ...one }] : [])),
        1_900,
      );
      expect(await under([])).toEqual(["a/never"]);
      expect((await items.expiring(10)).map(({ key }) => key)).toEqual(["theirs"]);
    });

    test("one that was put or refreshed meanwhile does not expire", async () => {
      await change([put("a/put", { n: 1 }, { ttl: 100 }), put("a/read", {}, { ttl: 100 })], 1_000);
      const due = await items.expiring(10);
      await Promise.all([
        change([put("a/put", { n: 2 }, { ttl: 100 }), { kind: "refresh", ...at("a/read") }], 1_099),
        change(
          due.map((one) => ({ kind: "expire" as const, ...one })),
          1_150,
        ),
      ]);
      expect(await under([])).toEqual(["a/put", "a/read"]);
      expect((await items.expiring(10)).map(({ expires_at }) => expires_at)).toEqual([1_199, 1_199]);
      expect(await items.find("_", at("a/read"))).toMatchObject({ updated_at: 1_000, expires_at: 1_199 });
    });

    test("a refresh does nothing to what is gone, has expired or lives for ever", async () => {
      await change([put("a/short", {}, { ttl: 10 }), put("a/ever")], 1_000);
      await change(
        ["a/short", "a/ever", "a/none"].map((path) => ({ kind: "refresh", ...at(path) })),
        1_010,
      );
      expect(await items.find("_", at("a/short"))).toMatchObject({ expires_at: 1_010 });
      expect(await items.find("_", at("a/ever"))).toMatchObject({ expires_at: null });
      expect(await items.find("_", at("a/none"))).toBeUndefined();
    });

    test("one that is put where another has expired is new", async () => {
      await change([put("a/k", {}, { ttl: 10 })], 1_000);
      await change([put("a/k")], 1_010);
      expect(await items.find("_", at("a/k"))).toMatchObject({ created_at: 1_010, expires_at: null });
      expect(await items.expiring(10)).toEqual([]);
    });

    test("a writer whose thread has another epoch, or is gone, is refused, and nothing is stored", async () => {
      const writer = new Writer(() => harness.journal, threadKey(1));
      const thread = writer.key;
      const write = (epoch: number) => change([put("a/k")], 1_000, { fence: { thread, epoch } });
      const refused = expect.objectContaining({ code: "journal.fenced" }) as Error;
      await expect(write(0)).rejects.toEqual(refused);
      await writer.append();
      const { epoch } = writer.record;
      await expect(write(epoch + 1)).rejects.toEqual(refused);
      expect(await under([])).toEqual([]);
      await write(epoch);
      expect(await under([])).toEqual(["a/k"]);
      // The next epoch is being written: later writers are stale already.
      const next = writer.append({ thread: { epoch: epoch + 1 } });
      await expect(change([put("a/l")], 1, { fence: { thread, epoch } })).rejects.toEqual(refused);
      await next;
      await change([put("a/m")], 1, { fence: { thread, epoch: epoch + 1 } });
      harness.journal.release(thread);
      await expect(change([put("a/n")], 1, { fence: { thread, epoch } })).rejects.toEqual(refused);
      expect(await under([])).toEqual(["a/k", "a/m"]);
    });

    test("all of it is there after the next open", async () => {
      const vectors = [Float32Array.of(0.5, 0.25)];
      await change([put("a/k", { n: 1 }, { ttl: 10, vectors }), put("b/c/l")], 1_000);
      const before = [await all(items.heads("_", [])), await items.expiring(10), await spaces([])];
      await harness.reopen();
      ({ items } = harness.catalog);
      expect([await all(items.heads("_", [])), await items.expiring(10), await spaces([])]).toEqual(before);
      expect(await items.find("_", at("a/k"))).toMatchObject({ value: { n: 1 } });
      expect(await all(items.vectors("_", []))).toEqual([{ ...at("a/k"), vectors }]);
    });
  });
}
