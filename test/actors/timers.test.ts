import { describe, expect, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import { loadMachine } from "../../src/machines/exported-machine.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { threadStatusOf, type ThreadKey } from "../../src/model/thread.ts";
import { nextTimer } from "../../src/model/machine-timer.ts";
import type { ScanRange } from "../../src/ports/key-value-store.ts";
import { GatedKeyValueStore } from "../storage/gated-key-value-store.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

const HOUR = 3_600_000;

/** Counts in `rings` how often it rang, an hour after it was set. */
function bell(work: (given: { readonly signal: AbortSignal }) => Promise<void> = async () => undefined) {
  const machine = setup({
    types: { context: {} as { rings: number } },
    actors: { work: fromPromise(work) },
    actions: { ring: assign({ rings: ({ context }) => context.rings + 1 }) },
  }).createMachine({
    id: "bell",
    context: { rings: 0 },
    initial: "set",
    states: {
      set: {
        after: { [HOUR]: { target: "rung", actions: "ring" } },
        on: {
          COUNT: { actions: "ring" },
          WORK: ".working",
          STOP: "stopped",
          SNOOZE: { target: "set", reenter: true },
        },
        initial: "still",
        states: {
          still: {},
          working: { invoke: { src: "work", onDone: "still" } },
        },
      },
      rung: { on: { SET: "set", STOP: "stopped" } },
      stopped: { on: { SET: "set" } },
    },
  });
  return loadMachine(machine as never, [import.meta.filename]);
}

/** Work that goes on until the test ends it. */
function held() {
  const ends: (() => void)[] = [];
  const work = () => new Promise<void>((resolve) => void ends.push(resolve));
  return { work, end: () => ends.splice(0).forEach((end) => end()) };
}

async function begun(graph = bell(), options: Parameters<typeof Server.start>[1] = {}) {
  const server = await Server.start(graph, options);
  const key = await server.thread();
  const run = await server.admit(key, { input: {} });
  await server.do(server.system.settled(key, run.run_id));
  return { server, key, run, ...at(server, key) };
}

/** What a test does with one thread. */
function at(server: Server, key: ThreadKey) {
  const event = (type: string, strategy: "enqueue" | "interrupt" | "rollback" = "enqueue") =>
    server.do(
      server.system.admit(key, {
        ...draftOf(server.newId(), { input: null, event: true, command: { resume: { type } } }, strategy),
      }),
    );
  return {
    event,
    enqueue: () => server.do(server.system.admit(key, draftOf(server.newId(), { input: null }, "enqueue"))),
    send: async (type: string) => server.do(server.system.settled(key, (await event(type)).run_id)),
    pass: async (ms: number) => {
      await server.scheduler.advance(ms);
      await server.scheduler.settle();
    },
    values: () => server.values(key),
    runs: async () => (await server.storage.journal.runs(key, { limit: 99, offset: 0 })).toReversed(),
    timers: async () => (await server.storage.journal.timers(10)).length,
    thread: () => server.storage.journal.thread(key),
  };
}

describe("a timer of a machine", () => {
  test("is admitted once it is due, in the append that takes it from the index", async () => {
    const kv = new GatedKeyValueStore();
    const { pass, runs, timers, thread } = await begun(bell(), { kv });
    expect(await timers()).toBe(1);
    await pass(HOUR - 1);
    expect(await runs()).toHaveLength(1);
    const before = kv.batches.length;
    await pass(1);
    const admitted = kv.batches
      .slice(before)
      .filter(({ ops }) => ops.some(({ key: at_, value }) => at_.startsWith("!timer/") && value === null));
    expect(admitted).toHaveLength(1);
    const [, run] = await runs();
    expect(admitted[0]?.ops.some(({ key: at_ }) => at_.endsWith(`/r/${run?.run_id}`))).toBe(true);
    expect(run).toMatchObject({
      status: "success",
      kwargs: { timer: { id: "1:xstate.after.3600000.bell.set" } },
    });
    expect([await timers(), (await thread())?.timers]).toEqual([0, null]);
  });

  test.each(["interrupt", "rollback"] as const)(
    "stays when a run with %s supersedes all others, at rest",
    async (strategy) => {
      const { server, key, event, pass, values, timers } = await begun();
      const late = { ...draftOf(server.newId(), { input: {} }), delay: HOUR / 2 };
      await server.do(server.system.admit(key, late));
      const run = await event("WORK", strategy);
      await server.do(server.system.settled(key, run.run_id));
      expect([await server.storage.journal.delayedRuns(9), await timers()]).toEqual([[], 1]);
      await pass(HOUR);
      expect(await values()).toMatchObject({ __state__: "rung", rings: 1 });
    },
  );

  test.each(["interrupt", "rollback"] as const)(
    "comes again when a run with %s withdraws the one that was to take its event",
    async (strategy) => {
      const { work, end } = held();
      const { event, enqueue, pass, values, runs, thread } = await begun(bell(work));
      await event("WORK");
      // The timer waits behind a run that is no event.
      await enqueue();
      await pass(HOUR);
      expect((await thread())?.queue).toHaveLength(2);
      const [, , , taking] = await runs();
      // Of no interest to the machine by then: it fails, and the question stays.
      await event("SET", strategy);
      await pass(1_000);
      expect(await runs()).not.toContainEqual(
        expect.objectContaining({ run_id: taking?.run_id, status: "success" }),
      );
      end();
      await pass(1_000);
      expect((await thread())?.timers?.[0]?.run).not.toBe(taking?.run_id);
      expect(await values()).toMatchObject(strategy === "rollback" ? { rings: 1 } : {});
    },
  );

  test("comes again when the run that took it is deleted", async () => {
    const { server, key, pass, runs, values } = await begun();
    await pass(HOUR);
    const [, first] = await runs();
    await server.do(server.system.forget(key, first?.run_id ?? ""));
    await pass(1);
    const [, second] = await runs();
    expect(second?.run_id).not.toBe(first?.run_id);
    expect(await values()).toMatchObject({ rings: 1 });
    expect(await runs()).toHaveLength(2);
  });

  test("is gone with the run that was to take it, when that is cancelled", async () => {
    const { work, end } = held();
    const { server, key, event, enqueue, pass, runs, values, timers } = await begun(bell(work));
    await event("WORK");
    await enqueue();
    await pass(HOUR);
    const [, , , taking] = await runs();
    await server.do(server.system.cancel(key, taking?.run_id ?? "", "interrupt"));
    end();
    await pass(HOUR);
    expect([await values(), await timers()]).toMatchObject([{ __state__: { set: "still" }, rings: 0 }, 0]);
    expect(await runs()).toHaveLength(4);
  });

  test("waits while the thread rests in a run that was cancelled, and does not while it waits for an event", async () => {
    const { work, end } = held();
    const { server, key, event, pass, runs, values, timers } = await begun(bell(work));
    const working = await event("WORK");
    await server.do(server.system.cancel(key, working.run_id, "interrupt"));
    await pass(2 * HOUR);
    expect([await timers(), (await runs()).length]).toEqual([0, 2]);
    await server.admit(key, { input: null });
    await pass(1);
    end();
    await pass(1);
    expect(await values()).toMatchObject({ __state__: "rung", rings: 1 });
  });

  test(
    "with the run that takes it survives a crash at every write: it rings once",
    { timeout: 60_000 },
    async () => {
      const kv = new GatedKeyValueStore();
      const { key, send, pass, values } = await begun(bell(), { kv });
      await send("SNOOZE");
      await pass(HOUR);
      await send("SET");
      await pass(HOUR);
      expect(await values()).toMatchObject({ __state__: "rung", rings: 2 });
      const { batches } = kv;
      const found = new Set<string>();
      for (let count = 1; count <= batches.length; count++) {
        const left = new MemoryKeyValueStore();
        await left.open();
        for (const { ops } of batches.slice(0, count)) await left.batch(ops, { sync: false });
        const again = await Server.start(bell(), { kv: left, seed: count + 1 });
        const thread = await again.storage.journal.thread(key);
        if (thread === undefined) continue;
        await again.scheduler.advance(2 * HOUR);
        await again.scheduler.settle();
        const { __state__, rings = "none" } = await again.values(key);
        const settled = await again.storage.journal.thread(key);
        const isLeft =
          settled === undefined || threadStatusOf(settled) === "busy" || nextTimer(settled) !== null;
        found.add(`${JSON.stringify(__state__)} ${String(rings)}${isLeft ? ", not at rest" : ""}`);
        const damage = [];
        for await (const one of again.storage.journal.verify()) damage.push(one);
        expect(damage).toEqual([]);
      }
      // Before the first run was stored there is nothing.
      found.delete("undefined none");
      expect([...found].sort()).toEqual(['"rung" 1', '"rung" 2']);
    },
  );

  test("that waits costs a restart nothing, however many there are; those that are due fire", async () => {
    const waiting = async (count: number) => {
      const kv = new CountingKeyValueStore();
      const server = await Server.start(bell(), { kv });
      const due = await server.thread();
      await server.admit(due, { input: {} });
      await server.scheduler.advance(HOUR / 2);
      for (let made = 0; made < count; made++) await server.admit(await server.thread(), { input: {} });
      await server.scheduler.settle();
      kv.reads = 0;
      const again = await Server.start(bell(), { kv, seed: 2, at: server.clock.now() + HOUR / 2 });
      await again.scheduler.settle();
      const { reads } = kv;
      expect(await again.values(due)).toMatchObject({ rings: 1 });
      expect(await again.storage.journal.timers(999)).toHaveLength(count);
      expect(again.system.counts.live).toBeLessThan(3);
      return reads;
    };
    const few = await waiting(80);
    expect(few).toBeLessThan(400);
    expect(await waiting(160)).toBe(few);
  });
});

test(
  "an event that the run in progress takes survives a crash at every write: it is taken once, and its run ends",
  { timeout: 60_000 },
  async () => {
    const kv = new GatedKeyValueStore();
    const { work } = held();
    const { event, key, pass, values } = await begun(bell(work), { kv });
    const working = await event("WORK");
    await pass(1);
    const [first, second] = [await event("COUNT"), await event("COUNT")];
    await pass(1);
    expect(await values()).toMatchObject({ __state__: { set: "working" }, rings: 2 });
    const { batches } = kv;
    const found = new Set<string>();
    for (let count = 1; count <= batches.length; count++) {
      const left = new MemoryKeyValueStore();
      await left.open();
      for (const { ops } of batches.slice(0, count)) await left.batch(ops, { sync: false });
      const again = await Server.start(bell(held().work), { kv: left, seed: count + 1 });
      await again.scheduler.settle();
      const runs = await Promise.all(
        [working, first, second].map(({ run_id }) => again.storage.journal.run(key, run_id)),
      );
      const acknowledged = runs.slice(1).filter((run) => run !== undefined);
      const ended = acknowledged.filter((run) => run.status === "success");
      if (runs[0] === undefined) continue;
      const { rings } = await again.values(key);
      found.add(`${acknowledged.length} acknowledged, ${ended.length} ended, ${String(rings)} counted`);
      const damage = [];
      for await (const one of again.storage.journal.verify()) damage.push(one);
      expect(damage).toEqual([]);
    }
    expect([...found].sort()).toEqual([0, 1, 2].map((n) => `${n} acknowledged, ${n} ended, ${n} counted`));
  },
);

/** Counts the values and keys that are read. */
class CountingKeyValueStore extends GatedKeyValueStore {
  reads = 0;

  override get(key: string) {
    this.reads++;
    return super.get(key);
  }

  override async *entries(range: ScanRange) {
    for await (const entry of super.entries(range)) {
      this.reads++;
      yield entry;
    }
  }

  override async *keys(range: ScanRange) {
    for await (const keys of super.keys(range)) {
      this.reads += keys.length;
      yield keys;
    }
  }
}
