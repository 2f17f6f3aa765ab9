import { expect, test } from "vitest";
import { chunkEnd, type EventChunk } from "../../src/model/run-event.ts";
import { all, aRun, id, someEvents, threadKey, Writer } from "../storage/samples.ts";
import type { Opened, Supports } from "./harness.ts";

/** The stored event log of a run. */
export function eventsContract(opened: Opened, supports: Supports): void {
  const RUN = id(1);

  async function started(): Promise<Writer> {
    const one = new Writer(() => opened().journal, threadKey(1));
    await one.append();
    await one.start(aRun(one.key, 1, { attempt: 1 }));
    return one;
  }

  /** Returns everything that a reader gets until nothing more comes. */
  async function replay(one: Writer, after: number, limit: number): Promise<EventChunk[]> {
    const chunks: EventChunk[] = [];
    for (let at = after; ;) {
      const more = await opened().journal.events(one.key, RUN, at, limit);
      const last = more.at(-1);
      if (last === undefined) return chunks;
      chunks.push(...more);
      at = chunkEnd(last) - 1;
    }
  }

  test("a reader that goes on gets every chunk once, whatever its steps", async () => {
    const one = await started();
    const { journal } = opened();
    const chunks: EventChunk[] = [];
    let first = 0;
    for (let n = 0; n < 200; n++) {
      const chunk = someEvents(RUN, first, 1 + (n % 5));
      chunks.push(chunk);
      first = chunkEnd(chunk);
    }
    await Promise.all(chunks.map((chunk) => journal.publish(one.key, 1, chunk)));
    for (const limit of [1, 7, 1_000]) expect(await replay(one, -1, limit)).toEqual(chunks);
    expect(await journal.nextEvent(one.key, RUN)).toBe(first);
    journal.release(one.key);
    expect(await journal.nextEvent(one.key, RUN)).toBe(first);
  });

  test("a reader may begin after any event, also within a chunk", async () => {
    const one = await started();
    const { journal } = opened();
    const chunks = [someEvents(RUN, 0, 3), someEvents(RUN, 3, 1), someEvents(RUN, 4, 4)];
    for (const chunk of chunks) await journal.publish(one.key, 1, chunk);
    const holding = [0, 0, 0, 1, 2, 2, 2, 2];
    for (const [event, chunk] of holding.entries()) {
      expect(await replay(one, event - 1, 2)).toEqual(chunks.slice(chunk));
    }
    expect(await replay(one, 7, 2)).toEqual([]);
    expect(await replay(one, 1_000_000, 2)).toEqual([]);
  });

  test("facts take as many ids as they stand for", async () => {
    const one = await started();
    const first: EventChunk = {
      run_id: RUN,
      first: 0,
      facts: [
        { t: "start", attempt: 1 },
        { t: "checkpoint", id: id(5), ns: "", step: -1, input: true },
      ],
    };
    await one.append({ events: first });
    await opened().journal.publish(one.key, 1, someEvents(RUN, 8, 1));
    expect(await opened().journal.nextEvent(one.key, RUN)).toBe(9);
    expect(await replay(one, 2, 5)).toEqual([first, someEvents(RUN, 8, 1)]);
  });

  test("a later attempt may begin above; the reader goes on over the gap", async () => {
    const one = await started();
    const { journal } = opened();
    await journal.publish(one.key, 1, someEvents(RUN, 0, 2));
    const again: EventChunk = { run_id: RUN, first: 65_536, facts: [{ t: "start", attempt: 2 }] };
    await one.start(aRun(one.key, 1, { attempt: 2 }), { events: again });
    await journal.publish(one.key, 2, someEvents(RUN, 65_538, 1));
    const expected = [someEvents(RUN, 0, 2), again, someEvents(RUN, 65_538, 1)];
    expect(await replay(one, -1, 10)).toEqual(expected);
    expect(await replay(one, 1, 10)).toEqual(expected.slice(1));
    expect(await replay(one, 30_000, 10)).toEqual(expected.slice(1));
    expect(await all(journal.verify())).toEqual([]);
  });

  test("events that begin before the last ones' end are refused", async () => {
    const one = await started();
    const { journal } = opened();
    await journal.publish(one.key, 1, someEvents(RUN, 0, 5));
    for (const first of [0, 4, -1, 1.5, Number.NaN]) {
      const again = journal.publish(one.key, 1, someEvents(RUN, first, 1));
      await expect(again).rejects.toMatchObject({ code: "journal.conflict" });
    }
    expect(await replay(one, -1, 10)).toEqual([someEvents(RUN, 0, 5)]);
  });

  test("runs whose ids begin alike are told apart", async () => {
    const one = await started();
    const { journal } = opened();
    const runs = ["a", "a/0", "a0", "a/"];
    for (const run of runs) await journal.publish(one.key, 1, someEvents(run, 0, run.length));
    for (const run of runs) {
      expect(await journal.events(one.key, run, -1, 10)).toEqual([someEvents(run, 0, run.length)]);
      expect(await journal.nextEvent(one.key, run)).toBe(run.length);
    }
  });

  test.runIf(supports.reopen)("the log is there after the next open, and goes on", async () => {
    const one = await started();
    await opened().journal.publish(one.key, 1, someEvents(RUN, 0, 5));
    await opened().reopen();
    expect(await opened().journal.nextEvent(one.key, RUN)).toBe(5);
    await opened().journal.publish(one.key, 1, someEvents(RUN, 5, 1));
    expect(await replay(one, -1, 1)).toEqual([someEvents(RUN, 0, 5), someEvents(RUN, 5, 1)]);
  });
}
