import { describe, expect, test } from "vitest";
import { DueQueue } from "../../actors/due-queue.ts";
import { graph, list, value } from "../../src/index.ts";
import { silentLogger } from "../../src/platform/log.ts";
import type { MultitaskStrategy, RunRecord } from "../../src/model/run.ts";
import type { KeyValueEntry, ScanRange } from "../../src/ports/key-value-store.ts";
import type { Scheduler } from "../../src/ports/scheduler.ts";
import { threadStatusOf, type ThreadKey } from "../../src/model/thread.ts";
import { DELAYED_RANGE, dueRunKey } from "../../src/storage/keys.ts";
import { PRESENT_MARK } from "../../src/storage/stored-records.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { GatedKeyValueStore } from "../storage/gated-key-value-store.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

const HOUR = 3_600_000;

const named = graph({
  state: { name: value(""), log: list<string>() },
  nodes: { work: async ({ name }) => ({ log: [name] }) },
  edges: { start: "work" },
});

/** A node that ends on request. */
function held() {
  const going: (() => void)[] = [];
  const waits = graph({
    state: { name: value(""), log: list<string>() },
    nodes: {
      work: async ({ name }, ctx) => {
        await new Promise<void>((resolve, reject) => {
          going.push(resolve);
          ctx.signal?.addEventListener("abort", () => reject(ctx.signal.reason as Error));
        });
        return { log: [name] };
      },
    },
    edges: { start: "work" },
  });
  return { waits, go: () => going.splice(0).forEach((one) => one()), going };
}

/** A store that reads what is due, and hands it out when the test says so. */
class SlowDueReads extends GatedKeyValueStore {
  #isSlow = false;
  #handOut: (() => void) | undefined;

  holdDueReads(): void {
    this.#isSlow = true;
  }

  handOut(): void {
    this.#isSlow = false;
    this.#handOut?.();
  }

  override async *entries(range: ScanRange): AsyncGenerator<KeyValueEntry> {
    const isHeld = this.#isSlow && range.gte === DELAYED_RANGE.gte;
    const entries: KeyValueEntry[] = [];
    for await (const entry of super.entries(range)) entries.push(entry);
    if (isHeld) await new Promise<void>((resolve) => (this.#handOut = resolve));
    yield* entries;
  }
}

function later(
  server: Server,
  key: ThreadKey,
  name: string,
  delay: number,
  strategy?: MultitaskStrategy,
): Promise<RunRecord> {
  const draft = draftOf(server.newId(), { input: { name } }, strategy);
  return server.do(server.system.admit(key, { ...draft, delay }));
}

const now = (server: Server, key: ThreadKey, name: string, strategy?: MultitaskStrategy) =>
  server.admit(key, { input: { name }, ...(strategy && { strategy }) });

async function statusOf(server: Server, key: ThreadKey) {
  const thread = await server.storage.journal.thread(key);
  return thread && threadStatusOf(thread);
}

describe("a run with a delay", () => {
  test("is pending until its time, then runs; the thread rests meanwhile, and takes other runs", async () => {
    const server = await Server.start(named);
    const key = await server.thread();
    const run = await later(server, key, "late", HOUR);
    expect(await server.record(key, run)).toMatchObject({ status: "pending", started_at: null });
    expect(run.due).toBe(run.created_at + HOUR);
    expect(await statusOf(server, key)).toBe("idle");
    const first = await now(server, key, "first");
    await server.do(server.system.settled(key, first.run_id));
    await server.scheduler.advance(HOUR - 1_000);
    expect(await server.record(key, run)).toMatchObject({ status: "pending" });
    await server.scheduler.advance(1_000);
    await server.scheduler.settle();
    expect(await server.record(key, run)).toMatchObject({ status: "success" });
    expect(await server.values(key)).toMatchObject({ log: ["first", "late"] });
    expect(await server.storage.journal.delayedRuns(10)).toEqual([]);
  });

  test("its thread leaves memory while it waits, and wakes for it; who waits for its end is told", async () => {
    const server = await Server.start(named, { limits: { idle: 1_000 } });
    const key = await server.thread();
    const run = await later(server, key, "late", HOUR);
    const end = server.system.ended(key, run.run_id);
    await server.scheduler.advance(10_000);
    expect(server.system.counts.live).toBe(0);
    await server.scheduler.advance(HOUR);
    await server.scheduler.settle();
    expect((await server.do(end)).run).toMatchObject({ status: "success" });
  });

  test("its input is not held in memory: its thread leaves at once where nothing else goes on there", async () => {
    const server = await Server.start(named);
    const key = await server.thread();
    const run = await later(server, key, "late", HOUR);
    expect(server.system.counts.live).toBe(0);
    await server.scheduler.advance(HOUR);
    await server.scheduler.settle();
    expect(await server.record(key, run)).toMatchObject({ status: "success" });
  });

  test("runs of many threads start by their times, not by their admissions", async () => {
    const server = await Server.start(named);
    const keys = [await server.thread(), await server.thread(), await server.thread()];
    const runs: [ThreadKey, RunRecord][] = [];
    for (const [i, key] of keys.entries()) runs.push([key, await later(server, key, "x", (3 - i) * 1_000)]);
    for (const open of [2, 1, 0]) {
      await server.scheduler.advance(1_000);
      await server.scheduler.settle();
      const statuses = await Promise.all(
        runs.map(async ([key, run]) => (await server.record(key, run))?.status),
      );
      expect(statuses.filter((status) => status === "pending")).toHaveLength(open);
    }
  });

  test("comes behind what is at work when its time comes", async () => {
    const { waits, go } = held();
    const server = await Server.start(waits);
    const key = await server.thread();
    const late = await later(server, key, "late", 1_000);
    await now(server, key, "a");
    await now(server, key, "b", "enqueue");
    await server.scheduler.advance(2_000);
    await server.scheduler.settle();
    expect((await server.storage.journal.thread(key))?.queue.at(-1)).toBe(late.run_id);
    const last = await now(server, key, "c", "enqueue");
    for (let i = 0; i < 4; i++) {
      go();
      await server.scheduler.settle();
    }
    expect(await server.record(key, last)).toMatchObject({ status: "success" });
    expect(await server.values(key)).toMatchObject({ log: ["a", "b", "late", "c"] });
  });

  test("a stop and a start later it has its time still, and one that was due meanwhile starts at once", async () => {
    const kv = new MemoryKeyValueStore();
    const first = await Server.start(named, { kv });
    const key = await first.thread();
    const soon = await later(first, key, "soon", 1_000);
    const far = await later(first, key, "far", 10 * HOUR);
    first.scheduler.kill();
    const second = await Server.start(named, { kv, seed: 2, at: soon.created_at + HOUR });
    await second.scheduler.settle();
    expect(await second.record(key, soon)).toMatchObject({ status: "success" });
    expect(await second.record(key, far)).toMatchObject({ status: "pending" });
    await second.scheduler.advance(9 * HOUR);
    await second.scheduler.settle();
    expect(await second.record(key, far)).toMatchObject({ status: "success" });
    expect(await second.values(key)).toMatchObject({ log: ["soon", "far"] });
  });

  test.each([
    ["interrupt", { status: "interrupted", cancel_reason: "no need" }],
    ["rollback", undefined],
  ] as const)("%s ends it before its time", async (action, left) => {
    const server = await Server.start(named);
    const key = await server.thread();
    const run = await later(server, key, "late", HOUR);
    const end = server.system.ended(key, run.run_id);
    await server.do(server.system.cancel(key, run.run_id, action, "no need"));
    expect((await server.do(end)).run).toEqual(
      left === undefined ? undefined : expect.objectContaining(left),
    );
    await server.scheduler.advance(2 * HOUR);
    expect(await server.values(key)).toEqual({});
    expect((await server.storage.journal.thread(key))?.delayed).toBeNull();
  });

  test("whose end is being stored as its time comes is not looked for again and again", async () => {
    const kv = new GatedKeyValueStore();
    const server = await Server.start(named, { kv });
    const key = await server.thread();
    const run = await later(server, key, "late", 1_000);
    kv.free = false;
    const cancelled = server.system.cancel(key, run.run_id, "interrupt");
    await server.scheduler.advance(2_000);
    kv.free = true;
    await kv.pass();
    await server.do(cancelled);
    await server.scheduler.advance(2_000);
    expect(await server.record(key, run)).toMatchObject({ status: "interrupted", started_at: null });
    expect(await server.values(key)).toEqual({});
  });

  test.each([0, 1, 2, 3, 4, 5, 6])(
    "is found also where its time comes as it is looked for, at read %i of the clock",
    async (at) => {
      const due = 100;
      let reads = -1;
      // The first read is the origin of the clock.
      const mono = () => (reads++ < 0 ? 0 : reads <= at ? due - 1 : due);
      const clock = { now: () => 0, mono };
      const pending: (() => void)[] = [];
      const scheduler: Scheduler = {
        soon: (task) => void pending.push(task),
        after: (_, task) => {
          pending.push(task);
          return () => void pending.splice(0, pending.length, ...pending.filter((one) => one !== task));
        },
      };
      const key = { tenant: "_", thread: "t" };
      let waits = [{ key, id: "r", due }];
      const delays = new DueQueue(
        {
          journal: { whenWritable: () => undefined },
          clock,
          scheduler,
          logger: silentLogger,
        },
        {
          name: "delayed run",
          read: async () => waits,
          start: async () => {
            waits = [];
            return true;
          },
        },
      );
      await delays.startDue();
      for (let turn = 0; turn < 10; turn++) {
        pending.shift()?.();
        await new Promise(setImmediate);
      }
      expect(waits).toEqual([]);
    },
  );

  test("that its thread does not know of is told of once, and keeps no other", async () => {
    const kv = new MemoryKeyValueStore();
    const warned: string[] = [];
    const server = await Server.start(named, { kv, warned });
    const key = await server.thread();
    const mark = dueRunKey(key, server.clock.now() + 500, server.newId());
    await kv.batch([{ key: mark, value: PRESENT_MARK }], { sync: false });
    const run = await later(server, key, "late", 1_000);
    server.clock.advance(500);
    await server.do(server.system.recover());
    await server.scheduler.advance(1_000);
    expect(warned).toEqual(["a delayed run cannot be started"]);
    expect(await server.record(key, run)).toMatchObject({ status: "success" });
  });

  test.each([
    ["interrupt", "interrupted"],
    ["rollback", undefined],
  ] as const)("a later run with %s supersedes it, at rest too", async (strategy, status) => {
    const server = await Server.start(named);
    const key = await server.thread();
    const late = await later(server, key, "late", HOUR);
    const run = await now(server, key, "now", strategy);
    await server.do(server.system.settled(key, run.run_id));
    expect((await server.record(key, late))?.status).toBe(status);
    expect(await server.storage.journal.delayedRuns(10)).toEqual([]);
  });

  test.each(["reject", "enqueue"] as const)("a later run with %s leaves it", async (strategy) => {
    const server = await Server.start(named);
    const key = await server.thread();
    const late = await later(server, key, "late", HOUR);
    const run = await now(server, key, "now", strategy);
    await server.do(server.system.settled(key, run.run_id));
    expect(await server.record(key, late)).toMatchObject({ status: "pending" });
  });

  test("what its own strategy ends ends when it is asked for: all that is in flight", async () => {
    const { waits } = held();
    const server = await Server.start(waits);
    const key = await server.thread();
    const a = await now(server, key, "a");
    const b = await now(server, key, "b", "enqueue");
    const c = await now(server, key, "c", "enqueue");
    const d = await later(server, key, "d", HOUR, "enqueue");
    const late = await later(server, key, "late", HOUR, "interrupt");
    await server.scheduler.settle();
    for (const run of [a, b, c, d]) expect((await server.record(key, run))?.status).toBe("interrupted");
    expect(await statusOf(server, key)).toBe("idle");
    expect(await server.record(key, late)).toMatchObject({ status: "pending" });
  });

  test("with a conflict it is refused like any other", async () => {
    const { waits } = held();
    const server = await Server.start(waits);
    const key = await server.thread();
    await now(server, key, "a");
    await expect(later(server, key, "late", HOUR)).rejects.toMatchObject({ code: "run.conflict" });
  });

  test("of a moment only it starts too, although it is not stored yet when its time has come", async () => {
    const server = await Server.start(named);
    const key = await server.thread();
    const runs = await Promise.all([0.01, 0.4, 1, 2].map((delay) => later(server, key, "x", delay)));
    await server.scheduler.advance(10);
    await server.scheduler.settle();
    for (const run of runs) expect(await server.record(key, run)).toMatchObject({ status: "success" });
  });

  test("of one thread a thousand may wait", async () => {
    const server = await Server.start(named);
    const key = await server.thread();
    const admitted = Array.from({ length: 1_000 }, (_, i) =>
      server.system.admit(key, { ...draftOf(server.newId(), { input: { name: "x" } }), delay: HOUR + i }),
    );
    await server.do(Promise.all(admitted));
    await expect(later(server, key, "x", HOUR)).rejects.toMatchObject({ code: "server.busy" });
    expect((await server.storage.journal.thread(key))?.delayed).toHaveLength(1_000);
  });

  test("without slots it waits in line, and the slot is its own once it comes", async () => {
    const { waits, go } = held();
    const server = await Server.start(waits, {
      limits: { concurrent: { all: 1, perTenant: Infinity, perGraph: {} } },
    });
    const [one, other] = [await server.thread(), await server.thread()];
    await now(server, one, "a");
    const late = await later(server, other, "late", 1_000);
    await server.scheduler.advance(2_000);
    expect(server.system.positionOf(other, late.run_id)).toBe(1);
    go();
    await server.scheduler.settle();
    go();
    await server.scheduler.settle();
    expect(await server.record(other, late)).toMatchObject({ status: "success" });
  });

  test("the clock on the wall may be put back or forward: it waits as long as it was told", async () => {
    const server = await Server.start(named);
    const key = await server.thread();
    const [a, b] = [await later(server, key, "a", HOUR), await later(server, key, "b", 3 * HOUR)];
    server.clock.jump(-10 * HOUR);
    await server.scheduler.advance(HOUR);
    await server.scheduler.settle();
    expect(await server.record(key, a)).toMatchObject({ status: "success" });
    server.clock.jump(100 * HOUR);
    await server.scheduler.advance(HOUR);
    await server.scheduler.settle();
    expect(await server.record(key, b)).toMatchObject({ status: "pending" });
    await server.scheduler.advance(HOUR);
    await server.scheduler.settle();
    expect(await server.record(key, b)).toMatchObject({ status: "success" });
  });

  test("whose thread is being deleted as its time comes leaves the next thread of that id alone", async () => {
    const store = new SlowDueReads();
    const warned: string[] = [];
    const server = await Server.start(named, { kv: store, warned });
    const key = await server.thread();
    await now(server, key, "first");
    await later(server, key, "late", HOUR);
    store.holdDueReads();
    await server.scheduler.advance(HOUR);
    store.free = false;
    const removed = server.system.threads.remove(key);
    await server.scheduler.settle();
    await store.pass(); // of the delayed run
    await server.scheduler.settle();
    await store.arrival(); // the thread's deletion
    store.handOut();
    await server.scheduler.settle();
    store.free = true;
    await store.pass();
    await server.do(removed);
    const draft = draftOf(server.newId(), { input: { name: "again" } });
    const run = await server.do(server.system.admit(key, { ...draft, create: {} }));
    await server.scheduler.settle();
    expect(await server.record(key, run)).toMatchObject({ status: "success" });
    expect(await server.values(key)).toMatchObject({ log: ["again"] });
    expect(warned).toEqual([]);
  });
});
