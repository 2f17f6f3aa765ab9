import { describe, expect, test } from "vitest";
import { EventStreamRelay } from "../../src/cluster/event-stream-relay.ts";
import { HEARTBEAT } from "../../src/codec/sse.ts";
import { SeededRandom } from "../chaos/random.ts";

interface Event {
  readonly id: string;
  readonly text: string;
}

const event = (id: string, data = `{"n":"${id}"}`): Event => ({
  id,
  text: `event: custom\ndata: ${data}\nid: ${id}\n\n`,
});

const number = (id: string) => Number(id.split(".")[0]);

/** What the owner of the shard sends: the events after this id, with comments between them. */
const response = (events: readonly Event[], after: string | undefined): Buffer =>
  Buffer.from(
    HEARTBEAT +
      events
        .filter(({ id }) => after === undefined || number(id) > number(after))
        .map(({ text }, i) => (i % 3 === 0 ? text + HEARTBEAT : text))
        .join(""),
  );

const withoutComments = (text: string) => text.replaceAll(HEARTBEAT, "");

/** Passes responses on that break off after so many bytes each; the last one does not. */
function passed(events: readonly Event[], breaks: readonly number[], sizes: () => number, start?: string) {
  const relay = new EventStreamRelay(start);
  let text = "";
  for (const [i, length] of [...breaks, Infinity].entries()) {
    if (i > 0) relay.resume();
    const sent = response(events, relay.after).subarray(0, length);
    for (let from = 0; from < sent.length;) {
      const to = from + sizes();
      text += Buffer.from(relay.take(sent.subarray(from, to))).toString();
      from = to;
    }
  }
  return text + Buffer.from(relay.rest()).toString();
}

const LISTS: readonly (readonly [string, readonly Event[], string | undefined])[] = [
  ["of ids of their own", ["0", "1", "2", "5", "9"].map((id) => event(id)), undefined],
  ["that share ids", ["0", "0", "1", "1", "1", "2"].map((id, i) => event(id, `"${i}"`)), undefined],
  ["of one id", ["7", "7", "7"].map((id, i) => event(id, `"${i}"`)), "6"],
  ["of the protocol", ["3", "4", "4.1", "4.2", "5"].map((id) => event(id)), "2"],
  ["with characters of several bytes", ["0", "1"].map((id) => event(id, '"für → 日本"')), undefined],
  ["whose data looks like an id", ["0", "1"].map((id) => event(id, String.raw`"\nid: 7\n\n"`)), undefined],
];

describe.each(LISTS)("a stream of events %s", (_, events, start) => {
  const whole = events.map(({ text }) => text).join("");
  const length = response(events, start).length;

  test.each([1, 2, 3, 7, 1000])("is the same after a break at any byte, in pieces of %i", (size) => {
    for (let at = 0; at <= length; at++)
      expect([at, withoutComments(passed(events, [at], () => size, start))]).toEqual([at, whole]);
  });

  test("is the same after many breaks", () => {
    const random = new SeededRandom(1);
    for (let round = 0; round < 300; round++) {
      const breaks = Array.from({ length: random.between(1, 5) }, () => random.between(0, length));
      expect(withoutComments(passed(events, breaks, () => random.between(1, 60), start))).toBe(whole);
    }
  });
});

test("an event is passed on when it is complete, and a comment behind it at once", () => {
  const relay = new EventStreamRelay(undefined);
  const take = (text: string) => Buffer.from(relay.take(Buffer.from(text))).toString();
  const [one, two] = [event("1").text, event("2").text] as const;
  expect(take(HEARTBEAT)).toBe(HEARTBEAT);
  expect(take(one.slice(0, 20))).toBe("");
  expect(take(one.slice(20, -1))).toBe("");
  expect(take(`\n${HEARTBEAT}${two.slice(0, 5)}`)).toBe(one + HEARTBEAT);
  expect(take(two.slice(5))).toBe(two);
  expect(relay.after).toBe("1");
  expect(take(HEARTBEAT)).toBe(HEARTBEAT);
});

test("an end without an id is passed on, also behind events that are left out", () => {
  const relay = new EventStreamRelay(undefined);
  const end = "event: error\ndata: {}\n\n";
  relay.take(Buffer.from(event("0").text + event("1").text));
  relay.resume();
  expect(Buffer.from(relay.take(Buffer.from(event("1").text + end))).toString()).toBe(end);
});
