import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { crc32c, findChecksum, maskChecksum, unmaskChecksum } from "../../../src/storage/leveldb/crc32c.ts";
import { parseManifest } from "../../../src/storage/leveldb/manifest.ts";
import { droppedDataLines } from "../../../src/storage/leveldb/dropped-data-log-lines.ts";
import { FormatError, ByteReader } from "../../../src/storage/leveldb/byte-reader.ts";
import { unsnappy } from "../../../src/storage/leveldb/snappy.ts";
import { damageIn, keyOf, levelDirectory, type LevelDirectory } from "./level-directory.ts";

const KEYS = 600;

let level: LevelDirectory;
beforeAll(async () => {
  level = await levelDirectory(KEYS);
});
afterAll(() => level.remove());

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 4;
  return copy;
}

describe("CRC-32C", () => {
  test.each([
    // RFC 3720, B.4.
    [Buffer.alloc(32), 0x8a9136aa],
    [Buffer.alloc(32, 0xff), 0x62a8ab43],
    [Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e],
    [Buffer.from("123456789"), 0xe3069283],
  ])("of known bytes", (bytes, sum) => {
    expect(crc32c(bytes, 0, bytes.length)).toBe(sum);
    // The same checksum within other bytes, at each position.
    for (let before = 0; before < 9; before++) {
      const all = Buffer.concat([Buffer.alloc(before, 7), bytes, Buffer.from("more")]);
      expect(crc32c(all, before, before + bytes.length)).toBe(sum);
    }
  });

  test("is masked and unmasked", () => {
    for (const sum of [0, 1, 0x8a9136aa, 0xffffffff, 0x5d7d2752]) {
      expect(unmaskChecksum(maskChecksum(sum))).toBe(sum);
      expect(maskChecksum(sum)).not.toBe(sum);
    }
  });

  test("is found behind the bytes that it is of", () => {
    const bytes = Buffer.concat([Buffer.from("some bytes of a block"), Buffer.of(0), Buffer.alloc(9)]);
    const kind = bytes.length - 10;
    bytes.writeUInt32LE(maskChecksum(crc32c(bytes, 5, kind + 1)), kind + 1);
    expect(findChecksum(bytes, 5, bytes.length)).toBe(kind);
    expect(findChecksum(bytes, 4, bytes.length)).toBeUndefined();
    expect(findChecksum(bytes, 5, kind + 4)).toBeUndefined();
  });
});

describe("a table of large values", () => {
  const SIZE = 300_000;
  test.each([
    ["that compress well", (n: number) => Buffer.alloc(SIZE, `${n} `)],
    ["that do not compress", (n: number) => randomBytes(SIZE + n)],
    ["among small ones", (n: number) => (n % 2 === 0 ? Buffer.from("small") : Buffer.alloc(SIZE, `${n}`))],
  ])("%s is whole, and told from another table", async (_, value) => {
    const { table, bytes, remove } = await levelDirectory(5, value);
    try {
      expect(damageIn(bytes, table)).toEqual([]);
      const other = { ...table, smallest: keyOf(100), largest: keyOf(900) };
      expect(damageIn(bytes, other)).toMatchObject([{ what: "it is not the table that belongs here" }]);
      for (const at of [1000, Math.floor(bytes.length / 2)]) {
        expect(damageIn(flipped(bytes, at), table)).toMatchObject([
          { what: expect.stringContaining("wrong checksum") },
        ]);
      }
    } finally {
      remove();
    }
  });
});

describe("Snappy", () => {
  test("undoes the start alone", () => {
    const all = unsnappy(Buffer.from([12, ...literal("abcd"), ((8 - 1) << 2) | 2, 4, 0]));
    expect(all.toString()).toBe("abcdabcdabcd");
    for (let limit = 0; limit <= 12; limit++) {
      const bytes = Buffer.from([12, ...literal("abcd"), ((8 - 1) << 2) | 2, 4, 0]);
      expect(unsnappy(bytes, limit).toString()).toBe("abcdabcdabcd".slice(0, limit));
    }
  });

  const literal = (text: string): number[] => [(text.length - 1) << 2, ...Buffer.from(text)];
  test.each([
    ["nothing", [0], ""],
    ["a literal", [5, ...literal("hello")], "hello"],
    ["a long literal", [100, 60 << 2, 99, ...Buffer.alloc(100, 0x61)], "a".repeat(100)],
    ["a copy of one byte of offset", [8, ...literal("abcd"), 1, 4], "abcdabcd"],
    ["a copy of two", [8, ...literal("abcd"), (3 << 2) | 2, 4, 0], "abcdabcd"],
    ["a copy of four", [8, ...literal("abcd"), (3 << 2) | 3, 4, 0, 0, 0], "abcdabcd"],
    ["a copy of what it writes", [8, ...literal("ab"), (5 << 2) | 2, 2, 0], "abababab"],
  ])("%s", (_, bytes, expected) => {
    expect(unsnappy(Buffer.from(bytes)).toString()).toBe(expected);
  });

  test.each([
    ["no length", []],
    ["a length without an end", [0xff, 0xff]],
    ["a length beyond all bounds", [0xff, 0xff, 0xff, 0xff, 0x0f]],
    ["less than it says", [9, ...literal("hello")]],
    ["more than it says", [4, ...literal("hello")]],
    ["a literal that is cut", [5, 4 << 2, 0x61]],
    ["a copy from before the beginning", [8, ...literal("abcd"), 1, 5]],
    ["a copy from nowhere", [8, ...literal("abcd"), 1, 0]],
    ["a copy that is too long", [7, ...literal("abcd"), 1, 4]],
    ["a copy that is cut", [8, ...literal("abcd"), (3 << 2) | 2, 4]],
  ])("%s is refused", (_, bytes) => {
    expect(() => unsnappy(Buffer.from(bytes))).toThrow(FormatError);
  });
});

describe("a number", () => {
  test("is read up to 2^53, and no further than the bytes go", () => {
    expect(new ByteReader(Buffer.of(0xac, 0x02)).varint()).toBe(300);
    expect(new ByteReader(Buffer.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f)).varint()).toBe(
      2 ** 53 - 1,
    );
    expect(() => new ByteReader(Buffer.of(0xff, 0xff)).varint()).toThrow(FormatError);
    expect(() => new ByteReader(Buffer.alloc(20, 0xff)).varint()).toThrow(FormatError);
    expect(() => new ByteReader(Buffer.of(5, 1, 2)).text()).toThrow(FormatError);
  });
});

describe("a manifest", () => {
  test("names the table, its keys and its size", () => {
    expect(parseManifest(level.manifest)).toMatchObject([
      { size: level.bytes.length, smallest: keyOf(0), largest: keyOf(KEYS - 1) },
    ]);
  });

  test("whose end a crash has cut off names what was there before; nothing else of it goes unnoticed", () => {
    const tables = parseManifest(level.manifest).length;
    for (let length = 0; length < level.manifest.length; length++) {
      expect(parseManifest(level.manifest.subarray(0, length)).length).toBeLessThanOrEqual(tables + 1);
    }
    let found = 0;
    for (let at = 0; at < level.manifest.length; at++) {
      try {
        // A length that reaches beyond the end looks like a truncation.
        if (parseManifest(flipped(level.manifest, at)).length < tables) found++;
      } catch (error) {
        expect(error).toBeInstanceOf(FormatError);
        found++;
      }
    }
    expect(found).toBeGreaterThan(level.manifest.length * 0.9);
  });

  test("with an edit of a kind that nobody knows is refused", () => {
    const record = Buffer.alloc(7 + 1);
    record.writeUInt16LE(1, 4);
    record[6] = 1;
    record[7] = 42;
    record.writeUInt32LE(maskChecksum(crc32c(record, 6, 8)), 0);
    expect(() => parseManifest(record)).toThrow(/unknown tag 42/);
  });
});

describe("a table", () => {
  test("that is whole has no damage", () => {
    expect(damageIn(level.bytes, level.table)).toEqual([]);
  });

  test("a flipped bit is found wherever it is, but in the padding of the end", () => {
    const missed: number[] = [];
    for (let at = 0; at < level.bytes.length; at++) {
      if (at < level.bytes.length - 200 && at % 17 !== 0) continue;
      if (damageIn(flipped(level.bytes, at), level.table).length === 0) missed.push(at);
    }
    for (const at of missed) expect(at).toBeGreaterThanOrEqual(level.bytes.length - 48);
    expect(missed.length).toBeLessThan(40);
  });

  test("another one in its place is found, of the same length too", async () => {
    const other = await levelDirectory(KEYS / 2);
    other.remove();
    expect(damageIn(other.bytes, level.table)).toMatchObject([
      { range: { from: keyOf(0), to: keyOf(KEYS - 1) } },
    ]);
    expect(damageIn(other.bytes, { ...level.table, size: other.bytes.length })).toMatchObject([
      { what: "it is not the table that belongs here" },
    ]);
  });

  test("the range of a damaged block holds the keys that it held, and few others", () => {
    const [damage] = damageIn(flipped(level.bytes, level.bytes.length >> 1), level.table);
    const { from = "", to = "" } = damage?.range ?? {};
    const inside = Array.from({ length: KEYS }, (_, n) => keyOf(n)).filter((key) => key >= from && key <= to);
    expect(inside.length).toBeGreaterThan(5);
    expect(inside.length).toBeLessThan(KEYS / 3);
  });
});

test("messages of LevelDB about what it has left out are read in their order, and no others", () => {
  const older = [
    "2026/11/23-10:00:00.000001 7f Recovering log #3",
    "2026/11/23-10:00:00.000002 7f /data/level/000003.log: dropping 10884 bytes; Corruption: checksum mismatch",
    "2026/11/23-10:00:00.000003 7f Delete type=2 #3",
  ].join("\n");
  const newer =
    "2026/11/24-09:00:00.000000 7f (ignoring error) /data/level/000009.log: dropping 7 bytes; Corruption: x\n";
  const found = droppedDataLines([newer, older, ""]);
  expect(found.map(({ at }) => at)).toEqual(["2026/11/23-10:00:00.000002", "2026/11/24-09:00:00.000000"]);
  expect(found[0]?.line).toContain("dropping 10884 bytes");
  expect(droppedDataLines(["", "nothing"])).toEqual([]);
});
