import { expect, test } from "vitest";
import { CheckpointIdGenerator } from "../../actors/thread/checkpoint-ids.ts";
import { uuid6, uuid6Time } from "../../src/model/ids.ts";

const NOW = 1_800_000_000_000;
const bytes = (count: number) => new Uint8Array(count).fill(7);

function ids() {
  const clock = { now: () => NOW, mono: () => 0 };
  return new CheckpointIdGenerator(clock, { bytes, float: () => 0.5 });
}

const made = (ms: number, tick = 0) => uuid6(ms, tick, 3, bytes(6));

test("an id that a graph has made stays as it is where it is above all others", () => {
  const of = ids();
  const all = [made(NOW), made(NOW, 1), made(NOW + 1)];
  expect(all.map((id) => of.above(id, 3))).toEqual(all);
  expect(uuid6Time(of.next(4))).toEqual({ ms: NOW + 1, tick: 1 });
});

test("one that is not gets another, until the clock has caught up", () => {
  const of = ids();
  const first = of.above(made(NOW + 3_600_000), 3);
  const others = [made(NOW), made(NOW + 1), first, made(NOW + 2)].map((id) => of.above(id, 3));
  expect(others.map(uuid6Time)).toEqual([1, 2, 3, 4].map((tick) => ({ ms: NOW + 3_600_000, tick })));
  expect([first, ...others].toSorted()).toEqual([first, ...others]);
  const later = made(NOW + 3_600_001);
  expect(of.above(later, 3)).toBe(later);
});
