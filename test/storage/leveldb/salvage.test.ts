import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTableFromBlocks } from "../../../src/storage/leveldb/salvage.ts";
import { expectEqual } from "../../fixtures/expect-equal.ts";
import { temporary } from "../support.ts";
import {
  damageIn,
  keyOf,
  levelDirectory,
  type LevelDirectory,
  openLevel,
  valueOf,
} from "./level-directory.ts";

const KEYS = 2_000;
const PAGE = 4096;

let level: LevelDirectory;
beforeAll(async () => {
  level = await levelDirectory(KEYS);
});
afterAll(() => level.remove());

const keys = Array.from({ length: KEYS }, (_, n) => keyOf(n));

/** The keys that LevelDB itself reads from a table built of the remaining blocks, and the ranges reported as lost. */
async function salvaged(bytes: Buffer) {
  const damage = damageIn(bytes, level.table);
  const blocks = damage[0]?.blocks ?? [];
  const lost = damage.flatMap(({ range }) => range ?? []);
  const { path, remove } = temporary();
  const database = join(path, "level");
  mkdirSync(database);
  const read: string[] = [];
  try {
    if (blocks.length > 0) {
      writeFileSync(join(database, "000005.ldb"), buildTableFromBlocks(bytes, blocks));
      await ClassicLevel.repair(database);
      const db = openLevel(database);
      for await (const [key, value] of db.iterator()) {
        expectEqual(value, valueOf(keys.indexOf(key)));
        read.push(key);
      }
      for (const key of read.slice(0, 50)) expect(db.getSync(key)).toBeDefined();
      await db.close();
    }
  } finally {
    remove();
  }
  const isLost = (key: string): boolean => lost.some(({ from, to }) => key >= from && key <= to);
  // All keys outside of the lost ranges exist.
  expect(keys.filter((key) => !isLost(key) && !read.includes(key))).toEqual([]);
  return { read, lost };
}

function zeroed(from: number, to: number): Buffer {
  const copy = Buffer.from(level.bytes);
  return copy.fill(0, from, to);
}

describe("of a table that has lost its index", () => {
  test("all is read where only the index is gone", async () => {
    for (const cut of [48, 60, 300]) {
      const { read, lost } = await salvaged(zeroed(level.bytes.length - cut, level.bytes.length));
      expect(read).toEqual(keys);
      expect(lost).toEqual([]);
    }
  });

  test("what lies before a cut is read", async () => {
    for (const share of [0.2, 0.5, 0.8]) {
      const at = Math.round(level.bytes.length * share);
      const { read, lost } = await salvaged(level.bytes.subarray(0, at));
      expect(read).toEqual(keys.slice(0, read.length));
      expect(read.length).toBeGreaterThan(KEYS * share * 0.7);
      expect(lost).toMatchObject([{ to: keyOf(KEYS - 1) }]);
    }
  });

  test("what lies behind another damaged part is read", async () => {
    const { length } = level.bytes;
    for (const at of [0, PAGE, length >> 1]) {
      const bytes = zeroed(at, at + 500).fill(0, length - 48);
      const { read, lost } = await salvaged(bytes);
      expect(read.length).toBeGreaterThan(KEYS * 0.6);
      expect(read.length).toBeLessThan(KEYS);
      expect(read.at(-1)).toBe(keyOf(KEYS - 1));
      expect(lost).toHaveLength(1);
    }
  });

  test("nothing of another table is taken for it", () => {
    // The same keys, written with other sequence numbers.
    const later = { ...level.table, first: Buffer.from(level.table.first) };
    later.first[later.first.length - 7] = 9;
    for (const bytes of [
      level.bytes.subarray(0, -100),
      zeroed(level.bytes.length - 48, level.bytes.length),
    ]) {
      expect(damageIn(bytes, later)).toMatchObject([
        { range: { from: keyOf(0), to: keyOf(KEYS - 1) }, blocks: [] },
      ]);
    }
  });

  test("nothing is read where nothing is left", async () => {
    expect((await salvaged(Buffer.alloc(level.bytes.length))).read).toEqual([]);
    expect((await salvaged(Buffer.alloc(0))).read).toEqual([]);
  });
});
