import { expect, test } from "vitest";
import { newThreadRecord } from "../../src/model/thread.ts";
import { aCheckpoint, aRun, add, id, set, someEvents, threadKey, Writer } from "../storage/samples.ts";
import type { Opened, Supports } from "./harness.ts";

/** Fencing of writers, and atomicity of writes. */
export function fencingContract(opened: Opened, supports: Supports): void {
  const writer = (n = 1): Writer => new Writer(() => opened().journal, threadKey(n));

  test("an append of an older epoch is refused and stores nothing", async () => {
    const one = writer();
    await one.append();
    await one.start(aRun(one.key, 1));
    const { journal } = opened();
    const late = { ...one.record, seq: one.record.seq + 1, epoch: 0, metadata: { late: true } };
    const append = { key: one.key, kind: "late", durable: true, thread: late, runs: [aRun(one.key, 9)] };
    await expect(journal.append({ ...append, fence: { epoch: 0, seq: 2 } })).rejects.toMatchObject({
      code: "journal.fenced",
    });
    expect(await journal.thread(one.key)).toEqual(one.record);
    expect(await journal.run(one.key, id(9))).toBeUndefined();
  });

  test("the record of a run that has ended is final", async () => {
    const one = writer();
    await one.append({ thread: { next_run: 100 } });
    const run = aRun(one.key, 1);
    await one.start(run);
    await one.settle(run);
    const stored = await opened().journal.run(one.key, run.run_id);
    expect(stored?.status).toBe("success");
    await expect(one.append({ runs: [{ ...run, status: "pending" }] })).rejects.toMatchObject({
      code: "journal.conflict",
    });
    expect(await opened().journal.run(one.key, run.run_id)).toEqual(stored);
  });

  test("an append that has missed another one is refused", async () => {
    const one = writer();
    await one.append();
    const stale = new Writer(() => opened().journal, one.key, one.record);
    await one.append({ thread: { metadata: { first: true } } });
    await expect(stale.append({ thread: { metadata: { second: true } } })).rejects.toMatchObject({
      code: "journal.conflict",
    });
    expect((await opened().journal.thread(one.key))?.metadata).toEqual({ first: true });
  });

  test("a fence is judged against appends in flight, not only stored ones", async () => {
    const one = writer();
    const first = one.append();
    const other = new Writer(() => opened().journal, one.key);
    const second = other.append();
    await expect(second).rejects.toMatchObject({ code: "journal.conflict" });
    await first;
  });

  test("who is refused for an append in flight can read it by then", async () => {
    const one = writer();
    void one.append({ thread: { metadata: { mine: true } } });
    const seen = writer()
      .append()
      .catch(() => opened().journal.thread(one.key));
    expect(await seen).toMatchObject({ metadata: { mine: true } });
  });

  test("a writer need not wait: appends in flight follow one another", async () => {
    const one = writer();
    const run = aRun(one.key, 1);
    await Promise.all([
      one.append(),
      one.start(run, { checkpoints: [aCheckpoint(1, null, { list: add(0, "a") })] }),
      one.append({ checkpoints: [aCheckpoint(2, 1, { list: add(1, "b"), x: set(1) })] }),
      one.settle(run, { checkpoints: [aCheckpoint(3, 2, { list: add(2, "c"), x: set(2) })] }),
    ]);
    const { journal } = opened();
    expect(await journal.thread(one.key)).toEqual(one.record);
    const last = await journal.checkpoint(one.key, "", id(3));
    expect(last && (await journal.values(one.key, last))).toEqual({ list: ["a", "b", "c"], x: 2 });
  });

  test("a refused append leaves the fence as it was", async () => {
    const one = writer();
    await one.append();
    const before = one.record;
    await expect(one.append({ checkpoints: [aCheckpoint(2, 1, {})] })).rejects.toMatchObject({
      code: "journal.conflict",
    });
    const again = new Writer(() => opened().journal, one.key, before);
    await again.append();
    expect(await opened().journal.thread(one.key)).toEqual(again.record);
  });

  test("a record that does not follow its fence is refused", async () => {
    const { journal } = opened();
    const key = threadKey(1);
    const thread = newThreadRecord(key.thread, 1, {});
    const base = { key, fence: { epoch: 0, seq: 0 }, kind: "test", durable: true };
    for (const wrong of [{ seq: 2 }, { seq: 1, epoch: 2 }, { seq: 1, thread_id: id(2) }]) {
      const append = journal.append({ ...base, thread: { ...thread, ...wrong } });
      await expect(append).rejects.toMatchObject({ code: "journal.conflict" });
    }
    expect(await journal.thread(key)).toBeUndefined();
  });

  test("all of an append is stored, or none of it", async () => {
    const one = writer();
    await one.append();
    const { journal } = opened();
    const run = aRun(one.key, 1);
    const bad = one.start(run, {
      checkpoints: [aCheckpoint(1, null, { a: set(1) }), aCheckpoint(2, 1, { a: add(5, "beyond") })],
      events: someEvents(run.run_id, 0, 3),
    });
    await expect(bad).rejects.toMatchObject({ code: "journal.conflict" });
    expect(await journal.run(one.key, run.run_id)).toBeUndefined();
    expect(await journal.checkpoint(one.key, "", id(1))).toBeUndefined();
    expect(await journal.events(one.key, run.run_id, -1, 10)).toEqual([]);
    expect((await journal.thread(one.key))?.seq).toBe(1);
  });

  test("appends of many threads are stored in the order of the calls, those of each thread at least", async () => {
    const done: [round: number, writer: number][] = [];
    const writers = Array.from({ length: 40 }, (_, n) => writer(n));
    await Promise.all(
      [0, 1, 2].flatMap((round) =>
        writers.map((one, n) =>
          one.append({ durable: (n + round) % 3 === 0 }).then(() => done.push([round, n])),
        ),
      ),
    );
    const inOrder = [0, 1, 2].flatMap((round) => writers.map((_, n) => [round, n]));
    // Otherwise only those of each thread: the threads are read first, and need not be read in the order of the calls.
    expect(supports.sync ? done : done.toSorted(([a, n], [b, m]) => a - b || n - m)).toEqual(inOrder);
    for (const n of writers.keys()) {
      expect(done.filter(([, writer]) => writer === n).map(([round]) => round)).toEqual([0, 1, 2]);
    }
  });

  test("published events are fenced by the epoch alone", async () => {
    const one = writer();
    await one.append();
    const run = aRun(one.key, 1);
    await one.start(run);
    const { journal } = opened();
    await expect(journal.publish(one.key, 0, someEvents(run.run_id, 0, 1))).rejects.toMatchObject({
      code: "journal.fenced",
    });
    await journal.publish(one.key, 1, someEvents(run.run_id, 0, 1));
    await one.append();
    await journal.publish(one.key, 1, someEvents(run.run_id, 1, 1));
    expect(await journal.nextEvent(one.key, run.run_id)).toBe(2);
  });

  test("events of a thread that does not exist are refused", async () => {
    const published = opened().journal.publish(threadKey(1), 0, someEvents(id(1), 0, 1));
    await expect(published).rejects.toMatchObject({ code: "journal.fenced" });
  });

  test("a thread that was let go is fenced as before", async () => {
    const one = writer();
    const stale = new Writer(() => opened().journal, one.key);
    await one.append();
    await one.start(aRun(one.key, 1));
    const { journal } = opened();
    journal.release(one.key);
    journal.release(threadKey(77));
    await expect(stale.append()).rejects.toMatchObject({ code: "journal.fenced" });
    const inFlight = one.append();
    journal.release(one.key);
    await one.append();
    await inFlight;
    expect(await journal.thread(one.key)).toEqual(one.record);
  });
}
