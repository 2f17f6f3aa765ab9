import { expect, test } from "vitest";
import { readUuid, UUID_BYTES, writeUuid } from "../../src/codec/uuid-bytes.ts";

const ONE = "01a205c7-bf6e-70a7-9fa7-1aad26e9cff2";
// The same last digits, so that both texts share a slot of the cache.
const OTHER = "39a68923-35d8-56bc-9761-3a809a9e6af2";

const bytes = Buffer.alloc(UUID_BYTES + 2);
const again = (text: string) => {
  bytes.fill(0xff);
  expect(writeUuid(text, bytes, 1)).toBe(true);
  expect([bytes[0], bytes[UUID_BYTES + 1]]).toEqual([0xff, 0xff]);
  return readUuid(bytes.subarray(1, UUID_BYTES + 1));
};

test("a text comes back, also in turn with one that takes its place", () => {
  for (const text of [ONE, ONE, OTHER, ONE, OTHER, OTHER]) expect(again(text)).toBe(text);
});

test.each([
  ["a letter that is no digit", "01a205c7-bf6e-70a7-9fa7-1aad26e9gff2"],
  ["in capitals", ONE.toUpperCase()],
  ["a dash elsewhere", "01a205c7b-f6e-70a7-9fa7-1aad26e9cff2"],
  ["a wide character whose low bits are a digit", "01a205c7-bf6e-70a7-9fa7-1aad26e9\u0131ff2"],
])("%s is no UUID, before and after one with the same end", (_, text) => {
  expect(writeUuid(text, bytes, 1)).toBe(false);
  expect(again(ONE)).toBe(ONE);
  expect(writeUuid(text, bytes, 1)).toBe(false);
  expect(writeUuid(text, bytes, 1)).toBe(false);
  expect(again(ONE)).toBe(ONE);
});
