import { expect, test } from "vitest";
import { uuid6, uuid6Time, uuid7 } from "../../src/model/ids.ts";

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
