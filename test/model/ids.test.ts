import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createMonotonicIds, uuid5, uuid6, uuid6Time, uuid7 } from "../../src/model/ids.ts";

const random = Uint8Array.from({ length: 16 }, (_, i) => 0xf0 + i);
const times = [0, 1, 0xffff, 0x1_0000, 2 ** 32 - 1, 2 ** 32, 1_795_351_310_806, 2 ** 42];

test.each(times)("a UUID version 7 begins with its time: %d", (now) => {
  const time = now.toString(16).padStart(12, "0");
  const id = uuid7(now, 0x6f7, random.subarray(8));
  expect(id).toBe(`${time.slice(0, 8)}-${time.slice(8)}-76f7-b8f9-fafbfcfdfeff`);
});

describe("ids that one process makes", () => {
  /** Its clock does not advance until it is set. */
  function source(byte: (n: number) => number) {
    let drawn = 0;
    const clock = { now: 1_795_351_310_806 };
    const newId = createMonotonicIds(
      () => clock.now,
      (count) => Uint8Array.from({ length: count }, () => byte(drawn++)),
    );
    return { clock, newId };
  }
  const many = (newId: () => string, count = 10_000) => Array.from({ length: count }, () => newId());
  const msOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

  test("they grow, more of them than a millisecond has room for", () => {
    for (const byte of [() => 0, () => 0xff, (n: number) => (n * 151) & 0xff]) {
      const { clock, newId } = source(byte);
      const ids = many(newId);
      expect(ids.toSorted()).toEqual(ids);
      expect(new Set(ids).size).toBe(ids.length);
      // The counter allows at least 2,048 ids, so that the time stays near the clock's.
      expect(msOf(ids[2_047] as string)).toBe(clock.now);
      expect(msOf(ids.at(-1) as string) - clock.now).toBeLessThan(5);
      for (const id of ids)
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
  });

  test("they grow while the clock is set back, and follow it once it has caught up", () => {
    const { clock, newId } = source((n) => (n * 151) & 0xff);
    const start = clock.now;
    const before = many(newId, 3);
    clock.now -= 3_600_000;
    const behind = many(newId, 100);
    expect(behind.map(msOf)).toEqual(behind.map(() => start));
    clock.now = start + 5;
    const after = many(newId, 3);
    expect(after.map(msOf)).toEqual([start + 5, start + 5, start + 5]);
    const all = [...before, ...behind, ...after];
    expect(all.toSorted()).toEqual(all);
  });

  test("the same clock and the same random bytes give the same ids", () => {
    const ids = () => many(source((n) => (n * 37) & 0xff).newId, 50);
    expect(ids()).toEqual(ids());
  });
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
