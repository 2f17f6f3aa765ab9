import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { KeyValueEntry } from "../../src/ports/key-value-store.ts";
import { readSnapshotParts, writeSnapshotParts } from "../../src/replication/shard-snapshot-parts.ts";

const MIB = 1024 * 1024;
const DAMAGED = { code: "journal.damaged" };

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Entries in the order of their keys, with values of these lengths. */
const entriesOf = (lengths: readonly number[]): KeyValueEntry[] =>
  lengths.map((length, i) => [`key/${String(i).padStart(6, "0")}`, Buffer.alloc(length, i)]);

const partsOf = (lengths: readonly number[]): Promise<Uint8Array[]> =>
  collect(writeSnapshotParts(each(entriesOf(lengths))));
const read = (parts: readonly Uint8Array[]): Promise<KeyValueEntry[]> =>
  collect(readSnapshotParts(each(parts)));

test("entries of any lengths are read as they were written, from parts of 1 MiB", async () => {
  const length = fc.oneof(
    { weight: 8, arbitrary: fc.nat({ max: 300 }) },
    { weight: 2, arbitrary: fc.integer({ min: MIB - 40, max: MIB + 40 }) },
    { weight: 1, arbitrary: fc.nat({ max: 3 * MIB }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(length, { maxLength: 12 }), async (lengths) => {
      const parts = await partsOf(lengths);
      for (const part of parts.slice(0, -1)) expect(part.length).toBe(MIB);
      expect(parts.at(-1)?.length ?? 0).toBeLessThanOrEqual(MIB);
      const [found, expected] = [await read(parts), entriesOf(lengths)];
      expect(found.map(([key]) => key)).toEqual(expected.map(([key]) => key));
      for (const [i, [, value]] of expected.entries()) expect(found[i]?.[1].equals(value)).toBe(true);
    }),
    { numRuns: 30 },
  );
});

describe("parts that are damaged are refused", () => {
  const small = Array.from({ length: 5_000 }, () => 1_000);

  test.each<[string, (parts: Uint8Array[]) => Uint8Array[]]>([
    ["one in the middle is missing", (parts) => parts.toSpliced(2, 1)],
    ["one is given twice", (parts) => parts.toSpliced(2, 0, parts[2] as Uint8Array)],
    ["two are exchanged", ([a, b, c, ...others]) => [a, c, b, ...others] as Uint8Array[]],
    ["the last one is cut", (parts) => [...parts.slice(0, -1), (parts.at(-1) as Uint8Array).slice(0, -10)]],
    ["one is empty", (parts) => parts.toSpliced(2, 1, new Uint8Array(0))],
    [
      "a byte is another",
      (parts) => parts.map((part, i) => (i === 1 ? part.map((b, at) => (at === 5_000 ? b ^ 1 : b)) : part)),
    ],
  ])("%s", async (_, damage) => {
    const parts = await partsOf(small);
    expect(parts.length).toBeGreaterThan(4);
    await expect(read(damage(parts))).rejects.toMatchObject(DAMAGED);
  });

  test("one at the end is missing, within an entry", async () => {
    const parts = await partsOf([2 * MIB]);
    await expect(read(parts.slice(0, -1))).rejects.toMatchObject(DAMAGED);
  });
});
