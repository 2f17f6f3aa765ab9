import { describe, expect, test } from "vitest";
import type { Checkpoint } from "../../src/model/checkpoint.ts";
import type { Fact } from "../../src/model/event.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { newThread } from "../../src/model/thread.ts";
import { everythingRests, nothingIsLost } from "./checkers/acknowledged.ts";
import { finishedTasks, nothingIsRepeated, oneRunAtATime } from "./checkers/repeats.ts";
import { eventsAreContiguous, indexesAgree, stateIsTheFold } from "./checkers/stored.ts";
import { idsGrow, resumeIsExact } from "./checkers/streams.ts";
import { Frames, type Frame } from "./client.ts";
import type { Effect } from "./effects.ts";
import { Ledger } from "./ledger.ts";
import type { Snapshot, StoredCheckpoint, StoredRun, StoredThread } from "./snapshot.ts";

const key = { tenant: "_", thread: "t" };

const frame = (id: number, data = "{}", event = id === 0 ? "metadata" : "updates"): Frame => ({
  raw: `event: ${event}\ndata: ${data}\nid: ${id}\n\n`,
  id,
  event,
});

const effect = (run: string, task: string, node = "plan"): Effect => ({
  thread: "t",
  run,
  node,
  task,
  attempt: 1,
  pid: 1,
});

function checkpoint(
  id: string,
  parent: string | null,
  log: string[],
  more: Partial<Checkpoint> = {},
): StoredCheckpoint {
  return {
    checkpoint: {
      id,
      parent,
      ns: "",
      step: 0,
      source: "loop",
      created_at: 0,
      run_id: "r",
      metadata: {},
      writes: null,
      next: [],
      engine: null,
      graph: "",
      channels: {},
      ...more,
    },
    values: { log },
    writes: [],
  };
}

const custom: Fact = { t: "custom", ns: "", data: 1 };

function storedRun(status: RunRecord["status"], firsts: readonly number[], next: number): StoredRun {
  const record = { run_id: "r", status, next_event: next } as RunRecord;
  return {
    record,
    single: record,
    nextEvent: next,
    chunks: firsts.map((first) => ({ run_id: "r", first, facts: [custom, custom] })),
  };
}

function stored(thread: Partial<StoredThread>, unsettled: readonly string[] = []): Snapshot {
  const record = {
    ...newThread("t", 0, {}),
    checkpoint: thread.checkpoints?.[0]?.checkpoint.id ?? null,
  };
  return {
    complete: true,
    threads: [{ key, record, checkpoints: [], whole: true, runs: [], ...thread }],
    unsettled,
    damage: [],
  };
}

function oneRun() {
  const ledger = new Ledger();
  ledger.threads.set("t", { acknowledged: 0 });
  const entry = ledger.acknowledge("t", "r", "wait", ledger.now());
  return { ledger, entry, there: [{ thread: "t", status: "idle", log: ["r:join"] }] };
}

describe("I1: nothing acknowledged is lost", () => {
  test("a run that is there, with its work, is in order", () => {
    const { ledger, entry, there } = oneRun();
    entry.shown.add("r:join");
    expect(nothingIsLost(ledger, [{ entry, status: "success" }], there)).toEqual([]);
  });

  test("a missing run is found", () => {
    const { ledger, entry, there } = oneRun();
    const [found] = nothingIsLost(ledger, [{ entry, status: undefined }], there);
    expect(found).toMatchObject({ invariant: "I1", message: "run r was acknowledged and is gone" });
  });

  test("a missing thread is found", () => {
    const { ledger } = oneRun();
    const [found] = nothingIsLost(ledger, [], [{ thread: "t", status: undefined, log: [] }]);
    expect(found?.message).toContain("thread t was acknowledged and is gone");
  });

  test("work that was shown and is not in the state any more is found", () => {
    const { ledger, entry, there } = oneRun();
    entry.shown.add("r:ask:1");
    const [found] = nothingIsLost(ledger, [{ entry, status: "success" }], there);
    expect(found?.message).toContain("r:ask:1");
  });

  test("a status that changes after the end is found", () => {
    const { ledger, entry, there } = oneRun();
    entry.status = "success";
    entry.ended = ledger.now();
    const found = nothingIsLost(ledger, [{ entry, status: "interrupted" }], there);
    expect(found[0]?.message).toBe("run r had ended as success and is now interrupted");
  });

  test("a run that a rollback overlaps may be gone; one that had ended before may not", () => {
    const { ledger, entry, there } = oneRun();
    const rollback = ledger.disturb("t", "rollback");
    rollback.until = ledger.now();
    expect(nothingIsLost(ledger, [{ entry, status: undefined }], there)).toEqual([]);
    entry.ended = rollback.sent - 1;
    expect(nothingIsLost(ledger, [{ entry, status: undefined }], there)).toHaveLength(1);
  });

  test("a kill ends the time in which a rollback can have been admitted", () => {
    const { ledger } = oneRun();
    ledger.disturb("t", "rollback");
    ledger.killed();
    const late = ledger.acknowledge("t", "later", "wait", ledger.now() + 1);
    expect(ledger.mayVanish(late)).toBe(false);
  });

  test("a run that stopped although nobody asked for it is found", () => {
    const { ledger, entry, there } = oneRun();
    const found = nothingIsLost(ledger, [{ entry, status: "interrupted" }], there);
    expect(found[0]?.message).toContain("nobody had asked");
  });

  test("a failure is in order only after three kills", () => {
    const { ledger, entry, there } = oneRun();
    const failed = [{ entry, status: "error" }];
    expect(nothingIsLost(ledger, failed, there)).toHaveLength(1);
    for (let i = 0; i < 3; i++) ledger.killed();
    expect(nothingIsLost(ledger, failed, there)).toEqual([]);
  });
});

describe("I2: nothing finished runs again", () => {
  const next = [{ id: "task", name: "plan", path: [], triggers: [] }];
  const snapshot = stored({
    checkpoints: [checkpoint("b", "a", []), checkpoint("a", null, [], { source: "input", next })],
  });

  test("the tasks of a stored superstep are finished, for the run that did it", () => {
    const finished = finishedTasks(snapshot, [effect("r", "task")]);
    expect(finished).toMatchObject([{ task: "task", run: "r", effects: 1 }]);
  });

  test("one that begins after that is found; one before, or of another run, is not", () => {
    const before = [effect("r", "task")];
    const finished = finishedTasks(snapshot, before);
    expect(nothingIsRepeated(finished, before)).toEqual([]);
    expect(nothingIsRepeated(finished, [...before, effect("other", "task")])).toEqual([]);
    const found = nothingIsRepeated(finished, [...before, effect("r", "task")]);
    expect(found).toMatchObject([{ invariant: "I2" }]);
  });

  test("a task whose own result was stored is finished too", () => {
    const at = checkpoint("a", null, [], { next });
    const write = { ns: "", checkpoint: "a", task: "task", name: "plan", result: { value: 1 } };
    const writes = [{ ...write, interrupts: [], resumes: [], steps: {}, error: null }];
    const finished = finishedTasks(stored({ checkpoints: [{ ...at, writes }] }), [effect("r", "task")]);
    expect(nothingIsRepeated(finished, [effect("r", "task"), effect("r", "task")])).toHaveLength(1);
  });
});

describe("I3: everything comes to rest", () => {
  test("a busy thread and a run without an end are found", () => {
    const ledger = new Ledger();
    const entry = ledger.acknowledge("t", "r", "wait", 0);
    const found = everythingRests(
      [{ entry, status: "pending" }],
      [{ thread: "t", status: "busy", log: [] }],
      1,
    );
    expect(found.map(({ invariant }) => invariant)).toEqual(["I3", "I3"]);
  });
});

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

describe("I5: resuming is exact", () => {
  const replay = [frame(0), frame(1), frame(2), frame(3)];

  test("the two parts are the whole", () => {
    expect(resumeIsExact("r", replay.slice(0, 2), replay.slice(2), replay)).toEqual([]);
  });

  test.each([
    ["left out", replay.slice(0, 2), replay.slice(3), "after resuming"],
    ["sent twice", replay.slice(0, 2), replay.slice(1), "after resuming"],
    ["missing at the end", replay.slice(0, 2), [frame(2)], "left out event 3"],
    ["other bytes", [frame(0), frame(1, "[]")], replay.slice(2), "before the cut"],
    ["one too many", replay.slice(0, 2), [...replay.slice(2), frame(4)], "a replay does not have it"],
  ])("an event %s is found", (_, before, after, message) => {
    expect(resumeIsExact("r", before, after, replay)[0]?.message).toContain(message);
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
    const record = { ...newThread("t", 0, {}), checkpoint: "other" };
    expect(stateIsTheFold(stored({ checkpoints, record }))).toHaveLength(2);
  });

  test("what the journal itself finds is passed on", () => {
    const damage = [{ key, what: "append 7 is missing" }];
    const [found] = stateIsTheFold({ ...stored({}), damage });
    expect(found?.message).toBe("thread t: append 7 is missing");
  });
});

describe("I7: indexes say what records say", () => {
  const busy = { ...newThread("t", 0, {}), active: "r" };
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

describe("I8: one run at a time", () => {
  test("runs one after the other are in order", () => {
    expect(oneRunAtATime([effect("a", "1"), effect("a", "2"), effect("b", "3")])).toEqual([]);
  });

  test("a run that goes on after another has begun is found", () => {
    const found = oneRunAtATime([effect("a", "1"), effect("b", "2"), effect("a", "3")]);
    expect(found).toMatchObject([{ invariant: "I8" }]);
  });
});

test("frames come out whole however the stream was cut, without comments", () => {
  const text = `: heartbeat\n${frame(0).raw}: heartbeat\n${frame(1).raw}`;
  const frames: Frame[] = [];
  const cutter = new Frames((one) => frames.push(one));
  for (const letter of text) cutter.add(letter);
  expect(frames).toEqual([frame(0), frame(1)]);
});
