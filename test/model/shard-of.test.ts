import { describe, expect, test } from "vitest";
import { createMonotonicIds, pairedId } from "../../src/model/ids.ts";
import { shardOf } from "../../src/model/shard-of.ts";

function source() {
  let drawn = 0;
  return createMonotonicIds(
    () => 1_795_351_310_806,
    (count) => Uint8Array.from({ length: count }, () => (drawn++ * 151) & 0xff),
  );
}

const many = (count: number, make: () => string) => Array.from({ length: count }, make);

describe("the shard of a name", () => {
  test.each([
    ["", 3, 11],
    ["users", 2, 6],
    ["Ü", 3, 7],
    ["cron 0199aaaa", 3, 3],
    ["0199aaaa-0000-7000-8000-000000000001", 3, 11],
    ["0199aaaa-0000-7000-8000-00000000000f", 3, 11],
    ["0199aaaa-0000-7000-8000-000000000010", 1, 9],
    ["f47ac10b-58cc-4372-a567-0e02b2c3d479", 3, 7],
  ])("never changes: %s", (name, of4, of16) => {
    expect([shardOf(name, 4), shardOf(name, 16)]).toEqual([of4, of16]);
  });

  test("is one that there is, and all have about as many ids", () => {
    const counts = [0, 0, 0, 0, 0];
    for (const id of many(10_000, source())) counts[shardOf(id, 5)] = (counts[shardOf(id, 5)] ?? 0) + 1;
    expect(counts).toHaveLength(5);
    for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(200);
  });

  test("is the same for a run without a thread and the thread made for it", () => {
    for (const id of many(100, source())) expect(shardOf(pairedId(id), 16)).toBe(shardOf(id, 16));
  });
});

describe("ids made for a shard", () => {
  test.each([0, 7, 15])("fall into it, and grow: %d of 16", (shard) => {
    const newId = source();
    const ids = many(1_000, () => newId((id) => shardOf(id, 16) === shard));
    expect(ids.filter((id) => shardOf(id, 16) !== shard)).toEqual([]);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("grow together with those of other shards", () => {
    const newId = source();
    const ids = many(1_000, () => newId()).map((_, i) => newId((id) => shardOf(id, 4) === i % 4));
    expect(ids.toSorted()).toEqual(ids);
  });
});
