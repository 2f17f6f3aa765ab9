import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

/** A graph whose `work` waits in each run until the test releases it. */
function gated() {
  const waiting = new Map<string, () => void>();
  const ran: string[] = [];
  const wait = (name: string) => {
    ran.push(name);
    return new Promise<void>((resolve) => waiting.set(name, resolve));
  };
  const work = graph({
    state: { log: list<string>(), name: value("") },
    nodes: {
      work: async ({ name }) => {
        await wait(name);
        return { log: ["worked"] };
      },
    },
    edges: { start: "work" },
  });
  return { work, wait, waiting, ran, open: (name: string) => waiting.get(name)?.() };
}

/** A graph whose first node `one` waits like `work`: a stop pauses the run before `two`. */
function twoSteps() {
  const { wait, open, ran } = gated();
  const work = graph({
    state: { log: list<string>(), name: value("") },
    nodes: {
      one: async ({ name }) => {
        await wait(name);
        return { log: ["one"] };
      },
      two: () => ({ log: ["two"] }),
    },
    edges: { start: "one", one: "two" },
  });
  return { work, open, ran };
}

async function restart(before: Server, kv: MemoryKeyValueStore, work: unknown, warned: string[] = []) {
  await before.do(before.storage.close());
  return Server.start(work, { kv, seed: 2, warned });
}

describe("a stop in good order", () => {
  test("writes nothing about a run whose end is on its way to storage, and waits for that", async () => {
    const kv = new MemoryKeyValueStore();
    const { work, open } = gated();
    const warned: string[] = [];
    const before = await Server.start(work, { kv, warned });
    const key = await before.thread();
    const run = await before.admit(key, { input: { name: "a" } });
    await before.scheduler.settle();
    const drained = before.system.drain(8_000);
    // The last node ends while the server drains: within that call the run's end is planned, and its append is
    // submitted.
    open("a");
    await before.do(drained);
    expect(await before.record(key, run)).toMatchObject({ status: "success", parked: 0 });
    const after = await restart(before, kv, work, warned);
    expect(await after.record(key, run)).toMatchObject({ status: "success", attempt: 1 });
    expect(await after.storage.journal.thread(key)).toMatchObject({ active: null, queue: [] });
    expect((await after.do(after.system.settled(key, run.run_id)))?.status).toBe("success");
    expect(warned).toEqual([]);
  });

  test("gives each node its whole time, also after another run has come to its end", async () => {
    const kv = new MemoryKeyValueStore();
    const { work, open, ran } = gated();
    const before = await Server.start(work, { kv });
    const [one, two] = [await before.thread(), await before.thread()];
    const a = await before.admit(one, { input: { name: "a" } });
    const b = await before.admit(two, { input: { name: "b" } });
    await before.scheduler.settle();
    let isOver = false;
    const drained = before.system.drain(8_000).then(() => (isOver = true));
    open("a");
    await before.scheduler.settle();
    expect(isOver).toBe(false);
    await before.scheduler.advance(7_900);
    expect(isOver).toBe(false);
    open("b");
    await before.do(drained);
    expect((await before.record(one, a))?.status).toBe("success");
    expect((await before.record(two, b))?.status).toBe("success");
    const after = await restart(before, kv, work);
    expect(after.system.counts.live).toBe(0);
    // Neither node ran again.
    expect(ran).toEqual(["a", "b"]);
  });

  test("leaves what takes longer than promised to the next start", async () => {
    const kv = new MemoryKeyValueStore();
    const { work, waiting, open } = gated();
    const before = await Server.start(work, { kv });
    const key = await before.thread();
    const run = await before.admit(key, { input: { name: "a" } });
    await before.scheduler.settle();
    const drained = before.system.drain(8_000);
    await before.scheduler.advance(8_000);
    await before.do(drained);
    expect(await before.record(key, run)).toMatchObject({ status: "pending", attempt: 1, parked: 1 });
    // Nothing that it does from here on has an effect.
    open("a");
    await before.scheduler.settle();
    waiting.clear();
    const after = await restart(before, kv, work);
    await after.scheduler.settle();
    open("a");
    expect(await after.do(after.system.settled(key, run.run_id))).toMatchObject({
      status: "success",
      attempt: 2,
      parked: 1,
    });
  });

  test("waits for the nodes of a subgraph beside one that is held back", async () => {
    const kv = new MemoryKeyValueStore();
    const { wait, open, ran } = gated();
    const inner = (name: string, more: boolean) =>
      graph({
        state: { log: list<string>() },
        nodes: {
          one: async () => {
            await wait(`${name} one`);
            return { log: [`${name} one`] };
          },
          two: async () => {
            ran.push(`${name} two`);
            return { log: [`${name} two`] };
          },
        },
        edges: more ? { start: "one", one: "two" } : { start: "one" },
      });
    const outer = graph({
      state: { log: list<string>() },
      nodes: { left: inner("left", true), right: inner("right", false) },
      edges: { start: ["left", "right"] },
    });
    const before = await Server.start(outer, { kv });
    const key = await before.thread();
    const run = await before.admit(key);
    await before.scheduler.settle();
    let isOver = false;
    const drained = before.system.drain(8_000).then(() => (isOver = true));
    open("left one");
    await before.scheduler.settle();
    await before.scheduler.advance(5_000);
    expect(isOver).toBe(false);
    open("right one");
    await before.do(drained);
    const after = await restart(before, kv, outer);
    expect(await after.do(after.system.settled(key, run.run_id))).toMatchObject({
      status: "success",
      parked: 1,
    });
    expect(ran).toEqual(["left one", "right one", "left two"]);
  });

  test.each(["interrupt", "rollback"] as const)(
    "ends with the last node, even if a run queued behind a paused one is cancelled (%s) meanwhile",
    async (action) => {
      const kv = new MemoryKeyValueStore();
      const { work, open } = twoSteps();
      const before = await Server.start(work, { kv });
      const [first, second] = [await before.thread(), await before.thread()];
      const paused = await before.admit(first, { input: { name: "paused" } });
      const waiting = await before.admit(first, { input: { name: "waiting" }, strategy: "enqueue" });
      const last = await before.admit(first, { input: { name: "last" }, strategy: "enqueue" });
      await before.admit(second, { input: { name: "slow" } });
      await before.scheduler.settle();
      const drained = before.system.drain(8_000);
      open("paused");
      await before.scheduler.settle();
      const ended = before.system.settled(first, waiting.run_id);
      await before.do(before.system.cancel(first, waiting.run_id, action));
      const status = action === "interrupt" ? "interrupted" : undefined;
      expect((await before.do(ended))?.status).toBe(status);
      open("slow");
      // The clock does not advance, so the drain cannot be waiting for a timer.
      await before.do(drained);
      const after = await restart(before, kv, work);
      expect((await after.record(first, waiting))?.status).toBe(status);
      expect(await after.do(after.system.settled(first, paused.run_id))).toMatchObject({ status: "success" });
      await after.scheduler.settle();
      open("last");
      expect(await after.do(after.system.settled(first, last.run_id))).toMatchObject({ status: "success" });
    },
  );

  const nested = () => {
    const { work, open, ran } = twoSteps();
    const outer = graph({
      state: { log: list<string>(), name: value("") },
      nodes: { work },
      edges: { start: "work" },
    });
    return { work: outer, open, ran };
  };

  test.each([
    ["a run", "interrupt", twoSteps],
    ["a run", "rollback", twoSteps],
    ["a run in a subgraph", "interrupt", nested],
    ["a run in a subgraph", "rollback", nested],
  ] as const)("ends %s that is cancelled (%s) after it has paused", async (_, action, made) => {
    const kv = new MemoryKeyValueStore();
    const { work, open, ran } = made();
    const before = await Server.start(work, { kv });
    const [first, second] = [await before.thread(), await before.thread()];
    const paused = await before.admit(first, { input: { name: "paused" } });
    await before.admit(second, { input: { name: "slow" } });
    await before.scheduler.settle();
    const drained = before.system.drain(8_000);
    open("paused");
    await before.scheduler.settle();
    const ended = before.system.settled(first, paused.run_id);
    await before.do(before.system.cancel(first, paused.run_id, action));
    const status = action === "interrupt" ? "interrupted" : undefined;
    expect((await before.do(ended))?.status).toBe(status);
    open("slow");
    await before.do(drained);
    const after = await restart(before, kv, work);
    expect((await after.record(first, paused))?.status).toBe(status);
    expect(await after.values(first)).toEqual(
      action === "interrupt" && made === twoSteps ? { log: ["one"], name: "paused" } : expect.anything(),
    );
    expect(await after.storage.journal.thread(first)).toMatchObject({ active: null, rest: "idle" });
    expect(ran).toEqual(["paused", "slow"]);
  });

  test("does not end a run whose time limit passes while it is paused", async () => {
    const kv = new MemoryKeyValueStore();
    const { work, open } = twoSteps();
    const before = await Server.start(work, { kv });
    const [first, second] = [await before.thread(), await before.thread()];
    const paused = await before.admit(first, { input: { name: "paused" }, timeout_seconds: 2 });
    await before.admit(second, { input: { name: "slow" } });
    await before.scheduler.settle();
    const drained = before.system.drain(8_000);
    open("paused");
    await before.scheduler.advance(5_000);
    open("slow");
    await before.do(drained);
    expect(await before.record(first, paused)).toMatchObject({ status: "pending", parked: 1 });
    const after = await restart(before, kv, work);
    expect(await after.do(after.system.settled(first, paused.run_id))).toMatchObject({ status: "success" });
  });

  test("waits for a node that is to be tried again, as it waits for one that runs", async () => {
    const kv = new MemoryKeyValueStore();
    let tries = 0;
    const work = graph({
      state: { log: list<string>() },
      nodes: {
        work: {
          retry: { attempts: 3, initial: 1_000, jitter: false },
          run: async () => {
            if (++tries === 1) throw new Error("not yet");
            return { log: ["worked"] };
          },
        },
      },
      edges: { start: "work" },
    });
    const before = await Server.start(work, { kv });
    const key = await before.thread();
    const run = await before.admit(key);
    await before.scheduler.settle();
    expect(tries).toBe(1);
    const drained = before.system.drain(8_000);
    await before.scheduler.advance(2_500);
    await before.do(drained);
    expect((await before.record(key, run))?.status).toBe("success");
  });
});

describe("runs that are asked for at once", () => {
  const batch = (server: Server, names: readonly unknown[]) =>
    names.map((name) => {
      const key = { tenant: "_", thread: server.newId() };
      const draft = { ...draftOf(server.newId(), { input: { name } }), create: { metadata: {} } };
      return { key, draft };
    });
  const refused = (index: number) => new Error(`entry ${index}`);

  test("are admitted all, or none when the server stops", async () => {
    const { work, ran } = gated();
    const server = await Server.start(work);
    const all = batch(server, ["a", "b", "c"]);
    const admitted = server.system.admitAll(all, refused);
    // All runs are admitted before the stop, which waits for their nodes.
    const drained = server.system.drain(1_000);
    const over = Promise.allSettled([admitted]);
    await server.scheduler.settle();
    await server.scheduler.advance(1_000);
    await server.do(drained);
    const [result] = await over;
    for (const { key, draft } of all) {
      const record = await server.storage.journal.run(key, draft.run_id);
      expect(record === undefined).toBe(result?.status === "rejected");
    }
    expect(ran).toEqual(result?.status === "rejected" ? [] : ["a", "b", "c"]);
    const late = batch(server, ["d"]);
    await expect(server.do(server.system.admitAll(late, refused))).rejects.toMatchObject({
      code: "server.draining",
    });
  });

  test("are not admitted at all when one is refused, and no node of the others runs", async () => {
    const { work, ran } = gated();
    const concurrent = { all: 2, perTenant: Infinity, perGraph: {} };
    const server = await Server.start(work, { limits: { maxQueued: 0, concurrent } });
    const all = batch(server, ["a", "b", "c"]);
    await expect(server.do(server.system.admitAll(all, refused))).rejects.toThrow("entry 2");
    await server.scheduler.settle();
    expect(ran).toEqual([]);
    for (const { key, draft } of all) {
      expect(await server.storage.journal.run(key, draft.run_id)).toBeUndefined();
    }
    const [next] = batch(server, ["d"]);
    if (next === undefined) throw new Error("there is one");
    await server.do(server.system.admitAll([next], refused));
    await server.scheduler.settle();
    expect(ran).toEqual(["d"]);
  });
});
