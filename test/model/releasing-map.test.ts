import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { ReleasingMap } from "../../src/model/releasing-map.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;

const one = { is: 1 };
const two = { is: 2 };

test("holds what it was given, in order, and lets it go", () => {
  const map = new ReleasingMap<string, { readonly is: number }>();
  expect([map.size, map.get("a"), map.has("a"), map.delete("a")]).toEqual([0, undefined, false, false]);
  map.set("a", one).set("b", two);
  expect([...map]).toEqual([
    ["a", one],
    ["b", two],
  ]);
  map.set("a", two);
  expect([map.size, map.get("a"), map.has("a")]).toEqual([2, two, true]);
  expect([[...map.keys()], [...map.values()]]).toEqual([
    ["a", "b"],
    [two, two],
  ]);
  expect([map.delete("a"), map.delete("a"), map.get("a"), map.size]).toEqual([true, false, undefined, 1]);
  const seen: unknown[] = [];
  map.forEach((value, key, of) => seen.push(value, key, of));
  expect(seen).toEqual([two, "b", map]);
  map.clear();
  expect([map.size, map.get("b"), [...map]]).toEqual([0, undefined, []]);
});

test("may lose entries while it is walked through", () => {
  const map = new ReleasingMap<string, object>().set("a", one).set("b", two).set("c", one);
  const left: string[] = [];
  for (const [key] of map) {
    left.push(key);
    map.delete("b");
  }
  expect(left).toEqual(["a", "c"]);
});

/** Megabytes that young collections leave of twenty thousand values, of which a hundred are in the map at a time. */
function left(map: ReleasingMap<string, object>): number {
  const pass = (from: number, to: number) => {
    for (let i = from; i < to; i++) {
      map.set(
        `key ${i}`,
        Array.from({ length: 200 }, () => i),
      );
      map.delete(`key ${i - 100}`);
    }
  };
  pass(0, 1_000);
  // From here on its table is in the old generation.
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 1; i <= 20; i++) {
    pass(i * 1_000, (i + 1) * 1_000);
    collect({ type: "minor" });
  }
  return (process.memoryUsage().heapUsed - before) / 1e6;
}

test("what it let go does not outlive the next young collections", () => {
  // A `Map` retains all of it: some 33 MB.
  expect(left(new ReleasingMap())).toBeLessThan(8);
});
