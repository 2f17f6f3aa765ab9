import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { crc32From } from "../../src/storage/crc32.ts";

test("the sum of the standard's check value", () => {
  expect(crc32From(Buffer.from("123456789"), 0)).toBe(0xcbf43926);
});

test("the same as zlib's, for every length up to some and from any place on", () => {
  const bytes = Buffer.alloc(1_100);
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 2_654_435_761) >>> 13;
  for (const from of [0, 1, 7, 8]) {
    const parts = Array.from({ length: bytes.length - from }, (_, more) => bytes.subarray(0, from + more));
    expect(parts.map((part) => crc32From(part, from))).toEqual(
      parts.map((part) => crc32(part.subarray(from))),
    );
  }
});

test("every byte counts, wherever it stands", () => {
  const bytes = Buffer.alloc(40, 0xa5);
  const whole = crc32From(bytes, 8);
  const sums = new Set([whole]);
  for (let at = 8; at < bytes.length; at++) {
    bytes[at] = 0xa4;
    sums.add(crc32From(bytes, 8));
    bytes[at] = 0xa5;
  }
  expect(sums.size).toBe(33);
  expect(crc32From(bytes, 8)).toBe(whole);
});
