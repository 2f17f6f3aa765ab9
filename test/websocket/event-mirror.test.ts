import { beforeEach, describe, expect, test } from "vitest";
import { pumpSse } from "../../src/http/sse.ts";
import { AccessControl, type AccessOptions } from "../../src/access/access-control.ts";
import { TrafficCounts } from "../../src/http/response-counts.ts";
import { OpenSockets } from "../../src/websocket/open-sockets.ts";
import { ResponseMemoryBudget } from "../../src/stream/response-memory-budget.ts";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import type { UpgradeDeps } from "../../src/websocket/deps.ts";
import { LARGE_OUTPUT } from "../../src/stream/recent-log-chunks.ts";
import { createUpgrade } from "../../src/websocket/upgrade.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { RunRecord, StreamMode } from "../../src/model/run.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import type { ThreadSystem } from "../../actors/thread-system-interface.ts";
import { createRuns } from "../../src/service/runs.ts";
import { visibleThread } from "../../src/service/threads.ts";
import { createThreadProtocol } from "../../src/service/thread-protocol.ts";
import type { HttpRequest } from "../../src/ports/transport.ts";
import type { EventSink } from "../../src/ports/event-sink.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { sseFormat, createView } from "../../src/stream/rendering.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedRandom } from "../simulation/random.ts";
import { FakeSocket, Peer } from "../stream/peers.ts";
import {
  GatedJournal,
  HeldScheduler,
  KEY,
  Lines,
  journals,
  RUN,
  runRecord,
  Writer,
} from "../stream/support.ts";

const notAsked = () => Promise.reject(new TypeError("not asked for"));

/** A service of which only the reads are used. */
function reading() {
  const { journal } = gate;
  const system = { keepTemporary: () => () => undefined } as unknown as ThreadSystem;
  const unasked = undefined as never;
  const runs = createRuns({
    system,
    journal,
    catalog: unasked,
    runLogs,
    clock: new SimulatedClock(),
    engine: unasked,
    newId: unasked,
    assistants: unasked,
    webhooks: unasked,
  });
  return {
    threads: { record: (key: ThreadKey) => visibleThread(journal, key) },
    runs,
    events: { send: notAsked },
    protocol: createThreadProtocol({
      journal,
      runLogs,
      runs,
      threads: { state: notAsked },
      states: { at: notAsked },
    }),
    inspection: unasked,
  };
}

let scheduler: HeldScheduler;
let gate: GatedJournal;
let runLogs: RunLogRegistry;
let writer: Writer;
let sink: EventSink;
const OWN: readonly StreamMode[] = ["values", "updates", "messages-tuple", "custom"];
const { kwargs } = runRecord();
const run: RunRecord = runRecord({ event_mark: 1000, kwargs: { ...kwargs, stream_mode: OWN } });

describe.each(journals)("over $name", ({ name: journalName, open: openJournal, patience }) => {
  beforeEach(async () => {
    scheduler = new HeldScheduler(patience);
    gate = new GatedJournal(await openJournal());
    runLogs = createRunLogRegistry({ journal: gate.journal, scheduler, logger: new Lines() });
    writer = new Writer(gate.journal);
    await writer.start(run);
    sink = runLogs.open(KEY, runRecord(), 1, 0);
  });

  function request(path: string, query = "", headers: Record<string, string> = {}): HttpRequest {
    const all = { host: "localhost", ...headers };
    const header = (name: string) => (all as Record<string, string>)[name];
    return {
      method: "GET",
      path,
      query,
      header,
      headers: () => Object.entries(all),
      body: async () => new Uint8Array(),
    };
  }

  const sockets = new OpenSockets();
  const serving = (options: AccessOptions = {}, changed: Partial<UpgradeDeps> = {}) =>
    createUpgrade({
      service: reading(),
      scheduler,
      budget: new TimeBudget(new SimulatedClock(), scheduler),
      streamMemory: new ResponseMemoryBudget(scheduler),
      access: new AccessControl(options, { clock: new SimulatedClock(), random: new SimulatedRandom(1) }),
      logger: new Lines(),
      configurableHeaders: () => undefined,
      sockets,
      inspect: (socket) => socket.close(1000, "not here"),
      requestLog: "debug",
      ...changed,
    });

  const PATH = `/threads/${KEY.thread}/runs/${RUN}/stream`;

  const upgrade = (path: string, query = "", lastEventId?: string) =>
    serving()(request(path, query, lastEventId === undefined ? {} : { "last-event-id": lastEventId }));

  async function connect(
    query = "",
    socket = new FakeSocket(),
    path = PATH,
    lastEventId?: string,
  ): Promise<FakeSocket> {
    const answer = upgrade(path, query, lastEventId);
    if (answer.kind !== "accept") throw new TypeError(answer.body);
    answer.open(socket);
    await scheduler.settle();
    return socket;
  }

  const facts: readonly (readonly [Fact, Record<string, unknown>?])[] = [
    [{ t: "start", attempt: 1 }],
    [{ t: "checkpoint", id: "c", ns: "", step: 0, input: false }, { a: 'x\n"y"' }],
    [{ t: "message", id: "m", name: "bot", ns: "", meta: { langgraph_node: "n" } }],
    [{ t: "token", m: 8, text: "héllo" }],
    [{ t: "custom", ns: "", json: '{"i":1}' }],
    // Not for clients that have not requested subgraphs.
    [
      {
        t: "result",
        id: "s",
        name: "n",
        ns: "sub:1",
        checkpoint: "d",
        at: 1,
        update: { b: 1 },
        interrupts: [],
      },
    ],
    [{ t: "result", id: "t", name: "n", ns: "", checkpoint: "c", at: 1, update: { a: 1 }, interrupts: [] }],
    [{ t: "error", error: { error: "Error", message: "end" } }],
  ];

  function emitAll(): void {
    for (const [fact, values] of facts) sink.emit(fact, values);
  }

  /** Parses server-sent events as a client does. */
  function parse(text: string): unknown[] {
    return [...text.matchAll(/event: (.*)\ndata: (.*)\nid: (\d+)\n\n/g)].map(([, event, data, id]) => ({
      id,
      event,
      data: JSON.parse(data ?? ""),
    }));
  }

  test.each<[string, StreamMode[]]>([
    ["values", ["values"]],
    ["updates,custom", ["updates", "custom"]],
    ["messages-tuple", ["messages-tuple"]],
  ])("the mirror is the SSE, event for event: %s", async (query, modes) => {
    const peer = new Peer();
    pumpSse(runLogs.follow(KEY, run, { after: -1 }), peer, {
      view: createView(modes, false, sseFormat),
      scheduler,
      logger: new Lines(),
      traffic: new TrafficCounts(),
    });
    const socket = await connect(`stream_mode=${query}`);
    emitAll();
    await writer.finish(sink, run);
    await scheduler.settle();
    expect(socket.messages.length).toBeGreaterThan(2);
    expect(socket.messages.map((text) => JSON.parse(text))).toEqual(parse(peer.text));
    expect(socket.closed).toEqual([1000, "The run has ended"]);
  });

  test("the run's own modes where none is named, in the order of ids", async () => {
    emitAll();
    const socket = await connect();
    const got = socket.messages.map((text) => JSON.parse(text) as { id: string; event: string });
    expect(got.map(({ id, event }) => [id, event])).toEqual([
      ["0", "metadata"],
      ["2", "values"],
      ["10", "messages"],
      ["13", "custom"],
      ["20", "updates"],
      ["26", "error"],
    ]);
  });

  test.each([
    ["last_event_id=-1", ["0", "10"]],
    ["", ["0", "10"]],
    ["last_event_id=0", ["10"]],
    ["last_event_id=4", ["10"]],
    ["last_event_id=10", []],
    ["last_event_id=999999", ["0", "10"]],
  ])("resumes: ?%s", async (query, ids) => {
    for (const [fact, values] of facts.slice(0, 4)) sink.emit(fact, values);
    await scheduler.settle();
    const socket = await connect(`${query}&stream_mode=messages-tuple`);
    expect(socket.messages.map((text) => (JSON.parse(text) as { id: string }).id)).toEqual(ids);
  });

  test.each<[lastEventId: string, query: string, ids: string[]]>([
    ["0", "", ["10"]],
    ["10", "", []],
    ["-1", "", ["0", "10"]],
    ["nonsense", "", ["0", "10"]],
    ["10", "last_event_id=0&", ["10"]],
    ["0", "last_event_id=-1&", ["0", "10"]],
  ])(
    "resumes after the header Last-Event-ID too, %s; the query (%s) has the last word",
    async (id, query, ids) => {
      for (const [fact, values] of facts.slice(0, 4)) sink.emit(fact, values);
      await scheduler.settle();
      const socket = await connect(`${query}stream_mode=messages-tuple`, new FakeSocket(), PATH, id);
      expect(socket.messages.map((text) => (JSON.parse(text) as { id: string }).id)).toEqual(ids);
    },
  );

  test.each([
    "stream_mode=values&stream_mode=custom",
    "stream_mode=values,custom",
    'stream_mode=["values","custom"]',
    `stream_mode=${encodeURIComponent('["custom"]')}&stream_mode=values`,
  ])("modes are named in any of three ways: ?%s", async (query) => {
    emitAll();
    const socket = await connect(query);
    const names = socket.messages.map((text) => (JSON.parse(text) as { event: string }).event);
    expect(names).toEqual(["metadata", "values", "custom", "error"]);
  });

  describe("a peer that does not keep up", () => {
    test("gets the rest when it has drained", async () => {
      const socket = await connect("", new FakeSocket(1));
      emitAll();
      await scheduler.settle();
      expect(socket.messages).toHaveLength(1);
      await writer.finish(sink, run);
      for (let i = 0; i < 10 && socket.closed === undefined; i++) socket.drain(1);
      expect(socket.messages).toHaveLength(6);
      expect(socket.closed?.[0]).toBe(1000);
    });

    test("is closed after ten seconds, with the reason", async () => {
      const socket = await connect("", new FakeSocket(1));
      emitAll();
      await scheduler.settle();
      await scheduler.pass(10_000);
      expect(socket.closed?.[0]).toBe(1013);
      expect(socket.closed?.[1]).toMatch(/last_event_id/);
      expect(scheduler.timers).toBe(0);
      expect(runLogs.counts.readers).toBe(0);
    });
  });

  test("a log that is broken off tells the peer to come again", async () => {
    const socket = await connect();
    sink.abandon();
    expect(socket.closed?.[0]).toBe(1012);
  });

  test("a peer that leaves lets go of all, also before its run was found", async () => {
    const before = sockets.open;
    const socket = await connect();
    expect(sockets.open).toBe(before + 1);
    socket.close(1001, "");
    expect(runLogs.counts.readers).toBe(0);
    expect(sockets.open).toBe(before);
    const answer = upgrade(PATH);
    if (answer.kind !== "accept") throw new TypeError("refused");
    const early = new FakeSocket();
    answer.open(early);
    early.close(1001, "");
    await scheduler.settle();
    expect(runLogs.counts.readers).toBe(0);
    expect(sockets.open).toBe(before);
  });

  // The slow journal has no threads to follow.
  const ofThread = journalName === "the storage" ? [["thread", `/threads/${KEY.thread}/stream`]] : [];
  test.each([["run", PATH], ...ofThread])(
    "large output of a user's %s socket uses the share of the user",
    async (_, path) => {
      const owners: string[] = [];
      class Shares extends ResponseMemoryBudget {
        override share(owner: string) {
          owners.push(owner);
          return super.share(owner);
        }
      }
      const user = { identity: "ann", permissions: [], display_name: "ann", is_authenticated: true };
      const access = new AccessControl({}, { clock: new SimulatedClock(), random: new SimulatedRandom(1) });
      Object.defineProperty(access, "checkSocket", { value: () => ({ tenant: KEY.tenant, user }) });
      const changed = { access, serviceOf: reading, streamMemory: new Shares(scheduler) };
      const answer = serving({}, changed)(request(path as string, "stream_mode=custom"));
      if (answer.kind !== "accept") throw new TypeError(answer.body);
      answer.open(new FakeSocket());
      for (let i = 0; i < 20 && runLogs.counts.readers === 0; i++) await scheduler.settle();
      sink.emit({ t: "custom", ns: "", json: JSON.stringify("x".repeat(LARGE_OUTPUT)) });
      for (let i = 0; i < 20 && owners.length === 0; i++) await scheduler.settle();
      expect(owners).toEqual([`${KEY.tenant} ann`]);
    },
  );

  describe("what cannot be served", () => {
    test.each([
      ["/threads/x/streams", ""],
      ["/", ""],
      [`${PATH}/more`, ""],
    ])("an upgrade at %s is refused", (path) => {
      const answer = upgrade(path);
      expect(answer).toMatchObject({ kind: "refuse", status: 404 });
      expect(answer.kind === "refuse" && JSON.parse(answer.body)).toHaveProperty("detail");
    });

    const none = "0199aaaa-0000-7000-8000-0000000000ff";
    test.each([
      [`/threads/${none}/runs/${RUN}/stream`, "", 4404, /^Thread .* not found$/],
      [`/threads/${KEY.thread}/runs/${none}/stream`, "", 4404, /^Run not found$/],
      ["/threads/nope/stream", "", 4422, /thread_id/],
      [`/threads/${none}/stream`, "", 4404, /^Thread .* not found$/],
      [`/threads/${KEY.thread}/stream`, "stream_mode=nope", 4422, /stream_mode/],
      [`/threads/nope/runs/${RUN}/stream`, "", 4422, /thread_id/],
      [`/threads/${KEY.thread}/runs/..%2f/stream`, "", 4422, /run_id/],
      [PATH, "stream_mode=nope", 4422, /stream_mode/],
      [PATH, "stream_mode=metadata", 4422, /stream_mode/],
      [PATH, "stream_mode=__proto__", 4422, /stream_mode/],
      [PATH, "stream_mode=[1]", 4422, /stream_mode/],
      [PATH, "stream_mode=[", 4422, /stream_mode/],
      [PATH, `stream_mode=${"é".repeat(500)}`, 4422, /stream_mode/],
      [PATH, "last_event_id=-2", 4422, /last_event_id/],
      [PATH, "last_event_id=1e3", 4422, /last_event_id/],
      [PATH, `x=${"y".repeat(5000)}`, 4422, /query/],
    ])("%s ?%s closes with %i", async (path, query, code, reason) => {
      const socket = await connect(query, new FakeSocket(), path);
      expect(socket.closed?.[0]).toBe(code);
      expect(socket.closed?.[1]).toMatch(reason);
      expect(Buffer.byteLength(socket.closed?.[1] ?? "")).toBeLessThanOrEqual(123);
    });

    test("a foreign page gets no socket at all", () => {
      const answer = serving()(request(PATH, "", { origin: "https://evil.test" }));
      expect(answer).toMatchObject({ kind: "refuse", status: 403 });
    });

    test("who gives no key is told so by a code", () => {
      const answer = serving({ keys: ["secret"] })(request(PATH, "token=made.up"));
      const socket = new FakeSocket();
      if (answer.kind === "accept") answer.open(socket);
      expect(socket.closed?.[0]).toBe(4401);
    });
  });
});
