import { expect, test } from "vitest";
import type { Journal } from "../../src/ports/journal.ts";
import { createRunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { RenderDataLoader, SharedCheckpointCache } from "../../src/stream/render-data-loader.ts";
import { ResponseMemoryBudget } from "../../src/stream/response-memory-budget.ts";
import { listSpanPrefix, threadPrefix } from "../../src/storage/keys.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { encodeOrdinal } from "../../src/storage/sortable-numbers.ts";
import { HeldKeyValueStore } from "../storage/held-key-value-store.ts";
import { aCheckpoint, add, aRun, id, someEvents, threadKey, Writer } from "../storage/samples.ts";
import { deps } from "../storage/support.ts";

const kv = () => new HeldKeyValueStore();

/** A thread with a run that has ended, and has four events. */
async function ended(store = kv()) {
  const { journal } = await openStorage({ kind: "key-value", store }, deps);
  const one = new Writer(() => journal, threadKey(1));
  const run = aRun(one.key, 1);
  await one.append({ checkpoints: [aCheckpoint(1, null, { l: add(0, "a") })] });
  await one.start(run);
  const events = someEvents(run.run_id, 0, 4);
  await one.settle({ ...run, next_event: 4 }, { events });
  const runLogs = createRunLogRegistry({ journal, scheduler: deps.scheduler, logger: deps.logger });
  return { journal, one, run, runLogs };
}

test.each([
  [
    "goes on after its last event, although the record that was read says that the run has not begun",
    1,
    [2, 3],
  ],
  ["starts anew where the run has never reached its last event", 9, [0, 1, 2, 3]],
])("a reader that comes again %s", async (_, after, expected) => {
  const { one, run, runLogs } = await ended();
  const reader = runLogs.follow(one.key, run, { after });
  const seen: number[] = [];
  for (let is = true; is;) {
    const ready = new Promise<void>((resolve) => reader.onReady(resolve));
    const got = await reader.next();
    if (got === "wait") await ready;
    else if (typeof got === "string") is = false;
    else for (let n = Math.max(got.after + 1, got.entry.chunk.first); n < got.entry.end; n++) seen.push(n);
  }
  reader.close();
  expect(seen).toEqual(expected);
});

/** Render data of a run, and a read of its state that is held while `change` happens. */
async function stateDuring(change: (journal: Journal, one: Writer) => Promise<unknown>) {
  const store = kv();
  const { journal, one, run } = await ended(store);
  const shared = new SharedCheckpointCache(async () => undefined);
  const data = new RenderDataLoader(
    { journal, memory: new ResponseMemoryBudget(deps.scheduler), shared },
    one.key,
    run,
  );
  store.hold(listSpanPrefix(threadPrefix(one.key), "", "l", 4096) + encodeOrdinal(0));
  const state = Promise.resolve(data.state("", id(1)));
  await new Promise((resolve) => setImmediate(resolve));
  expect(store.reads).toHaveLength(1);
  await change(journal, one);
  void store.reads[0]?.go("of its end");
  store.unhold();
  return { state, again: () => data.state("", id(1)) };
}

test("a state whose thread is deleted while it is read ends the stream as deleted: no event is left out unnoticed", async () => {
  const { state, again } = await stateDuring((journal, one) => journal.remove(one.key, one.record));
  await expect(state).rejects.toThrow("The thread was deleted");
  // The checkpoint is still known from the first time.
  await expect((async () => again())()).rejects.toThrow("The thread was deleted");
});

test("a state that is pruned while it is read is not there, and no error", async () => {
  const { state } = await stateDuring(async (journal, one) => {
    await one.append({ checkpoints: [aCheckpoint(2, 1, { l: add(0, "b") })] });
    await journal.prune(one.key, one.record);
  });
  expect(await state).toBeNull();
});
