import { expect, test } from "vitest";
import { ThreadReloads } from "../../actors/thread-reloads.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { DEFAULT_TENANT } from "../../src/model/thread.ts";
import { Timers, turns } from "../storage/support.ts";

const outage = new ServiceError("storage.unavailable", "The storage is unavailable");
const keyOf = (thread: string) => ({ tenant: DEFAULT_TENANT, thread });

/** Reloads of threads; `wake` decides how their loads end. */
function open(wake: (reloads: ThreadReloads, thread: string) => void) {
  const timers = new Timers();
  const logged: unknown[] = [];
  const note = (message: string, fields?: object) =>
    void logged.push([message.split(" ", 4).join(" "), fields]);
  const logger = { debug: note, info: note, warn: note, error: note };
  const reloads: ThreadReloads = new ThreadReloads(
    {
      journal: { whenWritable: () => undefined },
      clock: { now: () => 0, mono: () => 0 },
      scheduler: timers,
      logger,
    },
    {
      isLive: () => false,
      isStopping: () => false,
      wake: async ({ thread }) => wake(reloads, thread),
    },
  );
  return { reloads, timers, logged };
}

test("a load that fails counts once, also where the thread is given up meanwhile", async () => {
  const { reloads, timers } = open((of, thread) => {
    of.threadFailed(keyOf(thread), outage, true);
    throw outage;
  });
  reloads.threadFailed(keyOf("a"), outage, true);
  for (let loads = 0; loads < 3; loads++) {
    await timers.fire();
    await turns();
  }
  expect(timers.pauses).toEqual([1_000, 2_000, 4_000, 8_000]);
});

test("the log counts threads, however often each has failed", async () => {
  let isStored = false;
  const { reloads, timers, logged } = open((_, thread) => {
    if (thread === "b" && !isStored) throw outage;
  });
  for (const thread of ["a", "b"]) reloads.threadFailed(keyOf(thread), outage, true);
  await timers.fire();
  await turns();
  // Loaded, and failed again before the other thread was loaded.
  reloads.threadFailed(keyOf("a"), outage, true);
  isStored = true;
  await timers.fire();
  await turns();
  expect(logged).toEqual([
    ["threads were given up", { threads: 2 }],
    ["threads are loaded again", { threads: 2 }],
  ]);
});
