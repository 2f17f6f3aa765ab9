import { beforeEach, describe, expect, test } from "vitest";
import type { SseOutput } from "../../src/codec/sse.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { Interrupt } from "../../src/model/interrupt.ts";
import type { StreamMode } from "../../src/model/run.ts";
import type { Journal } from "../../src/ports/journal.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import type { Reader } from "../../src/stream/run-reader.ts";
import {
  render,
  type ChunkSlice,
  sseFormat,
  type StreamView,
  createView,
} from "../../src/stream/rendering.ts";
import { Collector, textOf } from "./reading.ts";
import { HeldScheduler, KEY, Lines, journals, RUN, runRecord, Writer } from "./support.ts";

let scheduler: HeldScheduler;
let journal: Journal;
let writer: Writer;
let runLogs: RunLogRegistry;

describe.each(journals)("over $name", ({ open: openJournal, patience }) => {
  beforeEach(async () => {
    scheduler = new HeldScheduler(patience);
    journal = await openJournal();
    runLogs = createRunLogRegistry({ journal, scheduler, logger: new Lines() });
    writer = new Writer(journal);
    await writer.start();
  });

  /** The facts as one chunk, read live. */
  async function live(facts: readonly (readonly [Fact, Record<string, unknown>?])[]): Promise<Reader> {
    const sink = runLogs.open(KEY, runRecord(), 1, 0);
    for (const [fact, values] of facts) sink.emit(fact, values);
    await scheduler.settle();
    return runLogs.follow(KEY, runRecord(), { after: -1 });
  }

  async function events(reader: Reader, modes: readonly StreamMode[], subgraphs = false) {
    const collector = new Collector(reader, modes, subgraphs);
    await collector.read();
    return collector.events.map(({ id, event, data }) => [id, event, data]);
  }

  async function text(reader: Reader, as: StreamView<SseOutput>): Promise<string> {
    return textOf(await render(await segmentOf(reader), as));
  }

  const interrupt: Interrupt = {
    value: "ok?",
    id: "0123456789abcdef0123456789abcdef",
    resumable: true,
    ns: ["ask:1"],
    when: "during",
  };

  const checkpoint = (id: string, over: Partial<Extract<Fact, { t: "checkpoint" }>> = {}): Fact => ({
    t: "checkpoint",
    id,
    ns: "",
    step: 0,
    input: false,
    ...over,
  });

  test("the bytes of a server-sent event stream", async () => {
    const reader = await live([
      [{ t: "start", attempt: 1 }],
      [checkpoint("c0", { input: true }), { a: 0 }],
      [checkpoint("c1"), { a: 1, text: 'line\n"two"\u2028' }],
      [
        {
          t: "result",
          id: "t",
          name: "node",
          ns: "",
          checkpoint: "c",
          at: 1,
          update: { a: 1 },
          interrupts: [],
        },
      ],
      [{ t: "error", error: { error: "TypeError", message: "kaboom" } }],
    ]);
    expect(await text(reader, createView(["values", "updates"], false, sseFormat))).toBe(
      `event: metadata\ndata: {"run_id":"${RUN}","attempt":1,"thread_id":"${KEY.thread}"}\nid: 0\n\n` +
        'event: values\ndata: {"a":1,"text":"line\\n\\"two\\"\u2028"}\nid: 8\n\n' +
        'event: updates\ndata: {"node":{"a":1}}\nid: 14\n\n' +
        'event: error\ndata: {"error":"TypeError","message":"kaboom"}\nid: 20\n\n',
    );
  });

  describe("values", () => {
    test("are read from storage where the live state is gone", async () => {
      const [id = ""] = await writer.checkpoints([{ from: "storage" }]);
      const reader = await live([[checkpoint(id)], [checkpoint("1ef00000-0000-6000-8000-000000000000")]]);
      expect(await events(reader, ["values"])).toEqual([[0, "values", { from: "storage" }]]);
    });

    test("of an interrupt are the state and what is asked", async () => {
      const pause: Fact = { t: "interrupt", ns: "", checkpoint: "c1", interrupts: [interrupt] };
      const reader = await live([[pause, { a: 1 }]]);
      expect(await events(reader, ["values", "updates"])).toEqual([
        [0, "updates", { __interrupt__: [interrupt] }],
        [1, "values", { a: 1, __interrupt__: [interrupt] }],
      ]);
    });

    test("of a breakpoint carry an empty list", async () => {
      const [id = ""] = await writer.checkpoints([{ a: 2 }]);
      const pause: Fact = { t: "interrupt", ns: "", checkpoint: id, interrupts: [] };
      expect(await events(await live([[pause]]), ["values"])).toEqual([
        [1, "values", { a: 2, __interrupt__: [] }],
      ]);
    });
  });

  describe("updates", () => {
    const result = { t: "result", id: "t", name: "node", ns: "", checkpoint: "c", at: 1 } as const;

    test("null where the node returned nothing", async () => {
      const reader = await live([
        [{ ...result, interrupts: [] }],
        [{ ...result, update: null, interrupts: [] }],
      ]);
      expect(await events(reader, ["updates"])).toEqual([
        [0, "updates", { node: null }],
        [6, "updates", { node: null }],
      ]);
    });

    test("none where it failed, or waits at an interrupt", async () => {
      const reader = await live([
        [{ ...result, error: { error: "Error", message: "no" }, interrupts: [] }],
        [{ ...result, interrupts: [interrupt] }],
      ]);
      expect(await events(reader, ["updates"])).toEqual([]);
    });

    test("a node may be named like a member of every object", async () => {
      const reader = await live([[{ ...result, name: "__proto__", update: 1, interrupts: [] }]]);
      const got = await text(reader, createView(["updates"], false, sseFormat));
      expect(got).toBe('event: updates\ndata: {"__proto__":1}\nid: 0\n\n');
    });
  });

  describe("messages-tuple", () => {
    const meta = { langgraph_step: 1, langgraph_node: "model" };
    const constant = {
      tags: [],
      run_id: RUN,
      thread_id: KEY.thread,
      graph_id: "agent",
      assistant_id: runRecord().assistant_id,
    };
    const blank = {
      tool_calls: [],
      additional_kwargs: {},
      invalid_tool_calls: [],
      tool_call_chunks: [],
      response_metadata: {},
      id: "m1",
      type: "ai",
      example: false,
      name: null,
    };
    const begin: Fact = { t: "message", id: "m1", name: null, ns: "", meta };

    test("a token is its message with the piece of text, beside what is known of the call", async () => {
      const reader = await live([[begin], [{ t: "token", m: 0, text: 'he"l\nlo' }]]);
      expect(await events(reader, ["messages-tuple"])).toEqual([
        [
          2,
          "messages",
          [
            { content: 'he"l\nlo', ...blank },
            { ...constant, ...meta },
          ],
        ],
      ]);
    });

    test("a piece brings more than text, but cannot change whose it is", async () => {
      const calls = [{ name: "f", args: "{", index: 0, id: "x", type: "tool_call_chunk" }];
      const chunk = { tool_call_chunks: calls, id: "other", type: "human" };
      const reader = await live([[begin], [{ t: "piece", m: 0, chunk }]]);
      expect(await events(reader, ["messages-tuple"])).toEqual([
        [
          2,
          "messages",
          [
            { content: "", ...blank, tool_call_chunks: calls },
            { ...constant, ...meta },
          ],
        ],
      ]);
    });

    test("a message that was not streamed comes whole, one that was does not come again", async () => {
      const message = { type: "human", content: "hi", id: "h1" };
      const reader = await live([
        [{ t: "complete", message, streamed: false, ns: "", meta }],
        [{ t: "complete", message, streamed: true, ns: "", meta }],
      ]);
      expect(await events(reader, ["messages-tuple"])).toEqual([
        [0, "messages", [message, { ...constant, ...meta }]],
      ]);
    });

    test("a reader that starts in the middle of a message finds its beginning, in memory and in storage", async () => {
      const sink = runLogs.open(KEY, runRecord(), 1, 0);
      sink.emit(begin);
      await scheduler.settle();
      for (const word of ["a", "b", "c"]) {
        sink.emit({ t: "token", m: 0, text: word });
        await scheduler.settle();
      }
      const whole = await events(runLogs.follow(KEY, runRecord(), { after: -1 }), ["messages-tuple"]);
      const middle = (other: RunLogRegistry) =>
        events(other.follow(KEY, runRecord({ event_mark: 99 }), { after: 7 }), ["messages-tuple"]);
      expect(whole.map(([id]) => id)).toEqual([2, 5, 8]);
      // A new registry has nothing in memory, so it reads from storage.
      const fresh = createRunLogRegistry({ journal, scheduler, logger: new Lines() });
      expect(await middle(fresh)).toEqual(whole.slice(2));
      expect(await middle(runLogs)).toEqual(whole.slice(2));
    });

    test("tokens whose message is lost are shown all the same", async () => {
      const reader = await live([[{ t: "token", m: 77, text: "x" }]]);
      const [[id, event, data]] = (await events(reader, ["messages-tuple"])) as [[number, string, unknown[]]];
      expect([id, event]).toEqual([0, "messages"]);
      expect(data[0]).toMatchObject({ content: "x", id: `${RUN}:77` });
    });
  });

  describe("subgraphs", () => {
    const ns = "sub:1111";
    const facts: [Fact, Record<string, unknown>?][] = [
      [checkpoint("c", { ns }), { a: 1 }],
      [{ t: "result", id: "t", name: "inner", ns, checkpoint: "c", at: 1, update: 1, interrupts: [] }],
      [{ t: "custom", ns, json: "1" }],
      [{ t: "message", id: "m", name: null, ns, meta: { langgraph_checkpoint_ns: `${ns}|leaf:2222` } }],
      [{ t: "token", m: 13, text: "x" }],
      [{ t: "complete", message: { id: "w" }, streamed: false, ns, meta: {} }],
    ];
    const modes: StreamMode[] = ["values", "updates", "custom", "messages-tuple"];
    const names = async (subgraphs: boolean) =>
      (await events(await live(facts), modes, subgraphs)).map(([, event]) => event);

    test("are named in the event when they were asked for", async () => {
      expect(await names(true)).toEqual([
        `values|${ns}`,
        `updates|${ns}`,
        `custom|${ns}`,
        `messages|${ns}|leaf:2222`,
        `messages|${ns}`,
      ]);
    });

    test("are left out when not, but for their custom data and their messages", async () => {
      expect(await names(false)).toEqual(["custom", "messages", "messages"]);
    });

    test("a node's name cannot break the framing", async () => {
      const reader = await live([[{ t: "custom", ns: "a\nevent: error\r:1", json: "1" }]]);
      const got = await text(reader, createView(["custom"], true, sseFormat));
      expect(got).toBe("event: custom|a event: error :1\ndata: 1\nid: 0\n\n");
    });
  });

  async function segmentOf(reader: Reader): Promise<ChunkSlice> {
    const got = await reader.next();
    if (typeof got === "string") throw new TypeError(got);
    return got;
  }

  const view = () => createView(["custom", "values"], false, sseFormat);

  describe("sharing", () => {
    test("readers of the same view get the very same bytes; other views, or a place inside the chunk, their own", async () => {
      const first = await live([[{ t: "custom", ns: "", json: "1" }], [{ t: "custom", ns: "", json: "2" }]]);
      const second = runLogs.follow(KEY, runRecord(), { after: -1 });
      const inside = runLogs.follow(KEY, runRecord(), { after: 0 });
      const bytes = await render(await segmentOf(first), view());
      expect(await render(await segmentOf(second), createView(["values", "custom"], false, sseFormat))).toBe(
        bytes,
      );
      const rest = await render(await segmentOf(inside), view());
      expect(textOf(rest)).toBe("event: custom\ndata: 2\nid: 1\n\n");
      const third = runLogs.follow(KEY, runRecord(), { after: -1 });
      expect(await render(await segmentOf(third), createView(["custom"], false, sseFormat))).not.toBe(bytes);
    });

    test("a lone reader keeps no bytes in memory", async () => {
      const segment = await segmentOf(await live([[{ t: "custom", ns: "", json: "1" }]]));
      await render(segment, createView(["custom"], false, sseFormat));
      expect(segment.entry.rendered).toBeUndefined();
    });

    test("what has to be read is read once for all, and a failure is not kept", async () => {
      const [id = ""] = await writer.checkpoints([{ a: 1 }]);
      const first = await live([[checkpoint(id)]]);
      const second = runLogs.follow(KEY, runRecord(), { after: -1 });
      const segments = [await segmentOf(first), await segmentOf(second)] as const;
      const own = createView(["values"], false, sseFormat);
      const values = journal.sharedValues.bind(journal);
      let reads = 0;
      journal.sharedValues = () => {
        reads++;
        return Promise.reject(new Error("not now"));
      };
      const failing = segments.map((segment) => render(segment, own));
      for (const promise of failing) await expect(promise).rejects.toThrow("not now");
      expect(reads).toBe(1);
      journal.sharedValues = values;
      const again = await Promise.all(segments.map((segment) => render(segment, own)));
      expect(again[0]).toBe(again[1]);
      expect(again[0] && textOf(again[0])).toContain('{"a":1}');
    });
  });
});
