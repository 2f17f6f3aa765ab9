import { beforeEach, describe, expect, test } from "vitest";
import type { Fact } from "../../src/model/run-event.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { Collector } from "./reading.ts";
import { GatedJournal, HeldScheduler, KEY, Lines, journals, RUN, runRecord, Writer } from "./support.ts";

const custom = (data: unknown): Fact => ({ t: "custom", ns: "", json: JSON.stringify(data) });
const message: Fact = { t: "message", id: "m1", name: null, ns: "", meta: {} };

let scheduler: HeldScheduler;
let gate: GatedJournal;
let runLogs: RunLogRegistry;
let writer: Writer;
let lines: Lines;

describe.each(journals)("over $name", ({ open: openJournal, patience }) => {
  beforeEach(async () => {
    scheduler = new HeldScheduler(patience);
    gate = new GatedJournal(await openJournal());
    lines = new Lines();
    runLogs = createRunLogRegistry({ journal: gate.journal, scheduler, logger: lines });
    writer = new Writer(gate.journal);
    await writer.start();
  });

  const open = (first = 0) => runLogs.open(KEY, runRecord(), writer.thread.epoch, first);
  const follow = (after = -1, run = runRecord()) => new Collector(runLogs.follow(KEY, run, { after }));

  describe("ids", () => {
    test("each event of a fact takes one id, and emit returns the first of them", () => {
      const sink = open();
      expect(sink.emit({ t: "start", attempt: 1 })).toBe(0);
      expect(sink.emit(message)).toBe(2);
      expect(sink.emit({ t: "token", m: 2, text: "a" })).toBe(4);
      expect(sink.emit({ t: "checkpoint", id: "c", ns: "", step: 0, input: false })).toBe(7);
      expect(sink.emit(custom(1))).toBe(13);
      expect(sink.next).toBe(14);
    });

    test("a later attempt starts where it is told to", () => {
      const sink = open(1000);
      expect(sink.emit(custom(1))).toBe(1000);
    });

    test("a newer sink kills the older one", () => {
      const older = open();
      older.emit(custom("lost"));
      const newer = open(10);
      expect(older.emit(custom(1))).toBe(-1);
      expect(older.take()).toBeUndefined();
      older.close();
      older.abandon();
      expect(newer.emit(custom(2))).toBe(10);
    });

    test("after close nothing is taken any more", async () => {
      const sink = open();
      await writer.finish(sink);
      expect(sink.emit(custom(1))).toBe(-1);
      expect(sink.next).toBe(0);
    });
  });

  describe("chunks", () => {
    test("a synchronous burst is one chunk", async () => {
      const sink = open();
      for (let i = 0; i < 100; i++) sink.emit(custom(i));
      expect(gate.publishes).toHaveLength(0);
      await scheduler.settle();
      expect(gate.publishes.map(({ first, facts }) => [first, facts.length])).toEqual([[0, 100]]);
    });

    test("while one is in flight the next one fills", async () => {
      const sink = open();
      gate.held = true;
      sink.emit(custom(0));
      await scheduler.settle();
      for (let i = 1; i < 10; i++) {
        sink.emit(custom(i));
        await scheduler.settle();
      }
      expect(gate.publishes).toHaveLength(1);
      gate.release();
      await scheduler.settle();
      expect(gate.publishes.map(({ facts }) => facts.length)).toEqual([1, 9]);
    });

    test("a chunk is bounded in facts and in bytes, and a full one does not wait", () => {
      const sink = open();
      for (let i = 0; i < 600; i++) sink.emit(custom(i));
      expect(gate.publishes.map(({ facts }) => facts.length)).toEqual([256, 256]);
      const large = "x".repeat(100_000);
      for (let i = 0; i < 6; i++) sink.emit(custom(large));
      expect(gate.publishes.slice(2).map(({ facts }) => facts.length)).toEqual([90, 2]);
    });

    test("what take fetches is not published", async () => {
      const sink = open();
      sink.emit(custom(1));
      const chunk = sink.take();
      expect(chunk).toEqual({ run_id: RUN, first: 0, facts: [custom(1)] });
      expect(sink.take()).toBeUndefined();
      await scheduler.settle();
      expect(gate.publishes).toHaveLength(0);
    });
  });

  describe("visibility", () => {
    test("a fact is seen once it is stored, not before", async () => {
      const reader = follow();
      const sink = open();
      gate.held = true;
      sink.emit(custom(1));
      await scheduler.settle();
      expect(await reader.read()).toBe("wait");
      expect(reader.events).toEqual([]);
      gate.release();
      await scheduler.settle();
      await reader.read();
      expect(reader.ids).toEqual([0]);
    });

    test("takes and publishes are seen in the order of ids, whichever is stored first", async () => {
      const reader = follow();
      const sink = open();
      gate.held = true;
      sink.emit(custom("published"));
      await scheduler.settle();
      sink.emit(custom("taken"));
      const taken = sink.take();
      if (taken === undefined) throw new TypeError("nothing was taken");
      sink.stored(taken);
      sink.emit(custom("after"));
      await scheduler.settle();
      expect(await reader.read()).toBe("wait");
      expect(reader.events).toEqual([]);
      gate.release();
      await scheduler.settle();
      gate.release();
      await scheduler.settle();
      await reader.read();
      expect(reader.events.map(({ data }) => data)).toEqual(["published", "taken", "after"]);
    });

    test("facts that refer to large states are seen once these are stored, though their chunk was full before", async () => {
      const reader = follow();
      const sink = open();
      const large = { text: "x".repeat(200_000) };
      const made = (step: number): Fact => ({ t: "checkpoint", id: `c${step}`, ns: "", step, input: false });
      const chunk = sink.take([0, 1, 2].map((step) => ({ fact: made(step), values: large })));
      expect(gate.publishes.map(({ facts }) => facts)).toEqual([[made(0)], [made(1)]]);
      await scheduler.settle();
      // The append with the checkpoints is still in flight.
      expect(await reader.read()).toBe("wait");
      expect(reader.events).toEqual([]);
      if (chunk !== undefined) sink.stored(chunk);
      await scheduler.settle();
      await reader.read();
      const seen = reader.events.filter(({ event }) => event === "values");
      expect(seen.map(({ data }) => data)).toEqual([large, large, large]);
    });

    test("with sync: memory a fact is seen while it is still on its way", async () => {
      runLogs = createRunLogRegistry({ journal: gate.journal, scheduler, logger: lines, sync: "memory" });
      const reader = follow();
      const sink = open();
      gate.held = true;
      sink.emit(custom(1));
      await scheduler.settle();
      await reader.read();
      expect(reader.ids).toEqual([0]);
    });

    test("a waiting reader is told once for a chunk, by one callback", async () => {
      const sink = open();
      const reader = runLogs.follow(KEY, runRecord(), { after: -1 });
      let told = 0;
      reader.onReady(() => told++);
      for (let i = 0; i < 3; i++) expect(reader.next()).toBe("wait");
      for (let i = 0; i < 50; i++) sink.emit(custom(i));
      await scheduler.settle();
      expect(told).toBe(1);
      sink.emit(custom(50));
      await scheduler.settle();
      // It has not read again since.
      expect(told).toBe(1);
    });

    test("one reader's fault reaches neither the writer nor the other readers", async () => {
      const sink = open();
      const bad = runLogs.follow(KEY, runRecord(), { after: -1 });
      bad.onReady(() => {
        throw new Error("mine alone");
      });
      expect(bad.next()).toBe("wait");
      const good = follow();
      await good.read();
      sink.emit(custom(1));
      await scheduler.settle();
      await good.read();
      expect(good.ids).toEqual([0]);
      expect(lines.lines).toEqual(["a stream reader failed"]);
    });
  });

  describe("the end", () => {
    test("readers end after the last event", async () => {
      const reader = follow();
      const sink = open();
      sink.emit(custom(1));
      await writer.finish(sink);
      expect(await reader.read()).toBe("end");
      expect(reader.ids).toEqual([0]);
    });

    test("a close waits for what is in flight", async () => {
      const reader = follow();
      const sink = open();
      gate.held = true;
      sink.emit(custom(1));
      await scheduler.settle();
      sink.close();
      expect(await reader.read()).toBe("wait");
      gate.release();
      await scheduler.settle();
      expect(await reader.read()).toBe("end");
      expect(reader.ids).toEqual([0]);
    });

    test("an ended run is read from storage, and then ends", async () => {
      const sink = open();
      for (let i = 0; i < 5; i++) {
        sink.emit(custom(i));
        await scheduler.settle();
      }
      await writer.finish(sink);
      expect(runLogs.counts.logs).toBe(0);
      const reader = follow(1, runRecord({ status: "success", next_event: 5 }));
      expect(await reader.read()).toBe("end");
      expect(reader.ids).toEqual([2, 3, 4]);
    });

    test("a stale record does not make a reader wait for a run that has ended", async () => {
      const sink = open();
      sink.emit(custom(1));
      await writer.finish(sink);
      const reader = follow(-1, runRecord({ status: "pending" }));
      await scheduler.settle();
      expect(await reader.read()).toBe("end");
      expect(reader.ids).toEqual([0]);
      reader.reader.close();
      expect(runLogs.counts.logs).toBe(0);
    });

    test("a log whose readers have all read its end is let go at once", async () => {
      const sink = open();
      const reader = runLogs.follow(KEY, runRecord(), { after: -1 });
      reader.onReady(() => {
        if (reader.next() === "end") reader.close();
      });
      expect(reader.next()).toBe("wait");
      await writer.finish(sink);
      expect(runLogs.counts).toEqual({ logs: 0, readers: 0, watches: 0 });
      expect(scheduler.timers).toBe(0);
    });

    test("an ended log is kept for its readers, and let go after a minute", async () => {
      const sink = open();
      const slow = follow();
      sink.emit(custom(1));
      await writer.finish(sink);
      expect(runLogs.counts.logs).toBe(1);
      await scheduler.pass(60_000);
      expect(runLogs.counts.logs).toBe(0);
      expect(await slow.read()).toBe("end");
      expect(slow.ids).toEqual([0]);
      expect(scheduler.timers).toBe(0);
    });

    test("a run that is dismissed ends its readers", async () => {
      const reader = follow();
      expect(await reader.read()).toBe("wait");
      runLogs.dismiss(KEY, RUN);
      expect(await reader.read()).toBe("end");
      reader.reader.close();
      expect(runLogs.counts).toEqual({ logs: 0, readers: 0, watches: 0 });
    });
  });

  describe("broken off", () => {
    test("readers are cut when the run is given up", async () => {
      const reader = follow();
      const sink = open();
      expect(await reader.read()).toBe("wait");
      sink.abandon();
      expect(await reader.read()).toBe("cut");
      expect(sink.emit(custom(1))).toBe(-1);
      expect(runLogs.counts.logs).toBe(0);
    });

    test("a publish that fails cuts the readers; they come again and wait for the next attempt", async () => {
      const reader = follow();
      const sink = open();
      sink.emit(custom("kept"));
      await scheduler.settle();
      await reader.read();
      gate.break();
      sink.emit(custom("not kept"));
      await scheduler.settle();
      expect(await reader.read()).toBe("cut");
      expect(sink.emit(custom(1))).toBe(-1);

      gate.heal();
      const again = follow(0, runRecord({ event_mark: 1000 }));
      expect(await again.read()).toBe("wait");
      const next = open(1);
      next.emit(custom("again"));
      await scheduler.settle();
      await again.read();
      expect([...reader.events, ...again.events].map(({ data }) => data)).toEqual(["kept", "again"]);
    });

    test("an append that is lost cuts the readers", async () => {
      const reader = follow();
      const sink = open();
      await reader.read();
      sink.emit(custom(1));
      gate.break();
      await expect(writer.commit(sink)).rejects.toThrow("gone");
      expect(await reader.read()).toBe("cut");
    });

    test("closing the registry cuts everyone, now and later", async () => {
      const sink = open();
      const reader = follow();
      await reader.read();
      const over = runLogs.follow(KEY, runRecord({ status: "success" }), { after: -1 });
      runLogs.close();
      expect(await reader.read()).toBe("cut");
      // The rest that it has not read is in storage, which closes next.
      expect(over.next()).toBe("cut");
      expect(sink.emit(custom(1))).toBe(-1);
      expect(await follow().read()).toBe("cut");
    });
  });

  describe("where a reader starts", () => {
    test.each([
      [-1, [0, 1, 2, 3]],
      [1, [2, 3]],
      [3, []],
      [4, [0, 1, 2, 3]],
      [1e15, [0, 1, 2, 3]],
      [-7, [0, 1, 2, 3]],
      [Number.NaN, [0, 1, 2, 3]],
      [0.5, [0, 1, 2, 3]],
    ])("after %s of a live run", async (after, ids) => {
      const sink = open();
      for (let i = 0; i < 4; i++) sink.emit(custom(i));
      await scheduler.settle();
      const reader = follow(after);
      expect(await reader.read()).toBe("wait");
      expect(reader.ids).toEqual(ids);
    });

    test("inside a chunk, also after the log has let it go", async () => {
      const sink = open();
      for (let i = 0; i < 10; i++) sink.emit(custom(i));
      await scheduler.settle();
      await writer.finish(sink);
      const reader = follow(6, runRecord({ status: "success", next_event: 10 }));
      await reader.read();
      expect(reader.ids).toEqual([7, 8, 9]);
    });

    test("a reader that came before the run's start gets all of it", async () => {
      const reader = follow();
      expect(await reader.read()).toBe("wait");
      const sink = open();
      sink.emit({ t: "start", attempt: 1 });
      await writer.commit(sink);
      await reader.read();
      expect(reader.events).toMatchObject([
        { id: 0, event: "metadata", data: { run_id: RUN, attempt: 1, thread_id: KEY.thread } },
        { id: 1, event: "events" },
      ]);
    });
  });

  test("what a log keeps in memory is bounded; a slow reader gets the rest from storage", async () => {
    runLogs = createRunLogRegistry({
      journal: gate.journal,
      scheduler,
      logger: lines,
      limits: { tail: { weight: 10_000, facts: 20 } },
    });
    const slow = follow();
    const sink = open();
    for (let i = 0; i < 500; i++) {
      sink.emit(custom({ i, text: "x".repeat(50) }));
      await scheduler.settle();
    }
    expect(gate.reads).toBe(0);
    expect(await slow.read()).toBe("wait");
    expect(slow.ids).toEqual(Array.from({ length: 500 }, (_, i) => i));
    expect(gate.reads).toBeGreaterThan(0);
    // From here on it has caught up.
    const { reads } = gate;
    sink.emit(custom("live"));
    await scheduler.settle();
    await slow.read();
    expect(slow.events.at(-1)).toEqual({ id: 500, event: "custom", data: "live" });
    expect(gate.reads).toBe(reads);
  });

  /** A registry whose logs keep only one fact in memory. */
  function small(sync: "os" | "memory" = "os"): RunLogRegistry {
    const limits = { chunkFacts: 1, tail: { weight: 1e6, facts: 1 } };
    return createRunLogRegistry({ journal: gate.journal, scheduler, logger: lines, sync, limits });
  }

  describe("where storage and memory meet", () => {
    test("what storage has, but the writer has not been told of, is not shown", async () => {
      runLogs = small();
      const reader = follow();
      const sink = open();
      for (let i = 0; i < 2; i++) sink.emit(custom(i));
      await scheduler.settle();
      gate.held = true;
      sink.emit(custom("in flight"));
      await scheduler.settle();
      expect(await reader.read()).toBe("wait");
      expect(reader.ids).toEqual([0, 1]);
      expect(gate.reads).toBeGreaterThan(0);
      gate.release();
      await scheduler.settle();
      await reader.read();
      expect(reader.ids).toEqual([0, 1, 2]);
    });

    test("a read that began before an attempt was shown is made again", async () => {
      const reader = follow();
      gate.heldReads = true;
      const reading = reader.read(1);
      await scheduler.settle();
      const sink = open(10);
      sink.emit(custom("first"));
      await scheduler.settle();
      gate.releaseReads();
      await reading;
      expect(reader.ids).toEqual([10]);
    });

    test("what left memory while a read was on its way is read from storage", async () => {
      runLogs = small("memory");
      const first = open();
      first.emit(custom("old"));
      await scheduler.settle();
      const sink = open(100);
      gate.held = true;
      gate.early = false;
      sink.emit(custom(0));
      await scheduler.settle();
      const reader = follow(0);
      gate.heldReads = true;
      const reading = reader.read(1);
      await scheduler.settle();
      gate.held = false;
      gate.release();
      for (let i = 1; i < 5; i++) {
        sink.emit(custom(i));
        await scheduler.settle();
      }
      gate.releaseReads();
      await reading;
      await reader.read();
      expect(reader.ids).toEqual([100, 101, 102, 103, 104]);
    });

    test("an older attempt's writes that are stored after the newer one was opened are not missed", async () => {
      gate.held = true;
      gate.early = false;
      const older = open();
      older.emit(custom("in flight"));
      await scheduler.settle();
      older.abandon();
      const reader = follow(-1, runRecord({ event_mark: 1000 }));
      const newer = open(1);
      expect(await reader.read()).toBe("wait");
      gate.held = false;
      gate.release();
      newer.emit(custom("new"));
      await scheduler.settle();
      await reader.read();
      expect(reader.events.map(({ data }) => data)).toEqual(["in flight", "new"]);
    });

    test("an attempt that was cut off in flight does not keep memory from being let go", async () => {
      runLogs = small("memory");
      const older = open();
      gate.held = true;
      older.emit(custom(0));
      await scheduler.settle();
      const newer = open(1);
      gate.held = false;
      gate.release();
      for (let i = 1; i < 20; i++) {
        newer.emit(custom(i));
        await scheduler.settle();
      }
      const reader = follow();
      await reader.read();
      expect(reader.ids).toHaveLength(20);
      expect(gate.reads).toBeGreaterThan(0);
    });
  });
});
