import { describe, expect, test } from "vitest";
import { DueQueue } from "../../actors/due-queue.ts";
import { threadNotFound } from "../../src/model/errors.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedScheduler } from "../simulation/scheduler.ts";

const DELETED = { key: { tenant: "default", thread: "t1" }, id: "a" };
const OTHER = { key: { tenant: "default", thread: "t2" }, id: "b" };

/** A queue of one page. The entry of the deleted thread is listed until `stored` milliseconds have passed. */
function queue(stored: number) {
  const clock = new SimulatedClock();
  const scheduler = new SimulatedScheduler(clock);
  const errors: string[] = [];
  const started: string[] = [];
  const since = clock.mono();
  const due = clock.now();
  const logger = { ...silentLogger, error: (line: string) => void errors.push(line) };
  const source = {
    name: "timer",
    read: async () => [
      ...(clock.mono() - since < stored ? [{ ...DELETED, due }] : []),
      ...(started.length === 0 ? [{ ...OTHER, due }] : []),
    ],
    start: async ({ thread }: { readonly thread: string }, { id }: { readonly id: string }) => {
      if (thread === DELETED.key.thread) throw threadNotFound(thread);
      started.push(id);
      return true;
    },
  };
  const dueQueue = new DueQueue(
    { journal: { whenWritable: () => undefined }, clock, scheduler, logger },
    source,
  );
  return { dueQueue, scheduler, errors, started };
}

describe("an entry of a thread that is being deleted as its time comes", () => {
  test.each([
    ["is no error while the deletion is stored", 50, []],
    ["is one when it stays listed", Number.POSITIVE_INFINITY, ["a timer cannot be started"]],
  ])("%s", async (_, stored, expected) => {
    const { dueQueue, scheduler, errors, started } = queue(stored);
    void dueQueue.startDue();
    await scheduler.advance(2_000);
    expect(errors.slice(0, 1)).toEqual(expected);
    expect(started).toEqual(["b"]);
    dueQueue.stop();
  });
});

/** A queue whose entries start when the test says so, and are listed until then. */
function slowQueue(entries: readonly { readonly tenant: string; readonly id: string }[]) {
  const clock = new SimulatedClock();
  const scheduler = new SimulatedScheduler(clock);
  const due = clock.now();
  const listed = new Map(
    entries.map(({ tenant, id }) => [id, { key: { tenant, thread: `thread of ${id}` }, id, due }]),
  );
  const starting = new Map<string, () => void>();
  const started: string[] = [];
  const source = {
    name: "timer",
    read: async (limit: number) => [...listed.values()].slice(0, limit),
    start: async (_: unknown, { id }: { readonly id: string }) => {
      started.push(id);
      await new Promise<void>((resolve) => void starting.set(id, resolve));
      return listed.delete(id);
    },
  };
  const dueQueue = new DueQueue(
    { journal: { whenWritable: () => undefined }, clock, scheduler, logger: silentLogger },
    source,
  );
  const end = async (id: string) => {
    starting.get(id)?.();
    starting.delete(id);
    await scheduler.advance(0);
    await scheduler.settle();
  };
  return { dueQueue, scheduler, started, starting, listed, end };
}

const many = (tenant: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({ tenant, id: `${tenant}-${i}` }));

describe("entries that take long to start", () => {
  test("keep no other waiting, and start once", async () => {
    const { dueQueue, scheduler, started, starting, listed, end } = slowQueue(many("a", 100));
    await dueQueue.startDue();
    while (listed.size > 1) {
      const [, next] = starting.keys();
      await end(next as string);
    }
    await scheduler.advance(2_000);
    expect(started.toSorted()).toEqual(
      many("a", 100)
        .map(({ id }) => id)
        .toSorted(),
    );
    expect([...listed.keys()]).toEqual(["a-0"]);
    dueQueue.stop();
  });

  test("of one tenant keep no other tenant's waiting", async () => {
    const { dueQueue, started, starting } = slowQueue([...many("a", 900), ...many("b", 2)]);
    await dueQueue.startDue();
    expect(started.filter((id) => id.startsWith("b"))).toEqual(["b-0", "b-1"]);
    expect(starting.size).toBeLessThan(64);
    dueQueue.stop();
  });
});

test("a read that fails because the storage is closed at a stop is not logged", async () => {
  const clock = new SimulatedClock();
  const scheduler = new SimulatedScheduler(clock);
  const warned: string[] = [];
  const logger = { ...silentLogger, warn: (line: string) => void warned.push(line) };
  const closed: ((cause: Error) => void)[] = [];
  const source = {
    name: "timer",
    read: () => new Promise<never>((_, reject) => void closed.push(reject)),
    start: async () => true,
  };
  const dueQueue = new DueQueue(
    { journal: { whenWritable: () => undefined }, clock, scheduler, logger },
    source,
  );
  const looked = dueQueue.startDue();
  await scheduler.settle();
  dueQueue.stop();
  closed[0]?.(new Error("closed"));
  await looked;
  expect([closed.length, warned]).toEqual([1, []]);
});
