import { describe, expect, test } from "vitest";
import { everythingRests, nothingIsLost } from "./checkers/acknowledged.ts";
import { finishedTasks, nothingIsRepeated, oneRunAtATime } from "./checkers/repeats.ts";
import { resumeIsExact } from "./checkers/streams.ts";
import { everyEndIsDelivered } from "./checkers/webhooks.ts";
import { Frames, type Frame } from "./client.ts";
import { Ledger } from "./ledger.ts";
import { checkpoint, effect, frame, stored } from "./fixtures.ts";

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
    ledger.gone("killed");
    const late = ledger.acknowledge("t", "later", "wait", ledger.now() + 1);
    expect(ledger.mayVanish(late)).toBe(false);
  });

  test("a run whose client is cut off by a stop may end with it if that was asked for; not by a kill", () => {
    const { ledger } = oneRun();
    const entry = ledger.acknowledge("t", "left", "leave", ledger.now(), { bound: true });
    ledger.gone("killed");
    expect(ledger.mayBeCut(entry)).toBe(false);
    ledger.gone("stopped");
    expect(ledger.mayBeCut(entry)).toBe(true);
    expect(ledger.mayBeCut(ledger.acknowledge("t", "later", "leave", ledger.now(), { bound: true }))).toBe(
      false,
    );
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
    for (let i = 0; i < 3; i++) ledger.gone("killed");
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

describe("I8: one run at a time", () => {
  test("runs one after the other are in order", () => {
    expect(oneRunAtATime([effect("a", "1"), effect("a", "2"), effect("b", "3")])).toEqual([]);
  });

  test("a run that goes on after another has begun is found", () => {
    const found = oneRunAtATime([effect("a", "1"), effect("b", "2"), effect("a", "3")]);
    expect(found).toMatchObject([{ invariant: "I8" }]);
  });
});

describe("I9: every end is delivered", () => {
  const hooked = () => {
    const entry = new Ledger().acknowledge("t", "r", "wait", 0, { hooked: true });
    return { entry, status: "success" };
  };
  const delivered = { run: "r", id: "r", status: "success" };

  test("an end that was delivered, once or again, is in order; so is one without a webhook", () => {
    expect(everyEndIsDelivered([hooked()], [delivered, delivered], [])).toEqual([]);
    const quiet = { entry: new Ledger().acknowledge("t", "r", "wait", 0), status: "success" };
    expect(everyEndIsDelivered([quiet], [], [])).toEqual([]);
    expect(everyEndIsDelivered([{ ...hooked(), status: undefined }], [], [])).toEqual([]);
  });

  test.each([
    ["never delivered", hooked(), [], [], "was never delivered"],
    ["still pending", hooked(), [delivered], [{}], "1 webhooks are owed still"],
    ["delivered with another status", hooked(), [{ ...delivered, status: "error" }], [], "delivered error"],
    ["delivered before its end", { ...hooked(), status: "pending" }, [delivered], [], "is pending, and"],
    ["delivered and rolled back", { ...hooked(), status: undefined }, [delivered], [], "is undefined, and"],
    ["delivered under two ids", hooked(), [delivered, { ...delivered, id: "s" }], [], "under another id"],
  ])("one that is %s is found", (_, now, all, owed, message) => {
    expect(everyEndIsDelivered([now], all, owed)).toMatchObject([
      { message: expect.stringContaining(message) },
    ]);
  });
});

test("frames come out whole however the stream was cut, without comments", () => {
  const text = `: heartbeat\n${frame(0).raw}: heartbeat\n${frame(1).raw}`;
  const frames: Frame[] = [];
  const cutter = new Frames((one) => frames.push(one));
  for (const letter of text) cutter.add(letter);
  expect(frames).toEqual([frame(0), frame(1)]);
});
