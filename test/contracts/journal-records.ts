import { expect, test } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import {
  all,
  aCheckpoint,
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

/** Threads, runs, checkpoints and pending writes. */
export function recordsContract(opened: Opened, supports: Supports): void {
  const writer = (n = 1, tenant = "_"): Writer => new Writer(() => opened().journal, threadKey(n, tenant));

  test("what was not written is not there", async () => {
    const { journal } = opened();
    const key = threadKey(1);
    expect(await journal.thread(key)).toBeUndefined();
    expect(await journal.run(key, id(1))).toBeUndefined();
    expect(await journal.runs(key, { limit: 10, offset: 0 })).toEqual([]);
    expect(await journal.countRuns(key)).toBe(0);
    expect(await journal.checkpoint(key, "", id(1))).toBeUndefined();
    expect(await journal.history(key, { ns: "", limit: 10 })).toEqual([]);
    expect(await journal.writes(key, "", id(1))).toEqual([]);
    expect(await journal.events(key, id(1), -1, 10)).toEqual([]);
    expect(await journal.nextEvent(key, id(1))).toBe(0);
  });

  test("a run comes back as it was last written", async () => {
    const one = writer();
    const run = aRun(one.key, 1, { kwargs: kwargs({ text: "é ✓ \ud800", deep: [{ "": null }] }) });
    await one.append({ runs: [run] });
    await one.start({ ...run, attempt: 1 });
    expect(await opened().journal.run(one.key, run.run_id)).toEqual({ ...run, attempt: 1 });
    const other = { ...run, kwargs: kwargs("another"), attempt: 2 };
    await one.append({ runs: [other] });
    expect(await opened().journal.run(one.key, run.run_id)).toEqual(other);
  });

  test("runs are listed newest admission first, by page and by status", async () => {
    const one = writer();
    // Ids whose sort order is the reverse of the order of admission.
    const made = Array.from({ length: 40 }, (_, n) => aRun(one.key, 100 - n, { order: n + 1 }));
    for (const run of made) await one.append({ runs: [run] });
    await one.append({ runs: [aRun(one.key, 93, { order: 8, status: "error" })] });
    const list = (query: { limit: number; offset: number; status?: "error" | "pending" }) =>
      opened()
        .journal.runs(one.key, query)
        .then((runs) => runs.map((run) => run.order));
    expect(await list({ limit: 3, offset: 0 })).toEqual([40, 39, 38]);
    expect(await list({ limit: 3, offset: 38 })).toEqual([2, 1]);
    expect(await list({ limit: 5, offset: 0, status: "error" })).toEqual([8]);
    expect(await list({ limit: 2, offset: 32, status: "pending" })).toEqual([7, 6]);
    expect(await list({ limit: 5, offset: 100 })).toEqual([]);
    const count = (status?: "error" | "pending") => opened().journal.countRuns(one.key, status && { status });
    expect([await count(), await count("error"), await count("pending")]).toEqual([40, 1, 39]);
    await one.append({ runs: [aRun(one.key, 9, { metadata: { a: { b: 1, c: 2 } } })] });
    const metadata = { a: { b: 1 } };
    const found = await opened().journal.runs(one.key, { limit: 5, offset: 0, metadata, status: "pending" });
    expect(found.map((run) => run.order)).toEqual([9]);
    expect(await opened().journal.countRuns(one.key, { metadata })).toBe(1);
    expect(await opened().journal.countRuns(one.key, { metadata, status: "error" })).toBe(0);
  });

  test("a page of history that is bounded by bytes ends before a large checkpoint, which begins the next", async () => {
    const one = writer();
    const large = { writes: { node: "x".repeat(300_000) } };
    for (const n of [1, 2, 3, 4])
      await one.append({
        checkpoints: [aCheckpoint(n, n === 1 ? null : n - 1, {}, n === 2 ? { metadata: large } : {})],
      });
    const page = async (more: { readonly bytes?: number; readonly before?: string }) =>
      (await opened().journal.history(one.key, { ns: "", limit: 10, ...more })).map((found) => found.id);
    expect(await page({ bytes: 256 * 1024 })).toEqual([id(4), id(3)]);
    expect(await page({ bytes: 256 * 1024, before: id(3) })).toEqual([id(2)]);
    expect(await page({ bytes: 256 * 1024, before: id(2) })).toEqual([id(1)]);
    expect(await page({})).toEqual([id(4), id(3), id(2), id(1)]);
  });

  test("the updates of a checkpoint are complete, however large, also after it was copied, pruned, and rolled back to", async () => {
    const one = writer();
    const text = "x".repeat(100_000);
    const list = ["y".repeat(100_000), { z: 1 }];
    const updates = [
      { __start__: { n: 1, text } },
      { make: { list, text: `${text}2`, other: text, n: 2 }, again: { text: `${text}2` }, odd: text },
      { make: { list: null, text: null } },
    ];
    const gone = aRun(one.key, 1);
    await one.append({
      checkpoints: [
        aCheckpoint(1, null, { n: set(1), text: set(text) }, { writes: updates[0] ?? null }),
        aCheckpoint(
          2,
          1,
          { list: set(list), text: set(`${text}2`), n: set(2) },
          { writes: updates[1] ?? null },
        ),
      ],
      thread: { checkpoint: id(2) },
    });
    const { journal } = opened();
    const copied = threadKey(2);
    await journal.copy(one.key, copied, (thread) => ({ ...thread, thread_id: copied.thread }));
    await one.start(gone);
    const third = { writes: updates[2] ?? null, run_id: gone.run_id };
    await one.append({
      checkpoints: [aCheckpoint(3, 2, { list: { kind: "clear" }, text: { kind: "clear" } }, third)],
    });
    if (supports.reopen) await opened().reopen();
    const read = async (key = one.key, ids = [1, 2, 3]) =>
      Promise.all(ids.map(async (n) => (await opened().journal.checkpoint(key, "", id(n)))?.writes));
    const twice = await Promise.all([read(), read()]);
    expect(twice).toEqual([updates, updates]);
    expect(Object.keys((twice[0][1]?.["make"] ?? {}) as object)).toEqual(["list", "text", "other", "n"]);
    expect(await read(copied, [1, 2])).toEqual(updates.slice(0, 2));
    const history = async (more: { readonly bytes?: number; readonly before?: string }) =>
      (await opened().journal.history(one.key, { ns: "", limit: 10, ...more })).map(({ writes }) => writes);
    expect(await history({})).toEqual(updates.toReversed());
    expect(await history({ bytes: 1_000_000 })).toEqual([updates[2]]);
    expect(await history({ bytes: 1_000_000, before: id(3) })).toEqual([updates[1]]);
    await one.append({ forget: [gone.run_id], thread: { active: null, checkpoint: id(2) } });
    expect(await read()).toEqual([updates[0], updates[1], undefined]);
    await opened().journal.prune(one.key, one.record);
    expect(await read()).toEqual([undefined, updates[1], undefined]);
    expect(await all(opened().journal.verify())).toEqual([]);
  });

  test("all runs of a thread are counted, however many there are", async () => {
    const one = writer();
    const many = (status: "pending" | "error", first: number) =>
      Array.from({ length: 700 }, (_, n) => aRun(one.key, first + n, { order: first + n, status }));
    await one.append({ runs: many("pending", 1) });
    await one.append({ runs: many("error", 701) });
    expect(await opened().journal.countRuns(one.key)).toBe(1_400);
    expect(await opened().journal.countRuns(one.key, { status: "error" })).toBe(700);
  });

  test("threads with work are listed, and no others", async () => {
    const one = writer(1);
    const two = writer(2);
    const three = writer(3, "other");
    await Promise.all([one.append(), two.append(), three.append()]);
    const unsettled = async (): Promise<unknown> => all(opened().journal.unsettled());
    expect(await unsettled()).toEqual([]);
    const run = aRun(one.key, 1);
    await one.start(run);
    await three.append({ runs: [aRun(three.key, 2)], thread: { queue: [id(2)] } });
    expect(await unsettled()).toEqual([one.key, three.key]);
    await one.append();
    await one.settle(run);
    expect(await unsettled()).toEqual([three.key]);
    await three.append({ thread: { queue: [] } });
    expect(await unsettled()).toEqual([]);
  });

  test("a temporary thread is in no list of threads, and among those with work until it is removed", async () => {
    const { journal, catalog } = opened();
    const one = writer(1);
    const two = writer(2);
    await one.append();
    await two.append({ thread: { temporary: "background" } });
    const run = aRun(two.key, 1);
    await two.start(run);
    await two.settle(run);
    expect(await catalog.threads("_", { limit: 10 })).toEqual([one.key]);
    expect(await all(journal.unsettled())).toEqual([two.key]);
    expect(await all(journal.verify())).toEqual([]);
    await journal.remove(two.key, two.record);
    expect(await all(journal.unsettled())).toEqual([]);
    expect(await journal.run(two.key, run.run_id)).toBeUndefined();
    expect(await all(journal.verify())).toEqual([]);
  });

  test("the rows and bytes of a thread are counted by kind, and go with what is deleted", async () => {
    const { journal } = opened();
    const one = writer(1);
    const nothing = { count: 0, bytes: 0 };
    const [checkpoints, writes, runs] = [nothing, nothing, nothing];
    const none = { checkpoints, writes, runs, events: nothing, thread: nothing };
    expect(await journal.storedSizes(one.key)).toEqual({ ...none, channels: new Map() });
    const run = aRun(one.key, 1);
    await one.start(run);
    const text = "x".repeat(5_000);
    await one.append({
      checkpoints: [
        aCheckpoint(1, null, { small: set(1), "large/ü": set(text) }),
        aCheckpoint(2, 1, { small: set(2) }),
        aCheckpoint(3, null, { small: set(3) }, { ns: "sub:1" }),
      ],
      writes: [someWrites(2, 1)],
    });
    await journal.publish(one.key, one.record.epoch, someEvents(run.run_id, 0, 3));
    // Another thread, of the same tenant and of another, counts for neither.
    await writer(2).append({ checkpoints: [aCheckpoint(1, null, { small: set(1) })] });
    await writer(1, "other").append({ checkpoints: [aCheckpoint(1, null, { small: set(1) })] });
    const stored = await journal.storedSizes(one.key);
    expect(stored.checkpoints.count).toBe(3);
    // Small values are part of the checkpoint's row.
    expect([...stored.channels.keys()]).toEqual(["large/ü"]);
    const large = stored.channels.get("large/ü") ?? nothing;
    expect(large.count).toBe(1);
    expect(large.bytes).toBeGreaterThan(5_000);
    expect(large.bytes).toBeLessThan(5_100);
    expect(stored.writes.count).toBe(1);
    // The run, its kwargs and its place in the order.
    expect(stored.runs.count).toBe(3);
    expect(stored.thread.count).toBe(1 + one.record.seq);
    expect(stored.events.count).toBe(1);
    for (const kind of ["checkpoints", "writes", "runs", "events", "thread"] as const) {
      expect(stored[kind].bytes).toBeGreaterThan(stored[kind].count);
    }
    await one.settle(run);
    await journal.prune(one.key, one.record);
    expect((await journal.storedSizes(one.key)).checkpoints.count).toBeLessThan(3);
    await journal.remove(one.key, one.record);
    expect(await journal.storedSizes(one.key)).toEqual({ ...none, channels: new Map() });
  });

  test("checkpoints are found by id and namespace, and listed newest first", async () => {
    const one = writer();
    const ns = "sub:0199aaaa-0000-7000-8000-000000000001|leaf:1";
    await one.append({
      checkpoints: [
        aCheckpoint(1, null, { x: set(1) }),
        aCheckpoint(2, 1, { x: set(2) }),
        aCheckpoint(3, null, { x: set("sub") }, { ns }),
        aCheckpoint(4, 2, { x: set(3) }),
      ],
    });
    const { journal } = opened();
    const history = async (query: {
      ns: string;
      limit: number;
      before?: string;
      after?: string;
    }): Promise<unknown> => (await journal.history(one.key, query)).map((checkpoint) => checkpoint.id);
    expect(await history({ ns: "", limit: 10 })).toEqual([id(4), id(2), id(1)]);
    expect(await history({ ns: "", limit: 2 })).toEqual([id(4), id(2)]);
    expect(await history({ ns: "", limit: 10, before: id(4) })).toEqual([id(2), id(1)]);
    expect(await history({ ns: "", limit: 1, after: id(1) })).toEqual([id(2)]);
    expect(await history({ ns: "", limit: 10, after: id(1) })).toEqual([id(4), id(2)]);
    expect(await history({ ns: "", limit: 10, after: id(1), before: id(4) })).toEqual([id(2)]);
    expect(await history({ ns: "", limit: 10, after: id(4) })).toEqual([]);
    expect(await history({ ns, limit: 10 })).toEqual([id(3)]);
    expect(await journal.checkpoint(one.key, ns, id(1))).toBeUndefined();
    const { changes: _, ...head } = aCheckpoint(2, 1, {});
    const found = await journal.checkpoint(one.key, "", id(2));
    expect(found).toEqual({ ...head, channels: { x: expect.anything() as unknown } });
    // Steps of one append supersede one another; each keeps its own value.
    for (const [n, x] of [
      [1, 1],
      [2, 2],
      [4, 3],
    ] as const) {
      const at = await journal.checkpoint(one.key, "", id(n));
      expect(at && (await journal.values(one.key, at))).toEqual({ x });
    }
  });

  test("what tasks left comes in the order of their ids, the latest of each", async () => {
    const one = writer();
    const ns = "sub:1";
    await one.append({ checkpoints: [aCheckpoint(1, null, {}), aCheckpoint(2, null, {}, { ns })] });
    const later = someWrites(1, 21, { result: { value: { a: [1] } }, steps: { key: "done" } });
    await one.append({ writes: [someWrites(1, 22), someWrites(1, 21)] });
    await one.append({ writes: [later, someWrites(2, 30, { ns })], durable: false });
    const { journal } = opened();
    expect(await journal.writes(one.key, "", id(1))).toEqual([later, someWrites(1, 22)]);
    expect(await journal.writes(one.key, "", id(2))).toEqual([]);
    expect(await journal.writes(one.key, ns, id(2))).toEqual([someWrites(2, 30, { ns })]);
  });

  test("step results are added to what a task left, until that is written whole again", async () => {
    const one = writer();
    const steps = (task: number, added: JsonObject) =>
      one.append({ steps: [{ ns: "", checkpoint: id(1), task: id(task), steps: added }], durable: false });
    const { journal } = opened();
    const left = async (key: ThreadKey = one.key) =>
      (await journal.writes(key, "", id(1))).map((writes) => writes.steps);
    await one.append({ checkpoints: [aCheckpoint(1, null, {})] });
    await one.append({ writes: [someWrites(1, 21, { steps: { a: 1 } }), someWrites(1, 22)] });
    await steps(21, { b: [2] });
    await steps(22, { x: 1 });
    await steps(21, { c: 3, constructor: 4 });
    expect(await journal.writes(one.key, "", id(1))).toEqual([
      someWrites(1, 21, { steps: { a: 1, b: [2], c: 3, constructor: 4 } }),
      someWrites(1, 22, { steps: { x: 1 } }),
    ]);
    // What is written whole replaces what was added before, as when a run is rolled back.
    await one.append({ writes: [someWrites(1, 21, { steps: { a: 1 } })] });
    expect(await left()).toEqual([{ a: 1 }, { x: 1 }]);
    await steps(21, { d: 5 });
    expect(await left()).toEqual([{ a: 1, d: 5 }, { x: 1 }]);
    const to = threadKey(2);
    await journal.copy(one.key, to, (thread) => ({ ...thread, thread_id: to.thread, seq: thread.seq + 1 }));
    expect(await left(to)).toEqual([{ a: 1, d: 5 }, { x: 1 }]);
    expect(await all(journal.verify())).toEqual([]);
  });

  test("tenants share nothing, whatever they are called", async () => {
    const tenants = ["_", "a", "a/t", "a%002ft", "", "!active", "\ud800", "\ud801", "\u0000", "~"];
    for (const [n, tenant] of tenants.entries()) {
      await writer(1, tenant).append({
        thread: { metadata: { n }, queue: [id(5)] },
        runs: [aRun(threadKey(1, tenant), 5, { metadata: { n } })],
      });
    }
    const { journal, catalog } = opened();
    for (const [n, tenant] of tenants.entries()) {
      const key = threadKey(1, tenant);
      expect((await journal.thread(key))?.metadata).toEqual({ n });
      expect((await journal.runs(key, { limit: 10, offset: 0 })).map((run) => run.metadata)).toEqual([{ n }]);
      expect(await catalog.threads(tenant, { limit: 10 })).toEqual([key]);
    }
    const found = await all(journal.unsettled());
    expect(found.map((key) => key.tenant).sort()).toEqual([...tenants].sort());
    expect(await all(journal.verify())).toEqual([]);
  });

  test("channels and namespaces may be called anything", async () => {
    const names = [
      "a",
      "a/b",
      "a%002fb",
      "",
      "/",
      "\u0000",
      "~",
      "\ud800",
      "\udfff",
      "é",
      "constructor",
      "0",
    ];
    const changes = Object.fromEntries(names.map((name) => [name, set({ name })]));
    const lists = Object.fromEntries(
      names.map((name) => [`${name} list`, { kind: "append", keep: 0, items: [name] } as const]),
    );
    const one = writer();
    const checkpoints = names.map((ns, n) => aCheckpoint(n + 1, null, { ...changes, ...lists }, { ns }));
    await one.append({ checkpoints });
    const { journal } = opened();
    const expected = {
      ...Object.fromEntries(names.map((name) => [name, { name }])),
      ...Object.fromEntries(names.map((name) => [`${name} list`, [name]])),
    };
    for (const [n, ns] of names.entries()) {
      const [found, ...more] = await journal.history(one.key, { ns, limit: 10 });
      expect(found?.id).toBe(id(n + 1));
      expect(more).toEqual([]);
      expect(found && (await journal.values(one.key, found))).toEqual(expected);
    }
    expect(await all(journal.verify())).toEqual([]);
  });

  test("those that read large values at the same time share them", async () => {
    const one = writer();
    const text = "x".repeat(100_000);
    const large = { large: set({ text }), list: { kind: "append", keep: 0, items: [{ text }] } as const };
    await one.append({
      checkpoints: [
        aCheckpoint(1, null, { ...large, n: set({ n: 1 }) }),
        aCheckpoint(2, 1, { n: set({ n: 2 }) }),
      ],
    });
    const { journal } = opened();
    const read = async (n: number) => {
      const found = await journal.checkpoint(one.key, "", id(n));
      return (found && (await journal.sharedValues(one.key, found))) as {
        readonly large: unknown;
        readonly list: readonly unknown[];
        readonly n: unknown;
      };
    };
    const [first, second] = [await read(1), await read(2)];
    expect(first).toEqual({ large: { text }, list: [{ text }], n: { n: 1 } });
    expect(second.n).toEqual({ n: 2 });
    expect(second.large).toBe(first.large);
    expect(second.list[0]).toBe(first.list[0]);
    const found = await journal.checkpoint(one.key, "", id(2));
    const own = found && (await journal.values(one.key, found));
    expect(own).toEqual(second);
    expect(own?.["large"]).not.toBe(first.large);
  });

  test("a thread that has the id of a deleted one shares nothing with it", async () => {
    const read = async (one: Writer) => {
      const found = await opened().journal.checkpoint(one.key, "", id(1));
      return found && opened().journal.sharedValues(one.key, found);
    };
    const before = writer();
    await before.append({ checkpoints: [aCheckpoint(1, null, { x: set("a".repeat(100_000)) })] });
    const kept = await read(before);
    await opened().journal.remove(before.key, before.record);
    const after = writer();
    await after.append({ checkpoints: [aCheckpoint(1, null, { x: set("b".repeat(100_000)) })] });
    expect(kept).toEqual({ x: "a".repeat(100_000) });
    expect(await read(after)).toEqual({ x: "b".repeat(100_000) });
  });

  test("a channel cannot set a prototype", async () => {
    const changes = JSON.parse('{"__proto__":{"kind":"set","value":{"polluted":true}}}') as never;
    const append = writer().append({ checkpoints: [aCheckpoint(1, null, changes)] });
    await expect(append).rejects.toMatchObject({ code: "value.unstorable" });
  });

  test.runIf(supports.sync)("small reads answer in the same turn", async () => {
    const one = writer();
    const checkpoints = [aCheckpoint(1, null, { x: set(1), list: { kind: "append", keep: 0, items: [1] } })];
    await one.append({ runs: [aRun(one.key, 1)], checkpoints });
    const { journal } = opened();
    expect(journal.thread(one.key)).toMatchObject({ seq: 1 });
    expect(journal.run(one.key, id(1))).toMatchObject({ order: 1 });
    const checkpoint = journal.checkpoint(one.key, "", id(1));
    if (checkpoint === undefined || checkpoint instanceof Promise) throw new Error("not at once");
    expect(journal.values(one.key, checkpoint)).toEqual({ x: 1, list: [1] });
    expect(journal.writes(one.key, "", id(1))).toEqual([]);
  });

  test.runIf(supports.reopen)("everything is there after the next open", async () => {
    const one = writer();
    const run = aRun(one.key, 1);
    await one.append({ thread: { metadata: { a: [1, "é"] } } });
    await one.start(run, {
      checkpoints: [
        aCheckpoint(1, null, { x: set({ y: 1 }), z: { kind: "append", keep: 0, items: [1, 2] } }),
      ],
      writes: [someWrites(1, 5)],
    });
    await opened().reopen();
    const { journal, catalog } = opened();
    expect(await journal.thread(one.key)).toEqual(one.record);
    expect(await journal.run(one.key, run.run_id)).toEqual(run);
    expect(await all(journal.unsettled())).toEqual([one.key]);
    expect(await catalog.threads("_", { limit: 10 })).toEqual([one.key]);
    const found = await journal.checkpoint(one.key, "", id(1));
    expect(found && (await journal.values(one.key, found))).toEqual({ x: { y: 1 }, z: [1, 2] });
    expect(await journal.writes(one.key, "", id(1))).toEqual([someWrites(1, 5)]);
    await one.settle(run, {
      checkpoints: [aCheckpoint(2, 1, { z: { kind: "append", keep: 2, items: [3] } })],
    });
    const next = await journal.checkpoint(one.key, "", id(2));
    expect(next && (await journal.values(one.key, next))).toEqual({ x: { y: 1 }, z: [1, 2, 3] });
    expect(await all(journal.verify())).toEqual([]);
  });
}
