import { describe, expect, test } from "vitest";
import {
  machineKeepsItsWord,
  type MachineNow,
  recordsGrow,
  type SentEvent,
  storedResults,
} from "./checkers/machines.ts";
import { nothingIsRepeated } from "./checkers/repeats.ts";
import { checkpoint, effect, stored } from "./fixtures.ts";

const event = (type: SentEvent["type"], n: string, sent: number): SentEvent => ({
  type,
  n,
  sent,
  acknowledged: sent + 1,
});

const sent = [event("WORK", "1", 1), event("LATER", "2", 3), event("TICK", "3", 5)];
const record = [
  "take 1",
  "begin 1",
  "take 2",
  "done 1 1/7-1",
  "take 3",
  "tick 3",
  "fired 2",
  "tock 3",
] as const;
const without = (...gone: readonly string[]) => record.filter((entry) => !gone.includes(entry));

const said = (now: Partial<MachineNow>) =>
  machineKeepsItsWord({
    thread: "t",
    sent,
    record,
    output: undefined,
    noted: new Set(["1"]),
    results: new Set(["1/7-1", "1/7-2"]),
    ...now,
  }).map(({ message }) => message.replace("the machine of thread t ", ""));

describe("I14: a machine keeps its word", () => {
  test("one that took everything once, in order, is in order", () => {
    expect(said({})).toEqual([]);
  });

  test.each<[string, Partial<MachineNow>, string]>([
    ["a lost event", { record: without("take 3", "tick 3", "tock 3") }, "has lost event 3 (TICK)"],
    ["an event taken twice", { record: [...record, "take 3"] }, 'has "take 3" twice'],
    [
      "an event taken too early",
      { record: ["take 3", "tick 3", ...without("take 3", "tick 3")] },
      "took event 1 after one that was sent when it was acknowledged",
    ],
    ["a foreign event", { record: [...record, "take 9"] }, "took event 9, which nobody has sent"],
    ["a lost timer", { record: without("fired 2") }, 'has "take 2", and "fired 2" never came'],
    ["a lost after", { record: without("tock 3") }, 'has "tick 3", and "tock 3" never came'],
    [
      "what a child machine has kept",
      { sent: [...sent, event("HAND", "4", 7)], record: [...record, "take 4"] },
      'has "take 4", and "returned 4" never came',
    ],
    [
      "what nobody handed to a child machine",
      { record: [...record, "returned 4"] },
      'has "returned 4", and no',
    ],
    ["a timer that fired twice", { record: [...record, "fired 2"] }, 'has "fired 2" twice'],
    ["a timer that nobody has set", { sent: sent.slice(0, 2), record: ["fired 3"] }, 'has "fired 3", and no'],
    ["a lost result", { record: without("done 1 1/7-1") }, 'has "begin 1", and "done 1" never came'],
    ["two results", { record: [...record, "done 1 1/7-2"] }, 'has "done 1" twice'],
    ["a foreign result", { results: new Set() }, 'has "done 1 1/7-1", which no actor has returned'],
    ["an action that never ran", { noted: new Set() }, "took event 1 (WORK), and its action never ran"],
    ["a lost mark", { marks: [{ n: 4, acknowledged: true }], mark: 3 }, "has lost mark 4: it has 3"],
    ["a foreign mark", { marks: [], mark: 3 }, "has mark 3, which nobody has written"],
    ["a wrong output", { output: ["take 1"] }, "is done with another output than its record"],
  ])("%s is found", (_, now, message) => {
    expect(said(now)).toContainEqual(expect.stringContaining(message));
  });

  test("an event that was not acknowledged may be lost; events that were sent at once have no order", () => {
    const open = { ...event("ADD", "4", 7), acknowledged: undefined };
    expect(said({ sent: [...sent, open] })).toEqual([]);
    const together = [event("ADD", "1", 1), event("ADD", "2", 1)];
    expect(said({ sent: together, record: ["take 2", "take 1"] })).toEqual([]);
  });

  test("when it is done, nothing has to follow any more", () => {
    const finish = event("FINISH", "4", 7);
    const ended = [...without("fired 2", "tock 3"), "take 4"];
    expect(said({ sent: [...sent, finish], record: ended, output: ended })).toEqual([]);
    expect(said({ sent: [...sent, finish], record: ended })).toContain("took event 4, and is not done");
  });

  test("a record that does not go on from its parent's is found", () => {
    const at = (id: string, parent: string | null, entries: readonly string[]) => ({
      ...checkpoint(id, parent, []),
      values: { record: entries },
    });
    const first = at("a", null, ["take 1"]);
    expect(recordsGrow(stored({ checkpoints: [at("b", "a", ["take 1", "take 2"]), first] }))).toEqual([]);
    expect(recordsGrow(stored({ checkpoints: [at("b", "a", ["take 2"]), first] }))).toHaveLength(1);
  });

  test.each([
    ["taken", { values: { record: ["done 1 1/7-1"] } }],
    ["stored with its task", { writes: [{ result: { value: { __events__: [{ output: "1/7-1" }] } } }] }],
    ["stored with the checkpoint", { values: { __events__: [{ result: { output: "1/7-1" } }] } }],
  ])("an actor that is asked again after its result was %s is found", (_, at) => {
    const snapshot = stored({ checkpoints: [{ ...checkpoint("a", null, []), ...at } as never] });
    const work = { ...effect("t", "1", "work"), run: "t" };
    const finished = storedResults(snapshot, [work]);
    expect(nothingIsRepeated(finished, [work])).toEqual([]);
    expect(nothingIsRepeated(finished, [work, work])).toHaveLength(1);
  });
});
