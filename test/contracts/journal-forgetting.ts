import { describe, expect, test } from "vitest";
import type { EventChunk } from "../../src/model/run-event.ts";
import type { Eventually } from "../../src/ports/eventually.ts";
import {
  all,
  aCheckpoint,
  add,
  aRun,
  id,
  kwargs,
  set,
  someEvents,
  someWrites,
  threadKey,
  Writer,
} from "../storage/samples.ts";
import type { Opened, Supports } from "./harness.ts";

/** Rollback of runs and removal of threads. */
export function forgettingContract(opened: Opened, supports: Supports): void {
  const writer = (n = 1): Writer => new Writer(() => opened().journal, threadKey(n));

  /** A run that has created checkpoints 2 and 3 after 1, and is then rolled back. */
  async function rolledBack(wait: boolean): Promise<Writer> {
    const one = writer();
    const kept = aRun(one.key, 1);
    const gone = aRun(one.key, 2, { base_checkpoint: id(1) });
    const made: Promise<void>[] = [];
    const then = async (append: Promise<void>): Promise<void> => {
      if (wait) await append;
      else made.push(append);
    };
    await then(one.append());
    await then(one.start(kept, { events: someEvents(kept.run_id, 0, 2) }));
    const first = aCheckpoint(1, null, { l: add(0, "a"), x: set(1) }, { run_id: kept.run_id });
    await then(one.settle(kept, { checkpoints: [first], thread: { checkpoint: id(1) } }));
    await then(one.start(gone, { events: someEvents(gone.run_id, 0, 3) }));
    await then(
      one.append({
        checkpoints: [
          aCheckpoint(2, 1, { l: add(1, "b"), x: set(2) }, { run_id: gone.run_id }),
          aCheckpoint(3, 2, { l: add(1, "c"), y: set(3) }, { run_id: gone.run_id }),
        ],
        writes: [someWrites(3, 30)],
      }),
    );
    await then(one.append({ steps: [{ ns: "", checkpoint: id(3), task: id(30), steps: { a: 1 } }] }));
    await then(
      one.append({
        forget: [gone.run_id, id(99)],
        thread: { active: null, checkpoint: id(1) },
      }),
    );
    await Promise.all(made);
    return one;
  }

  test.each([true, false])("a run that is forgotten leaves nothing (waiting: %s)", async (wait) => {
    const one = await rolledBack(wait);
    const { journal } = opened();
    expect(await journal.run(one.key, id(2))).toBeUndefined();
    expect((await journal.runs(one.key, { limit: 10, offset: 0 })).map((run) => run.run_id)).toEqual([id(1)]);
    expect((await journal.history(one.key, { ns: "", limit: 10 })).map((c) => c.id)).toEqual([id(1)]);
    expect(await journal.writes(one.key, "", id(3))).toEqual([]);
    expect((await journal.storedSizes(one.key)).writes.count).toBe(0);
    expect(await journal.events(one.key, id(2), -1, 10)).toEqual([]);
    expect(await journal.nextEvent(one.key, id(2))).toBe(0);
    const base = await journal.checkpoint(one.key, "", id(1));
    expect(base && (await journal.values(one.key, base))).toEqual({ l: ["a"], x: 1 });
    expect(await journal.events(one.key, id(1), -1, 10)).toEqual([someEvents(id(1), 0, 2)]);
    expect(await all(journal.verify())).toEqual([]);
    expect(await all(journal.unsettled())).toEqual([]);
  });

  test("the thread goes on from where it was", async () => {
    const one = await rolledBack(true);
    const { journal } = opened();
    const next = aRun(one.key, 4);
    await one.start(next, { events: someEvents(next.run_id, 0, 1) });
    await one.settle(next, {
      checkpoints: [aCheckpoint(4, 1, { l: add(1, "d"), x: set(4) }, { run_id: next.run_id })],
    });
    const found = await journal.checkpoint(one.key, "", id(4));
    expect(found && (await journal.values(one.key, found))).toEqual({ l: ["a", "d"], x: 4 });
    // The same id again is a new run.
    const again = aRun(one.key, 2, { order: 5 });
    await one.append({ runs: [again], thread: { queue: [again.run_id] } });
    expect(await journal.run(one.key, again.run_id)).toEqual(again);
    expect(await journal.events(one.key, again.run_id, -1, 10)).toEqual([]);
    expect(await all(journal.verify())).toEqual([]);
  });

  test("values that a kept checkpoint still holds are kept", async () => {
    const one = writer();
    const gone = aRun(one.key, 1);
    const mine = { run_id: gone.run_id };
    await one.append();
    await one.start(gone, { checkpoints: [aCheckpoint(1, null, { l: add(0, "a"), x: set(1) }, mine)] });
    await one.append({ checkpoints: [aCheckpoint(2, 1, { l: add(1, "b"), z: set(2) }, mine)] });
    // Created by hand after it, and not by the run.
    await one.append({ checkpoints: [aCheckpoint(3, 2, { y: set(3) })] });
    await one.append({ forget: [gone.run_id], thread: { active: null, checkpoint: id(3) } });
    const { journal } = opened();
    const kept = await journal.checkpoint(one.key, "", id(3));
    expect(kept && (await journal.values(one.key, kept))).toEqual({ l: ["a", "b"], x: 1, z: 2, y: 3 });
    expect(await journal.checkpoint(one.key, "", id(2))).toBeUndefined();
  });

  test("what the same append writes anew is there", async () => {
    const one = writer();
    await one.append({
      checkpoints: [aCheckpoint(1, null, { l: add(0, "a") })],
      thread: { checkpoint: id(1) },
    });
    const gone = aRun(one.key, 1);
    await one.start(gone);
    const mine = { run_id: gone.run_id };
    await one.append({ checkpoints: [aCheckpoint(2, 1, { l: add(1, "b") }, mine)] });
    await one.append({
      forget: [gone.run_id],
      checkpoints: [aCheckpoint(3, 1, { l: add(1, "c") })],
      runs: [aRun(one.key, 2)],
      thread: { active: null, queue: [id(2)], checkpoint: id(3) },
    });
    const { journal } = opened();
    const found = await journal.checkpoint(one.key, "", id(3));
    expect(found && (await journal.values(one.key, found))).toEqual({ l: ["a", "c"] });
    expect(await journal.run(one.key, id(2))).toBeDefined();
    expect(await all(journal.verify())).toEqual([]);
  });

  test("a removed thread leaves nothing, and its id can be had again", async () => {
    const one = await rolledBack(true);
    const other = writer(2);
    await other.append({ checkpoints: [aCheckpoint(1, null, { x: set(1) })] });
    const { journal, catalog } = opened();
    const base = await journal.checkpoint(one.key, "", id(1));
    await one.append({ thread: { queue: [id(1)] } });
    await expect(journal.remove(one.key, { epoch: 0, seq: 1 })).rejects.toMatchObject({
      code: "journal.fenced",
    });
    await expect(journal.remove(one.key, { ...one.record, seq: 1 })).rejects.toMatchObject({
      code: "journal.conflict",
    });
    await journal.remove(one.key, one.record);
    expect(await journal.thread(one.key)).toBeUndefined();
    expect(await journal.run(one.key, id(1))).toBeUndefined();
    expect(await journal.history(one.key, { ns: "", limit: 10 })).toEqual([]);
    expect(await journal.events(one.key, id(1), -1, 10)).toEqual([]);
    expect(await all(journal.unsettled())).toEqual([]);
    expect(await catalog.threads("_", { limit: 10 })).toEqual([other.key]);
    const gone = async (): Promise<unknown> => base && journal.values(one.key, base);
    await expect(gone()).rejects.toMatchObject({ code: "checkpoint.not_found" });
    await expect(one.append()).rejects.toMatchObject({ code: "journal.fenced" });
    const anew = writer();
    await anew.append();
    expect(await journal.thread(anew.key)).toEqual(anew.record);
    expect(await journal.runs(anew.key, { limit: 10, offset: 0 })).toEqual([]);
    expect(await all(journal.verify())).toEqual([]);
  });

  test("a thread that does not exist can be removed", async () => {
    const removed = opened().journal.remove(threadKey(5), { epoch: 0, seq: 0 });
    await expect(removed).resolves.toBeUndefined();
  });

  test.runIf(supports.reopen)("what is gone stays gone after the next open", async () => {
    const one = await rolledBack(true);
    const two = writer(2);
    await two.append();
    await opened().journal.remove(two.key, two.record);
    await opened().reopen();
    const { journal } = opened();
    expect(await journal.run(one.key, id(2))).toBeUndefined();
    expect(await journal.thread(two.key)).toBeUndefined();
    expect(await all(journal.verify())).toEqual([]);
  });

  /** Threads of two tenants, each with a run that ended at 2,000 and an active one, both with events. */
  async function withEvents(): Promise<Writer[]> {
    const writers = [writer(1), writer(2), new Writer(() => opened().journal, threadKey(3, "other"))];
    for (const [n, one] of writers.entries()) {
      const [ended, going] = [aRun(one.key, 10 * n + 1), aRun(one.key, 10 * n + 2)];
      await one.append();
      await one.start(ended, { events: someEvents(ended.run_id, 0, 2) });
      const checkpoint = aCheckpoint(10 * n + 1, null, { x: set(n) }, { run_id: ended.run_id });
      // More keys than one batch deletes.
      for (let first = 2; first < 502; first++) {
        void opened().journal.publish(one.key, one.record.epoch, someEvents(ended.run_id, first, 1));
      }
      await one.settle(ended, { checkpoints: [checkpoint], thread: { checkpoint: checkpoint.id } });
      await one.start(going, { events: someEvents(going.run_id, 0, 3) });
    }
    return writers;
  }

  const eventsOf = async ({ key }: Writer, run: number) => opened().journal.events(key, id(run), -1, 10);

  test("events of runs that ended before a time expire, in pieces; all else stays", async () => {
    const writers = await withEvents();
    const { journal } = opened();
    expect(await journal.expireEvents(2_000, null, 100)).toBeNull();
    for (const [n, one] of writers.entries()) expect(await eventsOf(one, 10 * n + 1)).not.toEqual([]);
    const seen: unknown[] = [];
    for (let from = await journal.expireEvents(2_001, null, 1); from !== null;) {
      seen.push(from);
      from = await journal.expireEvents(2_001, from, 1);
    }
    expect(seen).toEqual(writers.map(({ key }) => key));
    for (const [n, one] of writers.entries()) {
      expect(await eventsOf(one, 10 * n + 1)).toEqual([]);
      expect(await eventsOf(one, 10 * n + 2)).toEqual([someEvents(id(10 * n + 2), 0, 3)]);
      expect(await journal.run(one.key, id(10 * n + 1))).toMatchObject({ status: "success" });
      expect(await journal.history(one.key, { ns: "", limit: 10 })).toHaveLength(1);
    }
    expect(await all(journal.verify())).toEqual([]);
  });

  test("while events expire, who reads meets all of them or none, and nothing is taken for damage", async () => {
    const [one] = await withEvents();
    if (one === undefined) throw new TypeError("there is no thread");
    const { journal } = opened();
    let done = false;
    const expiring = journal.expireEvents(2_001, null, 100).then(() => (done = true));
    const counts = new Set<number>();
    while (!done) {
      const read = await journal.events(one.key, id(1), -1, 1_000);
      counts.add(read.length);
      expect(await all(journal.verify(one.key))).toEqual([]);
      // A store in memory answers in the same turn; the other side needs one too.
      await new Promise((resolve) => setImmediate(resolve));
    }
    await expiring;
    for (const count of counts) expect([0, 501]).toContain(count);
    expect(await eventsOf(one, 1)).toEqual([]);
  });

  describe("large records, which concurrent readers share, are not found after their deletion", () => {
    const large = "x".repeat(300 * 1024);
    const largeEvents = (run: string): EventChunk => ({
      run_id: run,
      first: 0,
      facts: [{ t: "custom", ns: "", json: JSON.stringify(large) }],
    });
    /** Twice: what is large is known, and shared, from the first read on. The caller holds the result, so that it is not garbage-collected. */
    const readTwice = async <T>(read: () => Eventually<T>): Promise<readonly T[]> => [
      await read(),
      await read(),
    ];

    test("events that have expired", async () => {
      const one = writer();
      const run = aRun(one.key, 1);
      await one.append();
      await one.start(run, { events: largeEvents(run.run_id) });
      await one.settle(run);
      const held = await readTwice(() => eventsOf(one, 1));
      expect(held[1]).toEqual([largeEvents(run.run_id)]);
      await opened().journal.expireEvents(2_001, null, 100);
      expect(await eventsOf(one, 1)).toEqual([]);
      expect(held[1]).toHaveLength(1);
    });

    test("a run, its events and its checkpoints that were rolled back", async () => {
      const { journal } = opened();
      const one = writer();
      const run = aRun(one.key, 1, { kwargs: kwargs({ large }) });
      const made = aCheckpoint(1, null, { x: set(1) }, { run_id: run.run_id, metadata: { large } });
      await one.append();
      await one.start(run, { events: largeEvents(run.run_id), checkpoints: [made] });
      const read = () => [
        journal.sharedRun(one.key, run.run_id),
        eventsOf(one, 1),
        journal.checkpoint(one.key, "", made.id),
      ];
      const held = await readTwice(() => Promise.all(read()));
      expect(held[1]).not.toContain(undefined);
      await one.append({ forget: [run.run_id], thread: { active: null } });
      expect(await Promise.all(read())).toEqual([undefined, [], undefined]);
      const again = aRun(one.key, 1, { kwargs: kwargs({ large: 1 }), order: 2 });
      await one.append({ runs: [again], thread: { queue: [again.run_id] } });
      expect(await journal.sharedRun(one.key, again.run_id)).toEqual(again);
      expect(held[1]).toHaveLength(3);
    });

    test("checkpoints that were pruned", async () => {
      const { journal } = opened();
      const one = writer();
      const metadata = { large };
      await one.append({
        checkpoints: [aCheckpoint(1, null, { x: set(large) }, { metadata })],
        thread: { checkpoint: id(1) },
      });
      await one.append({
        checkpoints: [aCheckpoint(2, 1, { x: set(2) })],
        thread: { checkpoint: id(2) },
      });
      const [, held] = await readTwice(() => journal.checkpoint(one.key, "", id(1)));
      if (held === undefined) throw new TypeError("there is no checkpoint");
      await journal.prune(one.key, one.record);
      expect(await journal.checkpoint(one.key, "", id(1))).toBeUndefined();
      const values = async () => journal.values(one.key, held);
      await expect(values()).rejects.toMatchObject({ code: "checkpoint.not_found" });
    });
  });
}
