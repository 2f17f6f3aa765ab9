import { expect, test } from "vitest";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { aCheckpoint, aRun, id, someEvents, threadKey, Writer } from "./samples.ts";
import { deps, turns } from "./support.ts";

/** A store in which each read takes 20 ms, as in LevelDB where a large value is in the same block. */
class SlowKeyValueStore extends MemoryKeyValueStore {
  now = 0;
  ms = 0;

  override get(key: string): Buffer | undefined {
    this.now += this.ms;
    return super.get(key);
  }
}

test("events that take long to read are read over several turns, and once for all", async () => {
  const store = new SlowKeyValueStore();
  const clock = { now: () => 0, mono: () => store.now };
  const budget = new TimeBudget(clock, deps.scheduler);
  const storage = await openStorage({ kind: "key-value", store }, { ...deps, clock, budget });
  const one = new Writer(() => storage.journal, threadKey(1));
  await one.append();
  await one.start(aRun(one.key, 1));
  const { journal } = storage;
  const chunks = Array.from({ length: 40 }, (_, n) => someEvents(id(1), 2 * n, 2));
  for (const chunk of chunks) await journal.publish(one.key, 1, chunk);
  expect(journal.events(one.key, id(1), -1, 50)).toEqual(chunks);

  store.ms = 20;
  const first = journal.events(one.key, id(1), -1, 50);
  // Read at once, before anything can be deleted.
  const before = store.now;
  expect(first).toBeInstanceOf(Promise);
  expect(await first).toEqual(chunks.slice(0, 16));
  expect(await journal.events(one.key, id(1), -1, 16)).toEqual(chunks.slice(0, 16));
  expect(store.now).toBe(before);
  expect(await journal.events(one.key, id(1), 31, 50)).toEqual(chunks.slice(16, 32));
  await storage.close();
});

test("a large value is read as one that takes long, also when it was stored before the start", async () => {
  const asked: (readonly [key: string, isSlow: boolean])[] = [];
  class NotingKeyValueStore extends MemoryKeyValueStore {
    override get(key: string, isSlow = false): Buffer | undefined {
      if (key.includes("/b/")) asked.push([key, isSlow]);
      return super.get(key);
    }
  }
  const store = new NotingKeyValueStore();
  let storage = await openStorage({ kind: "key-value", store }, deps);
  const one = new Writer(() => storage.journal, threadKey(1));
  const text = "x".repeat(300_000);
  const values = { large: text, less: "y".repeat(1_000) };
  const changes = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { kind: "set", value }] as const),
  );
  await one.append({ checkpoints: [aCheckpoint(1, null, changes)] });
  const read = async () => {
    asked.length = 0;
    const checkpoint = await storage.journal.checkpoint(one.key, "", id(1));
    if (checkpoint === undefined) throw new Error("there is no checkpoint");
    expect(await storage.journal.values(one.key, checkpoint)).toEqual(values);
    return asked.map(([, isSlow]) => isSlow);
  };
  expect(await read()).toEqual([true, false]);
  await storage.close();
  storage = await openStorage({ kind: "key-value", store }, deps);
  // The first read shows that it is large; it is deferred, and read in a turn of its own.
  expect(await read()).toEqual([false, true, false]);
  expect(await read()).toEqual([true, false]);
  await storage.close();
});

test("events that were read are given also if their thread is deleted before the next turn", async () => {
  const store = new SlowKeyValueStore();
  const clock = { now: () => 0, mono: () => store.now };
  const held: (() => void)[] = [];
  const soon = (task: () => void): void => void held.push(task);
  const after = (_: number, task: () => void) => {
    soon(task);
    return () => undefined;
  };
  const budget = new TimeBudget(clock, { soon, after });
  const storage = await openStorage({ kind: "key-value", store }, { ...deps, clock, budget });
  const one = new Writer(() => storage.journal, threadKey(1));
  await one.append();
  await one.start(aRun(one.key, 1));
  const { journal } = storage;
  const chunk = someEvents(id(1), 0, 2);
  await journal.publish(one.key, 1, chunk);
  store.ms = 20;
  const read = journal.events(one.key, id(1), -1, 4);
  store.ms = 0;
  const removed = journal.remove(one.key, one.record);
  // The deletion is stored; its sweep and the reader both wait for the next turn.
  await turns(20);
  let isDone = false;
  const done = Promise.all([read, removed]).finally(() => (isDone = true));
  while (!isDone) {
    for (const task of held.splice(0)) task();
    // oxlint-disable-next-line no-await-in-loop -- the turns run in sequence
    await turns(1);
  }
  expect((await done)[0]).toEqual([chunk]);
  await storage.close();
});
