import { beforeEach, describe, expect, test } from "vitest";
import { pumpRendered, pumpSse } from "../../src/http/sse.ts";
import { TrafficCounts } from "../../src/http/response-counts.ts";
import { ResponseMemoryBudget } from "../../src/stream/response-memory-budget.ts";
import type { EventSink } from "../../src/ports/event-sink.ts";
import type { Journal } from "../../src/ports/journal.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import {
  mayHaveLargeProtocolEvents,
  createProtocolSseRenderer,
} from "../../src/stream/protocol/thread-protocol-rendering.ts";
import { createView, sseFormat } from "../../src/stream/rendering.ts";
import { createThreadRenderer, threadSseFormat } from "../../src/stream/thread-stream-rendering.ts";
import { Peer } from "./peers.ts";
import { HeldScheduler, KEY, Lines, journals, runRecord, Writer } from "./support.ts";

const KIB = 1024;
/** Characters of a state. Two states are more than is rendered at a time. */
const LARGE = 300 * KIB;
const STATES = 7;
/** Event ids that a checkpoint takes. */
const IDS = 6;
/** Characters of one piece that is sent to a connection. */
const PIECE = 64 * KIB;

let scheduler: HeldScheduler;
let journal: Journal;
let writer: Writer;
let runLogs: RunLogRegistry;
let memory: ResponseMemoryBudget;

const states = (size: number) =>
  Array.from({ length: STATES }, (_, i) => ({ i, text: String(i).repeat(size) }));

const EXPECTED = states(LARGE)
  .map((state, i) => `event: values\ndata: ${JSON.stringify(state)}\nid: ${i * IDS}\n\n`)
  .join("");

const eventsOf = (text: string) =>
  text.split("\n\n").flatMap((event) => {
    const [, name, id] =
      /^event: ([^\n]+)\n[^]*\nid: ([^\n]+)$/.exec(event.replaceAll(/: heartbeat\n/g, "")) ?? [];
    return name === undefined ? [] : [`${id} ${name}`];
  });

describe.each(journals)("large states, over $name", ({ name, open, patience }) => {
  beforeEach(async () => {
    scheduler = new HeldScheduler(patience);
    journal = await open();
    memory = new ResponseMemoryBudget(scheduler, { tenant: 900 * KIB, all: 4096 * KIB });
    await begin();
  });

  async function begin() {
    runLogs = createRunLogRegistry({ journal, scheduler, memory, logger: new Lines() });
    writer = new Writer(journal);
    await writer.start();
  }

  async function finish(sink: EventSink) {
    writer.thread = { ...writer.thread, active: null, next_event: 1 + sink.next, next_run: 2 };
    await writer.finish(sink);
  }

  /** Waits until the condition holds, because a real storage reads large values in later turns. */
  async function expectSoon(is: () => boolean) {
    const end = performance.now() + 20_000;
    // oxlint-disable-next-line no-await-in-loop -- polls until the condition holds
    while (!is() && performance.now() < end) await scheduler.settle();
    await scheduler.settle();
    expect(is()).toBe(true);
  }

  const isWhole = (peer: Peer) => areWhole([peer]);
  /** The texts are only looked at when all are long enough: that takes time. */
  const areWhole = (peers: readonly Peer[]) =>
    peers.every(({ received }) => received >= EXPECTED.length) &&
    peers.every(({ text }) => text.replaceAll(": heartbeat\n", "") === EXPECTED);
  const hasBegun = (peer: Peer) => peer.writes.length > 0;

  /**
   * Writes a run: with its states, as a running graph does (a large state closes the chunk), or all of it as one chunk
   * that refers to them.
   */
  async function write(size: number, withStates: boolean) {
    const ids = await writer.checkpoints(states(size));
    const sink = runLogs.open(KEY, runRecord(), 1, 0);
    for (const [i, id] of ids.entries()) {
      const values = withStates ? states(size)[i] : undefined;
      sink.emit({ t: "checkpoint", id, ns: "", step: i, input: false }, values);
    }
    await scheduler.settle();
    return sink;
  }

  const options = () => ({
    scheduler,
    logger: new Lines(),
    traffic: new TrafficCounts(),
    memory: { budget: memory, tenant: "a" },
  });

  function pump(peer: Peer) {
    const view = createView(["values"], false, sseFormat);
    return pumpSse(runLogs.follow(KEY, runRecord(), { after: -1 }), peer, { view, ...options() });
  }

  /** How many readers fit into the memory: each uses one state, or the two that are rendered at a time. */
  const ways: readonly [string, (sink: EventSink) => Promise<void>, boolean, number][] = [
    ["a running run", async () => undefined, true, 3],
    ["a running run in one chunk", async () => undefined, false, 2],
    ["an ended run", finish, true, 3],
    ["an ended run in one chunk", finish, false, 2],
  ];

  test.each(ways)(
    "are sent whole and in order, in pieces that a connection can take: %s",
    async (_, end, withStates) => {
      await end(await write(LARGE, withStates));
      const peer = new Peer();
      pump(peer);
      await expectSoon(() => isWhole(peer));
      expect(Math.max(...peer.writes.map(({ length }) => length))).toBeLessThanOrEqual(PIECE);
    },
  );

  test.each(ways)(
    "readers that take them slowly wait for each other, and get all of them: %s",
    async (_, end, withStates, fitting) => {
      await end(await write(LARGE, withStates));
      const peers = Array.from({ length: 20 }, () => new Peer(1));
      for (const peer of peers) pump(peer);
      await expectSoon(() => peers.filter(hasBegun).length >= fitting);
      expect(peers.filter(hasBegun).length).toBe(fitting);
      await expectSoon(() => {
        for (const peer of peers) if (peer.room <= 0) peer.drain(PIECE);
        return areWhole(peers);
      });
    },
  );

  test("a reader that takes nothing is cut off, and those that waited for it go on", async () => {
    await finish(await write(LARGE, false));
    const dead = [new Peer(1), new Peer(1)];
    for (const peer of dead) pump(peer);
    await expectSoon(() => dead.every(hasBegun));
    const peer = new Peer();
    pump(peer);
    await scheduler.settle();
    expect(hasBegun(peer)).toBe(false);
    await scheduler.pass(10_000);
    await expectSoon(() => isWhole(peer));
    expect(dead.map(({ state }) => state)).toEqual(["closed", "closed"]);
  });

  test("a reader that leaves while it waits takes no memory with it", async () => {
    await finish(await write(LARGE, false));
    const dead = [new Peer(1), new Peer(1)];
    const leave = dead.map((peer) => pump(peer));
    const leaveWaiting = Array.from({ length: 8 }, () => pump(new Peer()));
    await expectSoon(() => dead.every(hasBegun));
    for (const left of leaveWaiting) left();
    for (const left of leave) left();
    await scheduler.settle();
    const peer = new Peer();
    pump(peer);
    await expectSoon(() => isWhole(peer));
    expect(peer.state).toBe("ended");
  });

  test("another tenant waits for nobody", async () => {
    await finish(await write(LARGE, false));
    const dead = Array.from({ length: 3 }, () => new Peer(1));
    for (const peer of dead) pump(peer);
    await expectSoon(() => dead.filter(hasBegun).length === 2);
    const peer = new Peer();
    const view = createView(["values"], false, sseFormat);
    pumpSse(runLogs.follow(KEY, runRecord(), { after: -1 }), peer, {
      view,
      ...options(),
      memory: { budget: memory, tenant: "b" },
    });
    await expectSoon(() => isWhole(peer));
    expect(peer.state).toBe("ended");
  });

  // The slow journal cannot list runs.
  test.runIf(name === "the storage").each([
    ["a running run", async () => undefined, true],
    ["an ended run", finish, true],
    ["an ended run in one chunk", finish, false],
  ] as readonly [string, (sink: EventSink) => Promise<void>, boolean][])(
    "readers of protocol events wait for each other, and get each event once: %s",
    async (_, end, withStates) => {
      await end(await write(LARGE, withStates));
      const follow = (peer: Peer, memoryOptions: object) => {
        const reader = runLogs.followWhole(KEY, 0);
        pumpRendered(
          reader,
          peer,
          createProtocolSseRenderer(reader, () => true),
          {
            scheduler,
            logger: new Lines(),
            traffic: new TrafficCounts(),
            ...memoryOptions,
          },
        );
      };
      const free = new Peer();
      follow(free, {});
      const valuesOf = ({ text }: Peer) => eventsOf(text).filter((event) => event.endsWith(" values"));
      await expectSoon(() => free.received >= STATES * LARGE && valuesOf(free).length === STATES);
      const peers = Array.from({ length: 20 }, () => new Peer(1));
      for (const peer of peers)
        follow(peer, { memory: { budget: memory, tenant: "a", mayBeLarge: mayHaveLargeProtocolEvents } });
      await expectSoon(() => peers.filter((peer) => valuesOf(peer).length > 0 || peer.room <= 0).length >= 2);
      // Three fit, and one more may be read at the same time as the third.
      expect(peers.filter(({ room }) => room <= 0).length).toBeLessThanOrEqual(4);
      await expectSoon(() => {
        for (const peer of peers) if (peer.room <= 0) peer.drain(PIECE);
        return (
          peers.every(({ received }) => received >= STATES * LARGE) &&
          // The events after the last state may arrive later than it.
          peers.every(({ text }) => eventsOf(text).length === eventsOf(free.text).length)
        );
      });
      const whole = eventsOf(free.text);
      for (const peer of peers) expect(eventsOf(peer.text)).toEqual(whole);
    },
  );

  test.runIf(name === "the storage").each([
    [
      "the events of a thread",
      (reader: ReturnType<RunLogRegistry["followThread"]>) =>
        createThreadRenderer(
          reader,
          { modes: new Set(["run_modes"] as const), runModes: [] },
          threadSseFormat,
        ),
    ],
    [
      "protocol events",
      (reader: ReturnType<RunLogRegistry["followThread"]>) => createProtocolSseRenderer(reader, () => true),
    ],
  ])("the parts make the same events as a small run: %s", async (_, rendered) => {
    const seen: string[][] = [];
    for (const size of [1, LARGE]) {
      // oxlint-disable no-await-in-loop -- each run has a journal of its own
      journal = await open();
      await begin();
      await finish(await write(size, false));
      const peer = new Peer();
      const reader = runLogs.followWhole(KEY, 0);
      pumpRendered(reader, peer, rendered(reader), {
        scheduler,
        logger: new Lines(),
        traffic: new TrafficCounts(),
      });
      await expectSoon(
        () =>
          peer.received >= STATES * size &&
          eventsOf(peer.text).filter((event) => event.endsWith(" values")).length === STATES,
      );
      await expectSoon(() => size === 1 || eventsOf(peer.text).length >= (seen[0]?.length ?? 0));
      seen.push(eventsOf(peer.text));
      // oxlint-enable no-await-in-loop
    }
    expect(seen[0]?.length).toBeGreaterThan(STATES);
    expect(seen[1]).toEqual(seen[0]);
  });
});
