import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { uuid5, uuid6, uuid6Time, uuid7 } from "../../src/model/ids.ts";

const random = Uint8Array.from({ length: 16 }, (_, i) => 0xf0 + i);
const times = [0, 1, 0xffff, 0x1_0000, 2 ** 32 - 1, 2 ** 32, 1_795_351_310_806, 2 ** 42];

test.each(times)("a UUID version 7 begins with its time: %d", (now) => {
  const time = now.toString(16).padStart(12, "0");
  expect(uuid7(now, random)).toBe(`${time.slice(0, 8)}-${time.slice(8)}-76f7-b8f9-fafbfcfdfeff`);
});

test.each(times)("a UUID version 6 is its time, in ticks of 100 ns since 1582, and its step: %d", (now) => {
  for (const [tick, step, clock] of [
    [0, 0, "8000"],
    [1, 25, "8019"],
    [9_999, -1, "bfff"],
  ] as const) {
    const ticks = (BigInt(now) + 12_219_292_800_000n) * 10_000n + BigInt(tick);
    const hex = ticks.toString(16).padStart(15, "0");
    const id = uuid6(now, tick, step, random.subarray(0, 6));
    expect(id).toBe(`${hex.slice(0, 8)}-${hex.slice(8, 12)}-6${hex.slice(12)}-${clock}-f0f1f2f3f4f5`);
    expect(uuid6Time(id)).toEqual({ ms: now, tick });
  }
});

test.each([
  ["www.example.com", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "2ed6657d-e927-568b-95e1-2665a8aea6a2"],
  ["www.example.com", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "2ed6657d-e927-568b-95e1-2665a8aea6a2"],
])("a UUID version 5 is the SHA-1 of its name: %s in %s", (name, namespace, id) => {
  expect(uuid5(name, namespace)).toBe(id);
});

test.each(["", "é", "n".repeat(239), "n".repeat(240), "n".repeat(241), "n".repeat(5_000)])(
  "so it is whatever the name's length, and whatever was asked before: case %#",
  (name) => {
    const namespace = "ffffffff-0000-4000-8000-0123456789ab";
    const bytes = Buffer.concat([Buffer.from(namespace.replaceAll("-", ""), "hex"), Buffer.from(name)]);
    const hex = createHash("sha1").update(bytes).digest("hex");
    const [version, variant] = ["5", (Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80];
    const expected = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${version}${hex.slice(13, 16)}-${variant.toString(16)}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
    expect([uuid5(name, namespace), uuid5(`${name}!`, namespace), uuid5(name, namespace)]).toEqual([
      expected,
      expect.not.stringMatching(expected),
      expected,
    ]);
  },
);
