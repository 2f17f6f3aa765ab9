import { beforeEach, describe, expect, test } from "vitest";
import { pumpSse, type SseOptions } from "../../src/http/sse.ts";
import { TrafficCounts } from "../../src/http/response-counts.ts";
import type { StreamMode } from "../../src/model/run.ts";
import type { EventSink } from "../../src/ports/event-sink.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { sseFormat, createView } from "../../src/stream/rendering.ts";
import { Peer } from "./peers.ts";
import { GatedJournal, HeldScheduler, KEY, Lines, journals, runRecord, Writer } from "./support.ts";

let scheduler: HeldScheduler;
let gate: GatedJournal;
let runLogs: RunLogRegistry;
let writer: Writer;
let sink: EventSink;
let outcomes: string[];
let traffic: TrafficCounts;

describe.each(journals)("over $name", ({ open: openJournal, patience }) => {
  beforeEach(async () => {
    scheduler = new HeldScheduler(patience);
    gate = new GatedJournal(await openJournal());
    runLogs = createRunLogRegistry({ journal: gate.journal, scheduler, logger: new Lines() });
    writer = new Writer(gate.journal);
    await writer.start();
    sink = runLogs.open(KEY, runRecord(), 1, 0);
    outcomes = [];
    traffic = new TrafficCounts();
  });

  const emit = (data: unknown) => sink.emit({ t: "custom", ns: "", json: JSON.stringify(data) });
  const event = (id: number, data: unknown) => `event: custom\ndata: ${JSON.stringify(data)}\nid: ${id}\n\n`;

  function pump(peer: Peer, after = -1, modes: StreamMode[] = ["custom"], over: Partial<SseOptions> = {}) {
    const reader = runLogs.follow(KEY, runRecord(), { after });
    return pumpSse(reader, peer, {
      view: createView(modes, false, sseFormat),
      scheduler,
      logger: new Lines(),
      traffic,
      onDone: (outcome) => outcomes.push(outcome),
      ...over,
    });
  }

  test("sends what is there, then what comes, then ends", async () => {
    emit(0);
    await scheduler.settle();
    const peer = new Peer();
    pump(peer);
    expect(peer.text).toBe(event(0, 0));
    expect(traffic.streams).toBe(1);
    emit(1);
    emit(2);
    await scheduler.settle();
    expect(peer.writes).toEqual([event(0, 0), event(1, 1) + event(2, 2)]);
    await writer.finish(sink);
    expect(peer.state).toBe("ended");
    expect(outcomes).toEqual(["ended"]);
    expect(traffic.streams).toBe(0);
    expect(scheduler.timers).toBe(0);
    expect(runLogs.counts).toEqual({ logs: 0, readers: 0, watches: 0 });
  });

  test("many small chunks that wait are joined into one write", async () => {
    for (let i = 0; i < 20; i++) {
      emit(i);
      await scheduler.settle();
    }
    const peer = new Peer();
    pump(peer);
    await scheduler.settle();
    expect(peer.writes).toHaveLength(1);
    expect(peer.text).toBe(Array.from({ length: 20 }, (_, i) => event(i, i)).join(""));
  });

  test("nothing is written where the view shows nothing", async () => {
    emit(1);
    await scheduler.settle();
    const peer = new Peer();
    pump(peer, -1, ["values"]);
    await scheduler.settle();
    expect(peer.writes).toEqual([]);
  });

  describe("heartbeats", () => {
    test("come every five seconds, whatever else is sent", async () => {
      const peer = new Peer();
      pump(peer);
      await scheduler.pass(4_999);
      emit("data");
      await scheduler.settle();
      expect(peer.text).toBe(event(0, "data"));
      await scheduler.pass(1);
      await scheduler.pass(10_000);
      expect(peer.writes.slice(1)).toEqual([": heartbeat\n", ": heartbeat\n", ": heartbeat\n"]);
    });

    test("are held while the peer does not keep up, and are not made up for", async () => {
      const peer = new Peer(1);
      pump(peer);
      emit("x");
      await scheduler.settle();
      await scheduler.pass(9_000);
      expect(peer.writes).toHaveLength(1);
      peer.drain(1_000);
      expect(peer.writes.slice(1)).toEqual([": heartbeat\n"]);
      await scheduler.pass(1_000);
      expect(peer.writes.slice(1)).toEqual([": heartbeat\n", ": heartbeat\n"]);
    });

    test("keep a stream alive that suffered once and then drained", async () => {
      const peer = new Peer(1);
      pump(peer);
      emit("x");
      await scheduler.settle();
      await scheduler.pass(4_000);
      peer.drain(Number.POSITIVE_INFINITY);
      await scheduler.pass(60_000);
      emit("y");
      await writer.finish(sink);
      expect(peer.state).toBe("ended");
      expect(peer.text.replaceAll(": heartbeat\n", "")).toBe(event(0, "x") + event(1, "y"));
    });
  });

  describe("a peer that does not keep up", () => {
    test("gets every event once it does, though nothing was kept for it", async () => {
      runLogs = createRunLogRegistry({
        journal: gate.journal,
        scheduler,
        logger: new Lines(),
        limits: { tail: { weight: 2_000, facts: 8 } },
      });
      sink = runLogs.open(KEY, runRecord(), 1, 0);
      const peer = new Peer(1);
      pump(peer);
      const expected: string[] = [];
      for (let i = 0; i < 300; i++) {
        emit(i);
        expected.push(event(i, i));
        await scheduler.settle();
      }
      expect(peer.writes).toHaveLength(1);
      await writer.finish(sink);
      while (peer.state === "open") {
        peer.drain(200);
        await scheduler.settle();
      }
      expect(peer.state).toBe("ended");
      expect(peer.text).toBe(expected.join(""));
    });

    test("is closed after ten seconds, to come again", async () => {
      const peer = new Peer(1);
      pump(peer);
      emit("x");
      await scheduler.settle();
      await scheduler.pass(9_999);
      expect(peer.state).toBe("open");
      await scheduler.pass(1);
      expect(peer.state).toBe("closed");
      expect(outcomes).toEqual(["stalled"]);
      expect(scheduler.timers).toBe(0);
      expect(runLogs.counts.readers).toBe(0);
    });

    test("is waited for before the end", async () => {
      const peer = new Peer(1);
      pump(peer);
      emit("last");
      await writer.finish(sink);
      expect(peer.state).toBe("open");
      peer.drain(1);
      expect(peer.state).toBe("ended");
      expect(peer.text).toBe(event(0, "last"));
    });
  });

  test("a log that is broken off closes the connection without an end", async () => {
    const peer = new Peer();
    pump(peer);
    emit(0);
    await scheduler.settle();
    sink.abandon();
    expect(peer.state).toBe("closed");
    expect(peer.text).toBe(event(0, 0));
    expect(outcomes).toEqual(["cut"]);
  });

  test("a peer that left is not written to, and lets go of all", async () => {
    const peer = new Peer();
    const left = pump(peer);
    left();
    left();
    emit(0);
    await scheduler.settle();
    expect(peer.writes).toEqual([]);
    expect(outcomes).toEqual(["left"]);
    expect(scheduler.timers).toBe(0);
    expect(runLogs.counts.readers).toBe(0);
  });

  test("a peer that leaves while storage is being read", async () => {
    emit(0);
    await writer.finish(sink);
    const peer = new Peer();
    gate.heldReads = true;
    const reader = runLogs.follow(KEY, runRecord({ status: "success", next_event: 1 }), { after: -1 });
    const left = pumpSse(reader, peer, {
      view: createView(["custom"], false, sseFormat),
      scheduler,
      logger: new Lines(),
      traffic,
    });
    expect(traffic.streams).toBe(1);
    left();
    expect(traffic.streams).toBe(0);
    gate.releaseReads();
    await scheduler.settle();
    expect(peer.writes).toEqual([]);
  });

  test("events that cannot be read close the connection: a gap is never shown", async () => {
    sink.emit({ t: "checkpoint", id: "c", ns: "", step: 0, input: false });
    await scheduler.settle();
    const inner = gate.journal;
    runLogs = createRunLogRegistry({
      journal: new Proxy(inner, {
        get: (target, name) =>
          name === "checkpoint" ? () => Promise.reject(new Error("damaged")) : Reflect.get(target, name),
      }),
      scheduler,
      logger: new Lines(),
    });
    const peer = new Peer();
    pump(peer, -1, ["values"]);
    await scheduler.settle();
    expect(peer.state).toBe("closed");
    expect(outcomes).toEqual(["failed"]);
  });

  test("a long stored run leaves other work its turn", async () => {
    for (let i = 0; i < 200; i++) {
      emit(i);
      await scheduler.settle();
    }
    const peer = new Peer();
    pump(peer);
    // Everything is in memory, so the reads are synchronous.
    expect(peer.text).toBe("");
    await scheduler.settle();
    expect(peer.text.match(/^id: /gm)).toHaveLength(200);
  });

  test("another run's events, or a signal while it reads, change nothing", async () => {
    const peer = new Peer();
    gate.heldReads = true;
    sink = runLogs.open(KEY, runRecord(), 1, 10);
    const other = runLogs.open(KEY, runRecord({ run_id: "0199aaaa-0000-7000-8000-00000000000c" }), 1, 0);
    pump(peer);
    emit("while it reads");
    other.emit({ t: "custom", ns: "", json: '"other"' });
    await scheduler.settle();
    gate.releaseReads();
    await scheduler.settle();
    expect(peer.text).toBe(event(10, "while it reads"));
  });
});
