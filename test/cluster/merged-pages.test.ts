import * as fc from "fast-check";
import { expect, test } from "vitest";
import { mergedPage, mergeSorted, readAll, type ReadPage } from "../../src/cluster/merged-pages.ts";

const ascending = (a: number, b: number): number => a - b;

const pagesOf =
  (list: readonly number[]): ReadPage<number> =>
  async (offset, limit) =>
    list.slice(offset, offset + limit);

test("a page of merged lists is that page of all entries", async () => {
  const lists = fc.array(fc.array(fc.nat(50)), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(lists, fc.nat(60), fc.nat(20), async (given, offset, limit) => {
      // Entries differ, as those of shards do.
      const sorted = given.map((list, i) =>
        [...new Set(list.map((n) => n * given.length + i))].toSorted(ascending),
      );
      const all = sorted.flat().toSorted(ascending);
      const page = await mergedPage(sorted.map(pagesOf), ascending, { offset, limit });
      expect(page).toEqual(all.slice(offset, offset + limit));
    }),
  );
});

test("a page far down is found, however the entries are spread", async () => {
  const even = Array.from({ length: 1_500 }, (_, i) => 2 * i);
  const odd = Array.from({ length: 3 }, (_, i) => 2 * i + 1);
  const page = await mergedPage([pagesOf(even), pagesOf([]), pagesOf(odd)], ascending, {
    offset: 1_400,
    limit: 3,
  });
  expect(page).toEqual([2_794, 2_796, 2_798]);
});

test("whoever stops reading ends the lists", async () => {
  const ended: number[] = [];
  async function* numbers(from: number): AsyncGenerator<number> {
    try {
      for (let n = from; ; n += 2) yield n;
    } finally {
      ended.push(from);
    }
  }
  const read: number[] = [];
  for await (const { entry } of mergeSorted([numbers(0), numbers(1)], ascending)) {
    read.push(entry);
    if (read.length === 5) break;
  }
  expect([read, ended]).toEqual([
    [0, 1, 2, 3, 4],
    [0, 1],
  ]);
  async function* failing(): AsyncGenerator<number> {
    yield 1;
    throw new Error("lost");
  }
  const entries = mergeSorted([failing(), numbers(0)], ascending);
  await expect(readAll(entries)).rejects.toThrow("lost");
  expect(ended).toEqual([0, 1, 0]);
});
