import { expect, test } from "vitest";
import { createRunLogRegistry } from "../../src/stream/run-log-registry.ts";
import type { Reader } from "../../src/stream/run-reader.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { aCheckpoint, add, aRun, someEvents, threadKey, Writer } from "../storage/samples.ts";
import { deps } from "../storage/support.ts";

/** Chunks of the run: more than a reader reads at a time. */
const CHUNKS = 12;

/** A thread with a run that has ended, a reader of the run, and the events that it has read. */
async function reading() {
  const { journal } = await openStorage({ kind: "memory" }, deps);
  const one = new Writer(() => journal, threadKey(1));
  const run = aRun(one.key, 1);
  await one.append({ checkpoints: [aCheckpoint(1, null, { l: add(0, "a") })] });
  await one.start(run);
  for (let i = 0; i < CHUNKS - 1; i++) await one.append({ events: someEvents(run.run_id, i, 1) });
  const done = { ...run, status: "success" as const, next_event: CHUNKS };
  await one.settle(done, { events: someEvents(run.run_id, CHUNKS - 1, 1) });
  const runLogs = createRunLogRegistry({ journal, scheduler: deps.scheduler, logger: deps.logger });
  return { journal, one, run: done, runLogs };
}

/** Reads to the end. */
async function end(reader: Reader) {
  for (;;) {
    const got = await reader.next();
    if (typeof got === "string") return got;
  }
}

test("a reader that is behind learns that the thread was deleted", async () => {
  const { journal, one, run, runLogs } = await reading();
  const reader = runLogs.follow(one.key, run, { after: -1 });
  await reader.next();
  reader.rest();
  await journal.remove(one.key, one.record);
  expect(await end(reader)).toBe("thread_deleted");
  reader.close();
});

test("a reader that is behind learns that the run was deleted", async () => {
  const { one, run, runLogs } = await reading();
  const reader = runLogs.follow(one.key, run, { after: -1 });
  await reader.next();
  reader.rest();
  await one.append({ forget: [run.run_id] });
  expect(await end(reader)).toBe("run_deleted");
  reader.close();
});

test("a reader that has all events ends as usual, although the thread is deleted then", async () => {
  const { journal, one, run, runLogs } = await reading();
  const reader = runLogs.follow(one.key, run, { after: CHUNKS - 1 });
  await journal.remove(one.key, one.record);
  expect(await end(reader)).toBe("end");
  reader.close();
});

test("the readers of a run whose thread could not be deleted end as usual", async () => {
  const { one, runLogs } = await reading();
  const next = aRun(one.key, 2);
  const sink = runLogs.open(one.key, next, 1, 0);
  const reader = runLogs.follow(one.key, next, { after: -1 });
  const tell = runLogs.removing(one.key, [next.run_id]);
  sink.close();
  expect(await reader.next()).toBe("wait");
  const ready = new Promise<void>((resolve) => reader.onReady(resolve));
  tell(false);
  await ready;
  expect(await reader.next()).toBe("end");
  reader.close();
});
