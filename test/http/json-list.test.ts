import { expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { type Answer, protocol, THREAD } from "./support.ts";

const BIG = "x".repeat(100 * 1024);

/**
 * States, of which the one at `fails` cannot be read; reports how many were read, and whether the iteration was closed.
 */
function states(count: number, fails = Number.POSITIVE_INFINITY) {
  const seen = { read: 0, closed: false };
  async function* read(): AsyncGenerator<JsonObject> {
    try {
      for (let i = 0; i < count; i++) {
        if (i === fails) throw new ServiceError("journal.damaged", "a state is damaged");
        seen.read++;
        yield { values: { text: BIG, i } };
      }
    } finally {
      seen.closed = true;
    }
  }
  return { seen, read };
}

const PATH = `/threads/${THREAD}/history`;

/** Requests the list of these states; `turns` runs this many turns of the event loop. */
function asked(history: () => AsyncGenerator<JsonObject>) {
  const { begin, timers } = protocol({ states: { history } });
  const turns = async (count: number) => {
    for (let i = 0; i < count; i++) {
      timers.advance(0);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  };
  const until = async (answer: Answer) => {
    while (!answer.ended && !answer.cut) await turns(1);
    return answer;
  };
  return { begin: () => begin("GET", PATH), turns, until };
}

test("a list that is longer than a page is written item by item, and is whole", async () => {
  const { seen, read } = states(5);
  const { begin, until } = asked(read);
  const answer = await until(begin());
  expect(answer.streamed).toBe(true);
  expect((JSON.parse(answer.text) as { values: { i: number } }[]).map(({ values }) => values.i)).toEqual([
    0, 1, 2, 3, 4,
  ]);
  expect(seen).toEqual({ read: 5, closed: true });
});

test("an error before the first page is answered with its status", async () => {
  const { begin, until } = asked(states(5, 0).read);
  const answer = await until(begin());
  expect([answer.status, answer.json["code"]]).toEqual([500, "journal.damaged"]);
});

test("an error in the middle cuts the connection: half a list never ends as a whole one does", async () => {
  const { begin, until } = asked(states(5, 3).read);
  const answer = await until(begin());
  expect([answer.status, answer.cut, answer.ended]).toEqual([200, true, false]);
});

test("nothing is read that the client does not take, and nothing any more once it is gone", async () => {
  const { seen, read } = states(50);
  const { begin, turns } = asked(read);
  const answer = begin();
  answer.write = function write(piece) {
    this.text += Buffer.from(piece as Uint8Array).toString();
    return false;
  };
  await turns(50);
  expect(seen).toEqual({ read: 1, closed: false });
  answer.abort();
  await turns(50);
  expect(seen).toEqual({ read: 1, closed: true });
});
