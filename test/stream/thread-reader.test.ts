import { beforeEach, describe, expect, test } from "vitest";
import type { RunRecord, RequestedThreadModes } from "../../src/model/run.ts";
import type { Journal } from "../../src/ports/journal.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { webSocketFormat } from "../../src/stream/websocket-frames.ts";
import { StreamPump } from "../../src/stream/stream-pump.ts";
import type { ThreadReader } from "../../src/stream/thread-reader.ts";
import { createThreadRenderer } from "../../src/stream/thread-stream-rendering.ts";
import { SocketWriter } from "../../src/websocket/socket-writer.ts";
import { SimulatedRandom } from "../simulation/random.ts";
import { FakeSocket } from "./peers.ts";
import { HeldScheduler, journals, KEY, Lines, runRecord, Writer } from "./support.ts";

const storage = journals[1];

describe("a thread's reader", () => {
  let scheduler: HeldScheduler;
  let journal: Journal;
  let runLogs: RunLogRegistry;
  let writer: Writer;
  /** The thread's event numbers of all shown events so far, in order. */
  let numbers: number[];
  /** The event numbers of the ends of runs. */
  let ends: number[];
  let count: number;

  beforeEach(async () => {
    scheduler = new HeldScheduler(storage.patience);
    journal = await storage.open();
    runLogs = createRunLogRegistry({ journal, scheduler, logger: new Lines() });
    writer = new Writer(journal);
    await writer.append({ kind: "created" });
    numbers = [];
    ends = [];
    count = 0;
  });

  /** Writes a run as its actor would, with this many events; `between` is called after each. */
  async function run(facts: number, between: (left: number) => Promise<void> = async () => undefined) {
    const order = ++count;
    const { next_event } = writer.thread;
    const run_id = `0199aaaa-0000-7000-8000-${String(order).padStart(12, "0")}`;
    const record: RunRecord = runRecord({ run_id, order, seq_base: next_event, event_mark: 1e6 });
    const sink = runLogs.open(KEY, record, writer.thread.epoch + 1, 0);
    sink.emit({ t: "start", attempt: 1 });
    writer.thread = { ...writer.thread, active: run_id, next_run: order + 1 };
    const events = sink.take();
    await writer.append(
      { kind: "started", runs: [record], ...(events && { events }) },
      writer.thread.epoch + 1,
    );
    if (events !== undefined) sink.stored(events);
    numbers.push(next_event);
    for (let i = 0; i < facts; i++) {
      numbers.push(
        next_event + sink.emit({ t: "custom", ns: "", json: JSON.stringify({ i, text: "x".repeat(20) }) }),
      );
      await between(facts - i - 1);
    }
    ends.push(next_event + sink.next);
    writer.thread = { ...writer.thread, active: null, next_event: next_event + sink.next + 1 };
    await writer.finish(sink, record);
  }

  function watch(after: number, room = Number.POSITIVE_INFINITY, withEnds = false) {
    const reader: ThreadReader = runLogs.followThread(KEY, after, withEnds);
    const socket = new FakeSocket(room);
    const modes: RequestedThreadModes = { modes: new Set(), runModes: ["custom"] };
    const render = createThreadRenderer(reader, modes, (of) => webSocketFormat(false, of));
    const pump = new StreamPump(reader, render, new SocketWriter(socket), {
      scheduler,
      logger: new Lines(),
    });
    socket.onDrain(pump.drained);
    pump.start();
    const ids = () => socket.messages.map((text) => Number((JSON.parse(text) as { id: string }).id));
    const lastId = () => {
      const last = socket.messages.at(-1);
      return last === undefined ? after : Number((JSON.parse(last) as { id: string }).id);
    };
    return { socket, pump, ids, lastId, reader, after };
  }

  test.each([
    ["every event after the number", false],
    ["every event and each end of a run after the number", true],
  ])("a reader that joins at any time, slow or fast, gets %s, in order and once", async (_, withEnds) => {
    const random = new SimulatedRandom(11);
    const watching: ReturnType<typeof watch>[] = [];
    for (let n = 0; n < 60; n++) {
      if (random.below(2) === 0) {
        const slow = random.below(3) === 0;
        const after = random.below(4) === 0 ? 0 : random.below(writer.thread.next_event);
        watching.push(watch(after, slow ? 3 : Number.POSITIVE_INFINITY, withEnds));
      }
      await run(random.below(5), async () => {
        if (random.below(2) === 0) await scheduler.settle();
        for (const { socket } of watching) if (random.below(3) === 0) socket.drain(1 + random.below(6));
      });
    }
    // With a disk, the number of turns until a result depends on the disk.
    const expected = withEnds ? [...numbers, ...ends].toSorted((a, b) => a - b) : numbers;
    const last = expected.at(-1);
    const isBehind = () => watching.some(({ lastId }) => lastId() !== last);
    for (let i = 0; i < 200 || (i < 20_000 && isBehind()); i++) {
      for (const { socket } of watching) socket.drain(50);
      await scheduler.settle();
    }
    expect(watching.length).toBeGreaterThan(15);
    for (const { ids, after } of watching) {
      expect(ids(), `after ${after}`).toEqual(expected.filter((number) => number > after));
    }
    for (const { pump } of watching) pump.left();
    await scheduler.settle();
    expect(runLogs.counts).toMatchObject({ readers: 0, watches: 0 });
  });

  test("one that keeps up looks nothing up when a run begins", async () => {
    await run(2);
    const one = watch(0);
    await scheduler.settle();
    let lookups = 0;
    const { started } = journal;
    journal.started = (...args) => {
      lookups++;
      return started.apply(journal, args);
    };
    for (let i = 0; i < 5; i++) {
      await run(3);
      await scheduler.settle();
    }
    expect(one.ids()).toEqual(numbers);
    expect(lookups).toBe(0);
  });

  test("a reader that comes while a run's start is on its way to storage misses nothing of it", async () => {
    await run(1);
    let late: ReturnType<typeof watch> | undefined;
    const { append } = journal;
    journal.append = (change) => {
      const stored = append.call(journal, change);
      if (change.kind === "started") late ??= watch(writer.thread.next_event - 1);
      return stored;
    };
    const before = numbers.length;
    await run(3);
    await scheduler.settle();
    expect(late?.ids()).toEqual(numbers.slice(before));
  });

  test("the end of the server cuts those that wait, and those that come later", async () => {
    const one = watch(0);
    await scheduler.settle();
    runLogs.close();
    await scheduler.settle();
    expect(one.socket.closed?.[0]).toBe(1012);
    expect(watch(0).socket.closed?.[0]).toBe(1012);
    expect(runLogs.counts).toEqual({ logs: 0, readers: 0, watches: 0 });
  });

  test("who does not keep up holds a cursor: what is left of a large chunk is read again", async () => {
    const socket = watch(0, 2);
    const { next_event } = writer.thread;
    const record = runRecord({
      run_id: "0199aaaa-0000-7000-8000-0000000000aa",
      order: 1,
      seq_base: next_event,
      event_mark: 1e6,
    });
    writer.thread = { ...writer.thread, next_run: 2, active: record.run_id };
    const sink = runLogs.open(KEY, record, writer.thread.epoch + 1, 0);
    await writer.start(record);
    for (let i = 0; i < 20; i++) sink.emit({ t: "custom", ns: "", json: JSON.stringify("y".repeat(20_000)) });
    await scheduler.settle();
    expect(socket.ids()).toHaveLength(2);
    expect(socket.reader.cursor).toBe(socket.ids().at(-1));
    for (let i = 0; i < 30; i++) {
      socket.socket.drain(2);
      await scheduler.settle();
    }
    expect(socket.ids()).toEqual(Array.from({ length: 20 }, (_, i) => next_event + i));
  });
});
