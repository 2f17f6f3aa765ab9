import { expect, test } from "vitest";
import { SmallMap, smallMapBy } from "../../src/model/small-map.ts";

const names = ["a", "b", "c"] as const;
type Name = (typeof names)[number];
type Deed = readonly ["set", Name, number] | readonly ["delete", Name] | readonly ["clear"];

/** All operations with one name, or with all of them. */
const deeds: readonly Deed[] = [
  ...names.flatMap((name) => [["set", name, 1] as const, ["set", name, 2] as const]),
  ...names.map((name) => ["delete", name] as const),
  ["clear"],
];

/** All sequences of this many operations. */
function* ways(length: number): Generator<readonly Deed[]> {
  if (length === 0) return yield [];
  for (const before of ways(length - 1)) for (const deed of deeds) yield [...before, deed];
}

function does(map: SmallMap<Name, number> | Map<Name, number>, deed: Deed): unknown {
  if (deed[0] === "set") return map.set(deed[1], deed[2]) === map;
  if (deed[0] === "delete") return map.delete(deed[1]);
  return map.clear();
}

function shows(map: ReadonlyMap<Name, number>): unknown {
  const each: unknown[] = [];
  map.forEach((value, key) => each.push([key, value]));
  const looked = names.map((name) => [map.has(name), map.get(name)]);
  return [map.size, [...map], [...map.keys()], [...map.values()], [...map.entries()], each, looked];
}

test("whatever is done with it, it is as a Map would be", () => {
  let count = 0;
  for (const way of ways(4)) {
    const [few, map] = [new SmallMap<Name, number>(), new Map<Name, number>()];
    const told = way.map((deed) => [does(few, deed), does(map, deed)]);
    expect(told.map(([one]) => one)).toEqual(told.map(([, other]) => other));
    expect(shows(few)).toEqual(shows(map));
    count++;
  }
  expect(count).toBe(10_000);
});

test("of two with the same key, the later counts", () => {
  const few = smallMapBy(
    [
      { id: "a", n: 1 },
      { id: "b", n: 2 },
      { id: "a", n: 3 },
    ],
    ({ id }) => id,
  );
  expect([...few.values()].map(({ n }) => n)).toEqual([3, 2]);
});
