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
