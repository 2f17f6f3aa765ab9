import { expect, test } from "vitest";
import type { ChannelChange, PlannedTask } from "../../src/model/checkpoint.ts";
import { answersById, interruptId, resumeRefusal, toInterrupt } from "../../src/graph/interrupts.ts";
import { breakpointsWithin, hasBreakpoint } from "../../src/graph/breakpoints.ts";
import { compareTasks, combineChanges, pullTask, pushTask } from "../../src/graph/superstep.ts";

const site = { ns: "", checkpoint: "1f0c5b2e-0000-6000-8000-000000000000", step: 1 };

test("tasks are in the order of their paths: pulls by name, by code units, then pushes by number", () => {
  const tasks = [
    pushTask(site, "a", 10, 1),
    pushTask(site, "z", 9, 1),
    pullTask(site, "é", ["t"]),
    pullTask(site, "b", ["t"]),
    pullTask(site, "B", ["t"]),
    pullTask(site, "a", ["t"]),
  ];
  const names = (list: readonly PlannedTask[]) => list.map(({ path }) => path[1]);
  expect(names([...tasks].sort(compareTasks))).toEqual(["B", "a", "b", "é", 9, 10]);
  expect(names(tasks.reverse().sort(compareTasks))).toEqual(["B", "a", "b", "é", 9, 10]);
});

test("task ids differ by checkpoint, step, name, kind and place, and by nothing else", () => {
  const ids = [
    pullTask(site, "a", ["t"]),
    pullTask({ ...site, step: 2 }, "a", ["t"]),
    pullTask({ ...site, checkpoint: site.checkpoint.replace("1f0c", "1f0d") }, "a", ["t"]),
    pullTask({ ...site, ns: "x:1" }, "a", ["t"]),
    pullTask(site, "b", ["t"]),
    pullTask(site, "a", ["u"]),
    pushTask(site, "a", 0, null),
    pushTask(site, "a", 1, null),
  ].map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(pushTask(site, "a", 0, "another input").id).toBe(ids[6]);
  expect(pullTask(site, "a", ["t"]).id).toBe(ids[0]);
});

const append = (keep: number, ...items: unknown[]): ChannelChange => ({ kind: "append", keep, items });
const set = (value: unknown): ChannelChange => ({ kind: "set", value });

/** The list after these changes, as the journal would store it. */
const fold = (list: readonly unknown[], ...changes: ChannelChange[]) =>
  changes.reduce<readonly unknown[]>(
    (now, change) => (change.kind === "append" ? [...now.slice(0, change.keep), ...change.items] : now),
    list,
  );

test.each<[string, ChannelChange, ChannelChange]>([
  ["both append", append(3, "d"), append(4, "e", "f")],
  ["the second takes some of the first back", append(3, "d", "e"), append(4, "E")],
  ["the second reaches below the first", append(3, "d"), append(1, "B")],
  ["the first only takes away", append(1), append(1, "x")],
])("two changes of a list as one: %s", (_, first, then) => {
  const joined = combineChanges({ k: first }, { k: then })["k"];
  expect(joined && fold(["a", "b", "c"], joined)).toEqual(fold(["a", "b", "c"], first, then));
});

test("of two values the later holds, and other keys are kept", () => {
  expect(combineChanges({ a: set(1), b: set(2) }, { a: set(3), c: { kind: "clear" } })).toEqual({
    a: set(3),
    b: set(2),
    c: { kind: "clear" },
  });
});

test.each([
  [null, ["a"], false],
  ["*", ["a"], true],
  ["*", ["__start__"], false],
  [["b"], ["a"], false],
  [["b"], ["a", "b"], true],
  [[], ["a"], false],
  ["*", [], false],
] as const)("a breakpoint at %j and the nodes %j: %s", (points, names, expected) => {
  expect(hasBreakpoint(points, names)).toBe(expected);
});

const [one, two] = [interruptId("n:t", 0), interruptId("n:t", 1)];

test("an interrupt says where it was raised; its id comes from the task and its place", () => {
  expect(toInterrupt("outer:1|n:t", 0, "q")).toEqual({
    value: "q",
    id: interruptId("outer:1|n:t", 0),
    resumable: true,
    ns: ["outer:1", "n:t"],
    when: "during",
  });
  expect(one).toMatch(/^[0-9a-f]{32}$/);
  expect(one).not.toBe(two);
});

test.each([
  ["nothing pending", "x", [], "resume.invalid"],
  ["one pending, a plain answer", "x", [one], null],
  ["one pending, a falsy answer", 0, [one], null],
  ["two pending, a plain answer", "x", [one, two], "resume.ambiguous"],
  ["two pending, an object that is no map", { [one]: 1, x: 2 }, [one, two], "resume.ambiguous"],
  ["two pending, an empty object", {}, [one, two], "resume.ambiguous"],
  ["two pending, a map of one", { [one]: 1 }, [one, two], null],
  ["a map with an unknown id", { [one]: 1, [two]: 2 }, [one], "resume.invalid"],
])("%s", (_, resume, pending, code) => {
  expect(resumeRefusal(resume, pending)?.code ?? null).toBe(code);
});

test.each([[null], [[]], [{}], [{ a: 1 }], [{ [one.toUpperCase()]: 1 }], [new Map([[one, 1]])]])(
  "%j is no map of answers",
  (resume) => {
    expect(answersById(resume)).toBeUndefined();
  },
);

test.each([
  [null, ["sub"], null],
  ["*", [], "*"],
  [["a", "sub|a"], [], ["a", "sub|a"]],
  ["*", ["sub"], null],
  [["a", "sub"], ["sub"], null],
  [["a", "sub|b", "sub|c", "subway|d"], ["sub"], ["b", "c"]],
  [["sub|*"], ["sub"], "*"],
  [["sub|deep|x"], ["sub"], ["deep|x"]],
  [["sub|deep|x"], ["sub", "deep"], ["x"]],
] as const)("breakpoints %j, at %j: %j", (points, path, expected) => {
  expect(breakpointsWithin(points, path)).toEqual(expected);
});
