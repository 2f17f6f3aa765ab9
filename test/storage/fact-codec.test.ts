import { expect, test } from "vitest";
import type { Fact } from "../../src/model/run-event.ts";
import { encodeWithChecksum, decodeWithChecksum } from "../../src/storage/checksum-envelope.ts";
import { decodeFacts, encodeFacts } from "../../src/storage/event-fact-codec.ts";
import { threadKey } from "./samples.ts";

const custom = (json: string, ns = ""): Fact => ({ t: "custom", ns, json });
const start: Fact = { t: "start", attempt: 1 };
const token: Fact = { t: "token", m: 1, text: "a\nb" };
const read = (bytes: Buffer) => decodeFacts(decodeWithChecksum(bytes, threadKey(1), "facts"));

test.each<[string, readonly Fact[]]>([
  ["none", []],
  ["a start", [start]],
  ["another start", [{ t: "start", attempt: 2 }]],
  ["a start whose graph emits events", [{ t: "start", attempt: 1, events: true }]],
  ["one event", [custom("1")]],
  [
    "a burst",
    Array.from({ length: 300 }, (_, i) => custom(JSON.stringify({ i, text: "a\nb\u2028 é \ud83d" }))),
  ],
  ["events among others", [start, custom("1"), custom('""'), token, custom("null"), token, token]],
  ["events of several namespaces", [custom("1"), custom("2", "sub:1"), custom("3", "sub:1"), custom("4")]],
])("%s: what is read is what was stored", (_, facts) => {
  expect(read(encodeFacts(facts))).toEqual(facts);
});

test("a burst is stored in little more than its text", () => {
  const facts = Array.from({ length: 200 }, (_, i) => custom(JSON.stringify({ i })));
  const text = facts.reduce((sum, fact) => sum + (fact.t === "custom" ? fact.json.length : 0), 0);
  expect(encodeFacts(facts).length).toBeLessThan(text + facts.length + 50);
});

test("events that format 3 has stored are read", () => {
  const older = encodeWithChecksum([
    start,
    { t: "custom", ns: "n", data: { any: ["thing"] } },
    { t: "custom", ns: "", data: null },
  ]);
  expect(read(older)).toEqual([start, custom('{"any":["thing"]}', "n"), custom("null")]);
});
