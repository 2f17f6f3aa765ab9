import { describe, expect, test } from "vitest";
import { newThreadRecord } from "../../src/model/thread.ts";
import { eventsAreContiguous, indexesAgree, stateIsTheFold } from "./checkers/stored.ts";
import { idsGrow } from "./checkers/streams.ts";
import { checkpoint, frame, key, stored, storedRun } from "./fixtures.ts";

describe("I4: ids", () => {
  test("stored chunks that follow one another are in order", () => {
    expect(eventsAreContiguous(stored({ runs: [storedRun("success", [0, 2, 4], 6)] }))).toEqual([]);
  });

  test.each([
    ["a gap", [0, 4], 6],
    ["a repeat", [0, 2, 2], 4],
    ["a missing start", [2], 4],
    ["a missing end", [0], 4],
  ])("%s is found", (_, firsts, next) => {
    expect(eventsAreContiguous(stored({ runs: [storedRun("success", firsts, next)] }))).not.toEqual([]);
  });

  test("ids on the wire that grow are in order, others are found", () => {
    expect(idsGrow("r", [frame(0), frame(2), frame(3)], true)).toEqual([]);
    expect(idsGrow("r", [frame(0), frame(2), frame(2)], true)).toHaveLength(1);
    expect(idsGrow("r", [frame(1)], true)).toHaveLength(1);
    expect(idsGrow("r", [{ ...frame(0), id: Number.NaN }], false)).toHaveLength(1);
  });
});

describe("I6: the state is the fold of what was written", () => {
  const writes = { left: { log: ["l"] }, right: { log: ["r"] } };

  test("parallel nodes may have written in either order", () => {
    const first = checkpoint("a", null, []);
    for (const log of [
      ["l", "r"],
      ["r", "l"],
    ]) {
      const checkpoints = [checkpoint("b", "a", log, { writes }), first];
      expect(stateIsTheFold(stored({ checkpoints }))).toEqual([]);
    }
  });

  test.each([
    ["lost", ["l"]],
    ["doubled", ["l", "r", "r"]],
    ["foreign", ["l", "r", "x"]],
  ])("a %s entry is found", (_, log) => {
    const checkpoints = [checkpoint("b", "a", log, { writes }), checkpoint("a", null, [])];
    expect(stateIsTheFold(stored({ checkpoints }))).toMatchObject([{ invariant: "I6" }]);
  });

  test("a thread that does not rest at its newest checkpoint, and one without its parent, are found", () => {
    const checkpoints = [checkpoint("b", "gone", [])];
    const record = { ...newThreadRecord("t", 0, {}), checkpoint: "other" };
    expect(stateIsTheFold(stored({ checkpoints, record }))).toHaveLength(2);
  });

  test("what the journal itself finds is passed on", () => {
    const damage = [{ key, what: "append 7 is missing" }];
    const [found] = stateIsTheFold({ ...stored({}), damage });
    expect(found?.message).toBe("thread t: append 7 is missing");
  });
});

describe("I7: indexes say what records say", () => {
  const busy = { ...newThreadRecord("t", 0, {}), active: "r" };
  const runs = [storedRun("pending", [], 0)];

  test("a thread with a run in progress is in the index of unfinished work", () => {
    expect(indexesAgree(stored({ record: busy, runs }, ["t"]))).toEqual([]);
    expect(indexesAgree(stored({ record: busy, runs }))).toMatchObject([{ invariant: "I7" }]);
  });

  test("a thread at rest is not", () => {
    expect(indexesAgree(stored({}, ["t"]))).toHaveLength(1);
  });

  test("an unfinished run that its thread does not know is found", () => {
    expect(indexesAgree(stored({ runs }))).toHaveLength(1);
  });

  test("a thread without a record, and a record without its thread in the index, are found", () => {
    expect(indexesAgree(stored({ record: undefined }))).toHaveLength(1);
    expect(indexesAgree(stored({}, ["ghost"]))).toHaveLength(1);
  });
});
