import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { MessageEvents } from "../../src/stream/protocol/message-events.ts";
import { MessageBlocks } from "../../src/stream/protocol/message-blocks.ts";
import { EventNumbering, type ProtocolEvent } from "../../src/stream/protocol/protocol-event.ts";
import { eventTestOf } from "../../src/stream/protocol/event-filter.ts";

const event = (channel: string, namespace: readonly string[]): ProtocolEvent => ({
  seq: 1,
  id: "1",
  method: channel,
  channel,
  namespace,
  text: "",
});

test.each<[string, string[], string[][], number | undefined, string, string[], boolean]>([
  ["every namespace", ["values"], [], undefined, "values", ["a:1", "b:2"], true],
  ["another channel", ["values"], [], undefined, "tasks", [], false],
  ["the root and all below", ["values"], [[]], undefined, "values", ["a:1"], true],
  ["the root alone", ["values"], [[]], 0, "values", ["a:1"], false],
  ["one level", ["values"], [[]], 1, "values", ["a:1"], true],
  ["two levels where one is wanted", ["values"], [[]], 1, "values", ["a:1", "b:2"], false],
  ["a node's name for its tasks", ["values"], [["a"]], 0, "values", ["a:1"], true],
  ["a task", ["values"], [["a:1"]], undefined, "values", ["a:1", "b:2"], true],
  ["another task", ["values"], [["a:2"]], undefined, "values", ["a:1"], false],
  ["the start of a name", ["values"], [["a"]], undefined, "values", ["ab:1"], false],
  ["above what is wanted", ["values"], [["a", "b"]], undefined, "values", ["a:1"], false],
  ["one of several", ["values"], [["x"], ["a"]], undefined, "values", ["a:1"], true],
])("filter: %s", (_, channels, namespaces, depth, channel, namespace, is) => {
  expect(eventTestOf({ channels: new Set(channels), namespaces, depth })(event(channel, namespace))).toBe(is);
});

test("events of one fact have its numbers, and share the last when there are more", () => {
  const numbers = new EventNumbering();
  numbers.begin(5, 2);
  for (let i = 0; i < 4; i++) numbers.put("values", "a:1|b:2", "1", { at: 7 });
  numbers.begin(7, 1);
  numbers.put("values", "", "1", { at: 7, node: "n" });
  expect(numbers.events.map(({ seq, id }) => [seq, id])).toEqual([
    [5, "5"],
    [6, "6"],
    [6, "6.1"],
    [6, "6.2"],
    [7, "7"],
  ]);
  expect(JSON.parse(String(numbers.events[0]?.text))).toEqual({
    type: "event",
    event_id: "5",
    seq: 5,
    method: "values",
    params: { namespace: ["a:1", "b:2"], timestamp: 7, data: 1 },
  });
  expect(JSON.parse(String(numbers.events[4]?.text))).toMatchObject({ params: { node: "n", namespace: [] } });
});

describe("blocks of a message", () => {
  function blocks(fill: (blocks: MessageBlocks) => void): string[] {
    const told: string[] = [];
    const one = new MessageBlocks((data: JsonObject) => {
      const {
        event: what,
        index,
        delta,
        content,
      } = data as {
        event: string;
        index: number;
        delta?: unknown;
        content?: unknown;
      };
      told.push(`${what.slice("content-block-".length)} ${index} ${JSON.stringify(delta ?? content)}`);
    });
    fill(one);
    one.end();
    return told;
  }

  test("text is one block that grows", () => {
    expect(blocks((b) => ["a", "", "b"].forEach((text) => b.text(text)))).toEqual([
      'start 0 {"type":"text","text":""}',
      'delta 0 {"type":"text-delta","text":"a"}',
      'delta 0 {"type":"text-delta","text":"b"}',
      'finish 0 {"type":"text","text":"ab"}',
    ]);
  });

  test("a block ends before the next begins", () => {
    const told = blocks((b) => {
      b.content({ type: "reasoning", reasoning: "hm", index: 0 });
      b.content({ type: "text", text: "so", index: 1 });
      b.content({ type: "image_url", image_url: "x", index: 2 });
    });
    expect(told.map((line) => line.split(" {")[0])).toEqual([
      "start 0",
      "delta 0",
      "finish 0",
      "start 1",
      "delta 1",
      "finish 1",
      "start 2",
      "finish 2",
    ]);
  });

  test("calls grow side by side, and are whole or invalid at their end", () => {
    const told = blocks((b) => {
      b.call({ id: "1", name: "f", args: '{"a"', index: 0 });
      b.call({ id: "2", name: "g", args: "{", index: 1 });
      b.call({ args: ":1}", index: 0 });
    });
    expect(told.slice(-2)).toEqual([
      'finish 0 {"type":"tool_call","id":"1","name":"f","args":{"a":1}}',
      'finish 1 {"type":"invalid_tool_call","id":"2","name":"g","args":"{","error":"The arguments are no JSON object"}',
    ]);
    expect(told).toContain(
      'delta 0 {"type":"block-delta","fields":{"type":"tool_call_chunk","id":"1","name":"f","args":"{\\"a\\":1}"}}',
    );
  });
});

test("tool calls of a whole message that have no ids are calls of their own", () => {
  const told: JsonObject[] = [];
  const events = new MessageEvents((_ns, _node, data) => told.push(data));
  const call = (name: string) => ({ id: null, name, args: { name } });
  const message = { id: "m", type: "ai", content: "", tool_calls: [call("f"), call("g")] };
  events.complete({ t: "complete", message, streamed: false, ns: "", meta: {} });
  const calls = told.filter(({ event }) => event === "content-block-finish").map(({ content }) => content);
  expect(calls).toEqual([
    { type: "tool_call", id: null, name: "f", args: { name: "f" } },
    { type: "tool_call", id: null, name: "g", args: { name: "g" } },
  ]);
});
