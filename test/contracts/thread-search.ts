import { expect, test } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { threadSortKey, threadOrders } from "../../src/model/thread-search.ts";
import { newThreadRecord, type ThreadRecord, threadStatusOf } from "../../src/model/thread.ts";
import type { ThreadSearch } from "../../src/ports/catalog.ts";
import { all, aRun, id, threadKey, Writer } from "../storage/samples.ts";
import type { Opened, Supports } from "./harness.ts";

const query: ThreadSearch = { limit: 10, offset: 0, sort_by: "created_at", sort_order: "desc" };

/** The index of threads: its results, their order, and its updates on every change. */
export function threadSearchContract(opened: Opened, supports: Supports): void {
  const found = async (search: Partial<ThreadSearch> = {}, tenant = "_") =>
    (await opened().catalog.searchThreads(tenant, { ...query, ...search })).threads.map(({ thread_id }) =>
      Number.parseInt(thread_id.slice(-12), 16),
    );
  const count = (selection = {}) => opened().catalog.countThreads("_", selection);

  async function make(n: number, more: Partial<ThreadRecord> = {}, tenant = "_"): Promise<Writer> {
    const key = threadKey(n, tenant);
    const writer = new Writer(() => opened().journal, key, newThreadRecord(key.thread, 1_000 + n));
    await writer.append({ thread: more });
    return writer;
  }

  test("threads are found in every order, in pages, with how many there are", async () => {
    // Created in another order than that of their ids.
    for (const [n, created, updated, state, rest] of [
      [1, 50, 60, 51, "idle"],
      [2, 40, 90, 52, "interrupted"],
      [3, 30, 70, 53, "error"],
      [4, 20, 80, 54, "success"],
      [5, 10, 95, 55, "interrupted"],
    ] as const) {
      const times = { created_at: created, updated_at: updated, rested_at: updated, state_updated_at: state };
      await make(n, { ...times, rest });
    }
    await make(6, {}, "other");
    const orders = {
      created_at: [1, 2, 3, 4, 5],
      updated_at: [5, 2, 4, 3, 1],
      state_updated_at: [5, 4, 3, 2, 1],
      thread_id: [5, 4, 3, 2, 1],
      status: [2, 5, 1, 4, 3],
    };
    for (const sort_by of threadOrders) {
      expect(await found({ sort_by }), sort_by).toEqual(orders[sort_by]);
      expect(await found({ sort_by, sort_order: "asc" }), sort_by).toEqual(orders[sort_by].toReversed());
      expect(await found({ sort_by, offset: 1, limit: 2 }), sort_by).toEqual(orders[sort_by].slice(1, 3));
      expect(await found({ sort_by, offset: 9 }), sort_by).toEqual([]);
    }
    const { catalog } = opened();
    expect(await catalog.searchThreads("_", { ...query, limit: 2 })).toMatchObject({ total: 5, more: true });
    expect(await catalog.searchThreads("_", { ...query, limit: 5 })).toMatchObject({ total: 5, more: false });
    expect(await catalog.searchThreads("_", { ...query, offset: 7 })).toMatchObject({
      total: 5,
      more: false,
    });
    expect(await count()).toBe(5);
    expect(await found({}, "other")).toEqual([6]);
    expect(await found({}, "nobody")).toEqual([]);
  });

  test("by status: a thread at work is busy, and nothing else", async () => {
    await make(1);
    await make(2, { rest: "interrupted" });
    await make(3, { rest: "error" });
    const four = await make(4, { rest: "interrupted" });
    const run = aRun(four.key, 50);
    await four.start(run);
    await make(5, { queue: [id(60)] });
    const status = async (one: ThreadSearch["status"] & string) => {
      const ids = await found({ status: one });
      expect(await count({ status: one })).toBe(ids.length);
      for (const sort_by of threadOrders) {
        expect((await found({ status: one, sort_by })).toSorted(), sort_by).toEqual(ids.toSorted());
      }
      return ids;
    };
    expect(await status("idle")).toEqual([1]);
    expect(await status("interrupted")).toEqual([2]);
    expect(await status("error")).toEqual([3]);
    expect(await status("busy")).toEqual([5, 4]);
    expect(await found({ sort_by: "status", sort_order: "asc" })).toEqual([4, 5, 3, 1, 2]);
    await four.settle(run, { thread: { rest: "success", rested_at: 9_000, updated_at: 9_000 } });
    expect(await status("busy")).toEqual([5]);
    expect(await status("idle")).toEqual([4, 1]);
    expect(await status("interrupted")).toEqual([2]);
    expect(await found({ sort_by: "updated_at", limit: 1 })).toEqual([4]);
  });

  test("a thread at work stands where its last change puts it", async () => {
    await make(1, { rested_at: 100, updated_at: 100 });
    const two = await make(2, { rested_at: 50, updated_at: 50 });
    await two.start(aRun(two.key, 50), { thread: { updated_at: 200 } });
    expect(await found({ sort_by: "updated_at" })).toEqual([2, 1]);
    expect(await found({ sort_by: "updated_at", sort_order: "asc" })).toEqual([1, 2]);
    expect(await found({ sort_by: "updated_at", limit: 1, offset: 1 })).toEqual([1]);
  });

  test("by metadata: what is contained in it, wherever that is", async () => {
    const metadata: JsonObject[] = [
      { user: "ann", n: 1, tags: ["a", "b"], deep: { er: { x: 1, y: 2 } } },
      { user: "bob", n: "1", ok: true, nothing: null },
      { user: "ann", n: 2, ok: false, "": "empty", toString: "own" },
      Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`key ${i}`, i])),
      {},
    ];
    for (const [i, one] of metadata.entries()) await make(i + 1, { metadata: one });
    const by = async (part: JsonObject): Promise<number[]> => {
      const ids = await found({ metadata: part });
      expect(await count({ metadata: part })).toBe(ids.length);
      for (const sort_by of threadOrders) {
        expect((await found({ metadata: part, sort_by })).toSorted(), sort_by).toEqual(ids.toSorted());
      }
      return ids;
    };
    expect(await by({})).toEqual([5, 4, 3, 2, 1]);
    expect(await by({ user: "ann" })).toEqual([3, 1]);
    expect(await by({ user: "ann", n: 1 })).toEqual([1]);
    expect(await by({ n: "1" })).toEqual([2]);
    expect(await by({ n: 1.5 })).toEqual([]);
    expect(await by({ nothing: null })).toEqual([2]);
    expect(await by({ ok: false })).toEqual([3]);
    expect(await by({ "": "empty" })).toEqual([3]);
    expect(await by({ toString: "own" })).toEqual([3]);
    expect(await by({ constructor: "own" })).toEqual([]);
    expect(await by({ tags: ["b"] })).toEqual([1]);
    expect(await by({ deep: { er: { y: 2 } } })).toEqual([1]);
    expect(await by({ deep: { er: { y: 2 } }, user: "bob" })).toEqual([]);
    expect(await by({ "key 0": 0 })).toEqual([4]);
    expect(await by({ "key 99": 99 })).toEqual([4]);
    expect(await by({ "key 99": 98 })).toEqual([]);
    expect(await found({ metadata: { user: "ann" }, status: "idle" })).toEqual([3, 1]);
    expect(await found({ metadata: { user: "ann" }, status: "error" })).toEqual([]);
  });

  test("the index follows a thread's metadata", async () => {
    const one = await make(1, { metadata: { a: 1, b: 2, c: { d: 1 } } });
    const wide = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`w${i}`, i]));
    const steps: JsonObject[] = [
      { a: 1, b: 3 },
      { a: { was: 1 }, b: 3 },
      {},
      wide,
      { ...wide, w0: "x" },
      { a: 1 },
    ];
    for (const metadata of steps) {
      await one.append({ thread: { metadata } });
      for (const [name, value] of Object.entries({ a: 1, b: 2, b2: 3, w0: 0, w49: 49 })) {
        const member = { [name.slice(0, name === "b2" ? 1 : 3)]: value };
        const fits = Object.entries(member).every(([key, is]) => metadata[key] === is);
        expect(await found({ metadata: member })).toEqual(fits ? [1] : []);
      }
      expect(await all(opened().journal.verify())).toEqual([]);
    }
  });

  test("only what the caller keeps is shown and counted", async () => {
    for (let n = 1; n <= 30; n++) await make(n, { metadata: { odd: n % 2 === 1 } });
    const keep = async ({ created_at }: ThreadRecord) => created_at % 3 === 0;
    expect(await found({ keep, metadata: { odd: true } })).toEqual([29, 23, 17, 11, 5]);
    expect(await count({ keep })).toBe(10);
    expect(await found({ keep, limit: 2, offset: 1, sort_by: "updated_at", sort_order: "asc" })).toEqual(
      [2, 5, 8].filter((n) => n !== 2),
    );
  });

  test("by ids: those of them that are there", async () => {
    for (let n = 1; n <= 5; n++) await make(n, { rest: n > 3 ? "error" : "idle" });
    const ids = [id(5), id(2), id(99), id(2), id(4)];
    expect(await found({ ids })).toEqual([5, 4, 2]);
    expect(await found({ ids, status: "error", sort_order: "asc" })).toEqual([4, 5]);
    expect(await found({ ids: [] })).toEqual([]);
    expect(await count({ ids })).toBe(3);
  });

  test("hidden threads are never found, deleted ones no more", async () => {
    const one = await make(1, {
      metadata: { a: 1 },
      rest: "error",
      ttl: { strategy: "delete", minutes: 1, due: 5 },
    });
    const hidden = await make(2, { temporary: "free", metadata: { a: 1 } });
    await hidden.start(aRun(hidden.key, 50));
    for (const search of [
      {},
      { status: "busy" as const },
      { sort_by: "updated_at" as const },
      { ids: [id(2)] },
    ]) {
      expect(await found({ ...search })).not.toContain(2);
    }
    expect(await opened().catalog.dueThreads(10, 10)).toEqual([one.key]);
    await opened().journal.remove(one.key, { epoch: one.record.epoch, seq: one.record.seq });
    for (const sort_by of threadOrders) expect(await found({ sort_by })).toEqual([]);
    expect(await found({ metadata: { a: 1 } })).toEqual([]);
    expect(await found({ status: "error" })).toEqual([]);
    expect(await count()).toBe(0);
    expect(await opened().catalog.dueThreads(10, 10)).toEqual([]);
    expect(await all(opened().journal.verify())).toEqual([]);
  });

  test("what is due comes in the order of its time, of all tenants", async () => {
    const ttl = (due: number) => ({ ttl: { strategy: "delete" as const, minutes: 1, due } });
    const one = await make(1, ttl(30));
    await make(2, ttl(10), "other");
    await make(3, ttl(20));
    await make(4);
    const due = async (now: number, limit = 10) =>
      (await opened().catalog.dueThreads(now, limit)).map(({ thread }) => thread);
    expect(await due(9)).toEqual([]);
    expect(await due(20)).toEqual([id(2), id(3)]);
    expect(await due(99, 2)).toEqual([id(2), id(3)]);
    await one.append({ thread: ttl(5) });
    expect(await due(99)).toEqual([id(1), id(2), id(3)]);
    await one.append({ thread: { ttl: null } });
    expect(await due(99)).toEqual([id(2), id(3)]);
  });

  test("a walk of changes is found as a list would find it", { timeout: 60_000 }, async () => {
    let seed = 20_261_121;
    const below = (n: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
      return (seed >>> 8) % n;
    };
    const writers: Writer[] = [];
    for (let n = 1; n <= 60; n++) writers.push(await make(n, { created_at: 1_000 + below(20) }));
    for (let step = 0; step < 300; step++) {
      const one = writers[below(writers.length)] as Writer;
      const time = 2_000 + step;
      const rest = (["idle", "success", "interrupted", "error"] as const)[below(4)] ?? "idle";
      const metadata = { team: `t${below(4)}`, level: below(3), deep: { n: below(3) } };
      const active = below(3) === 0 ? id(500 + step) : null;
      void one.append({
        thread: {
          metadata,
          active,
          updated_at: time,
          state_updated_at: below(2) === 0 ? time : one.record.state_updated_at,
          // A working thread keeps its last idle state.
          ...(active === null ? { rest, rested_at: time } : {}),
        },
        ...(active !== null && { runs: [aRun(one.key, 500 + step)] }),
      });
      if (below(20) === 0) opened().journal.release(one.key);
    }
    await Promise.all(writers.map((one) => one.append({ thread: {} })));
    if (supports.reopen) await opened().reopen();
    const records = writers.map(({ record }) => record);
    for (const sort_by of threadOrders) {
      for (const status of [undefined, "idle", "busy", "interrupted"] as const) {
        for (const metadata of [undefined, { team: "t1" }, { team: "t1", level: 2 }, { deep: { n: 1 } }]) {
          const fit = records.filter(
            (one) =>
              (status === undefined || threadStatusOf(one) === status) &&
              Object.entries(metadata ?? {}).every(
                ([name, value]) => JSON.stringify(one.metadata[name]) === JSON.stringify(value),
              ),
          );
          const by = (one: ThreadRecord) => threadSortKey(sort_by, one);
          const order = fit.toSorted((a, b) =>
            by(a) < by(b) || (by(a) === by(b) && a.thread_id < b.thread_id) ? -1 : 1,
          );
          const filter = { ...(status && { status }), ...(metadata && { metadata }) };
          const expected = order.map(({ thread_id }) => Number.parseInt(thread_id.slice(-12), 16));
          const name = JSON.stringify({ sort_by, ...filter });
          expect(await found({ sort_by, sort_order: "asc", limit: 1_000, ...filter }), name).toEqual(
            expected,
          );
          expect(await found({ sort_by, limit: 7, offset: 3, ...filter }), name).toEqual(
            expected.toReversed().slice(3, 10),
          );
          expect(await count(filter), name).toBe(expected.length);
        }
      }
    }
  });
}
