import { beforeEach, describe, expect, test } from "vitest";
import { checkpointKey, threadRecordKey, kwargsKey, runKey, threadPrefix } from "../../src/storage/keys.ts";
import { openStorage, type Storage } from "../../src/storage/open-storage.ts";
import { HeldKeyValueStore, type HeldRead } from "./held-key-value-store.ts";
import { aCheckpoint, add, all, aRun, id, someEvents, threadKey, Writer } from "./samples.ts";
import { deps, Timers, turns } from "./support.ts";

let kv: HeldKeyValueStore;
let timers: Timers;
let storage: Storage;

beforeEach(async () => {
  kv = new HeldKeyValueStore();
  await open();
});

async function open(): Promise<void> {
  timers = new Timers();
  storage = await openStorage({ kind: "key-value", store: kv }, { ...deps, scheduler: timers });
}

const writer = (n = 1): Writer => new Writer(() => storage.journal, threadKey(n));
const read = (n = 0): HeldRead => kv.reads[n] as HeldRead;

/** A thread that is not in memory. */
async function stored(n = 1): Promise<Writer> {
  const one = writer(n);
  await one.append();
  await storage.close();
  await open();
  return one;
}

describe("over a store whose reads take time", () => {
  test("a record that was overtaken by a change is not remembered", async () => {
    const one = await stored();
    kv.hold(threadRecordKey(threadPrefix(one.key)));
    const before = one.record;
    const asked = storage.journal.thread(one.key);
    const appended = one.append({ thread: { metadata: { new: true } } });
    await read(1).go("of its end");
    await appended;
    await read(0).go("of its beginning");
    expect(await asked).toEqual(before);
    kv.unhold();
    expect(await storage.journal.thread(one.key)).toEqual(one.record);
  });

  test("a record that was read while nothing changed is remembered", async () => {
    const one = await stored();
    kv.hold(threadRecordKey(threadPrefix(one.key)));
    const asked = storage.journal.thread(one.key);
    await read().go("of its end");
    expect(await asked).toEqual(one.record);
    expect(storage.journal.thread(one.key)).toEqual(one.record);
    expect(kv.reads).toHaveLength(1);
  });

  test("a read that fails does not keep the record from being remembered later", async () => {
    const one = await stored();
    kv.hold(threadRecordKey(threadPrefix(one.key)));
    const asked = storage.journal.thread(one.key);
    await kv.inner.close();
    await Promise.all([
      expect(asked).rejects.toMatchObject({ code: "storage.unavailable" }),
      read().go("of its end"),
    ]);
    await kv.inner.open();
    kv.unhold();
    expect(storage.journal.thread(one.key)).toEqual(one.record);
    kv.hold(threadRecordKey(threadPrefix(one.key)));
    expect(storage.journal.thread(one.key)).toEqual(one.record);
  });

  test("writes of other threads do not wait for one that reads", async () => {
    const [one, other] = [await stored(1), writer(2)];
    kv.hold(threadRecordKey(threadPrefix(one.key)));
    const waits = one.append();
    await other.append();
    expect(await storage.journal.thread(other.key)).toEqual(other.record);
    await read().go("of its end");
    await waits;
  });

  test("a thread that is let go while a write of it reads keeps what that write builds on", async () => {
    const one = writer();
    for (const n of [1, 2]) {
      await one.append({ checkpoints: [aCheckpoint(n, n === 1 ? null : n - 1, { l: add(n - 1, n) })] });
    }
    kv.hold(checkpointKey(threadPrefix(one.key), "", id(1)));
    const branch = one.append({ checkpoints: [aCheckpoint(3, 1, { l: add(1, "branch") })] });
    storage.journal.release(one.key);
    const next = one.append({ checkpoints: [aCheckpoint(4, 3, { l: add(2, "next") })] });
    await read().go("of its end");
    await Promise.all([branch, next]);
    kv.unhold();
    const found = await storage.journal.checkpoint(one.key, "", id(4));
    expect(found && (await storage.journal.values(one.key, found))).toEqual({ l: [1, "branch", "next"] });
    expect(await all(storage.journal.verify())).toEqual([]);
  });

  test("a write that reads while an earlier one fails is refused, also when the storage is open again by then", async () => {
    const one = writer();
    for (const n of [1, 2]) {
      await one.append({ checkpoints: [aCheckpoint(n, n === 1 ? null : n - 1, { l: add(n - 1, n) })] });
    }
    const before = one.record;
    kv.hold(checkpointKey(threadPrefix(one.key), "", id(1)));
    kv.free = false;
    const unavailable = expect.objectContaining({ code: "storage.unavailable" }) as Error;
    const writes = [one.append(), one.append({ checkpoints: [aCheckpoint(3, 1, { l: add(1, "branch") })] })];
    const [first, second] = writes.map((write) => expect(write).rejects.toEqual(unavailable));
    await kv.pass(new Error("no space left"));
    await first;
    kv.free = true;
    await timers.fire();
    await turns();
    await storage.check();
    await read().go("of its end");
    await second;
    expect(await storage.journal.thread(one.key)).toEqual(before);
    expect(await storage.journal.checkpoint(one.key, "", id(3))).toBeUndefined();
  });

  test("a run of a thread that is deleted while it is read is not there, and nothing is damaged", async () => {
    const one = writer();
    const run = aRun(one.key, 1);
    await one.append();
    await one.start(run);
    await one.settle(run);
    const { journal } = storage;
    const prefix = threadPrefix(one.key);
    // A sweep deletes 200 keys at a time: here, the kwargs of the run are the last key of its first batch.
    const position = async () => {
      const keys: string[] = [];
      for await (const page of kv.keys({ gte: prefix, lt: `${prefix}~` })) keys.push(...page);
      return keys.indexOf(kwargsKey(prefix, run.run_id));
    };
    const more = 199 - (await position());
    for (let n = 0; n < more; n++) await journal.publish(one.key, 1, someEvents(run.run_id, n, 1));
    expect(await position()).toBe(199);

    kv.hold(kwargsKey(prefix, run.run_id));
    const asked = journal.run(one.key, run.run_id);
    kv.free = false;
    const removed = journal.remove(one.key, one.record);
    await kv.pass();
    await kv.pass();
    await kv.arrival();
    expect(kv.inner.get(runKey(prefix, run.run_id))).toBeDefined();
    await read().go("of its end");
    expect(await asked).toBeUndefined();
    kv.free = true;
    await kv.pass();
    await removed;
    expect(await all(journal.verify())).toEqual([]);
  });
});
