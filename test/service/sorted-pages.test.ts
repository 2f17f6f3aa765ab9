import { expect, test } from "vitest";
import { SortedPages } from "../../src/service/sorted-pages.ts";

const COUNT = 200;
/** The numbers below {@link COUNT}, in another order. */
const numbers = Array.from({ length: COUNT }, (_, i) => (i * 7919) % COUNT);

/** Reads `limit` entries, and returns how many scans that took. */
async function read(most: number, offset: number, limit: number) {
  let scans = 0;
  const ordered = new SortedPages(
    async function* () {
      scans++;
      yield* numbers;
    },
    (a, b) => a - b,
    most,
  );
  const entries: number[] = [];
  if (limit > 0) {
    for await (const entry of ordered.from(offset, limit)) if (entries.push(entry) === limit) break;
  }
  return { entries, scans, total: ordered.total };
}

const upFrom = (offset: number, length: number) => Array.from({ length }, (_, i) => offset + i);

test("a page takes one scan, which holds no more than the page needs", async () => {
  expect(await read(100, 20, 10)).toEqual({ entries: upFrom(20, 10), scans: 1, total: COUNT });
  expect(await read(100, 0, 1)).toEqual({ entries: [0], scans: 1, total: COUNT });
});

test("what stands behind all that is held at a time is scanned for again", async () => {
  const near = [
    [19, 2],
    [20, 1],
  ] as const;
  const far = [...near, [0, COUNT], [190, 20]] as const;
  const windows = [
    // A scan for each entry, instead of one over all of them.
    ...[1, 3].map((most) => ({ most, pages: near })),
    ...[13, 20, 67, COUNT - 1, COUNT, COUNT + 1].map((most) => ({ most, pages: far })),
  ];
  for (const { most, pages } of windows) {
    for (const [offset, limit] of pages) {
      const { entries, total } = await read(most, offset, limit);
      expect(entries).toEqual(upFrom(offset, Math.min(limit, COUNT - offset)));
      expect(total).toBe(COUNT);
    }
  }
  expect((await read(20, 90, 10)).scans).toBe(5);
});

test("behind the end there is nothing, and one scan tells", async () => {
  expect(await read(100, 1_000_000_000, 10)).toEqual({ entries: [], scans: 1, total: COUNT });
  expect(await read(100, COUNT, 10)).toEqual({ entries: [], scans: 1, total: COUNT });
});

test("entries that come and go between two scans make it end all the same", async () => {
  let scans = 0;
  const ordered = new SortedPages(
    async function* () {
      // The entries of the first scan are gone, and new ones precede them.
      if (scans++ === 0) yield* numbers;
      else yield* numbers.map((n) => n - 100);
    },
    (a, b) => a - b,
    80,
  );
  const entries: number[] = [];
  for await (const entry of ordered.from(0)) entries.push(entry);
  expect(entries).toEqual([...upFrom(0, 80), ...upFrom(80, 20)]);
});
