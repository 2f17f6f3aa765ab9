import { beforeEach, describe, expect, test } from "vitest";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { repairIndex } from "../../src/storage/index-repair.ts";
import { openStorage, type Storage } from "../../src/storage/open-storage.ts";
import { PRESENT_MARK } from "../../src/storage/stored-records.ts";
import { runIndexKeys } from "../../src/storage/run-index.ts";
import { threadIndexKeys } from "../../src/storage/thread-index.ts";
import {
  aCheckpoint,
  add,
  all,
  aRun,
  id,
  set,
  someEvents,
  someWrites,
  threadKey,
  Writer,
} from "./samples.ts";
import { deps } from "./support.ts";

const key = threadKey(1);
const run = aRun(key, 1, { attempt: 1 });
let kv: MemoryKeyValueStore;
let storage: Storage;
let one: Writer;

beforeEach(async () => {
  kv = new MemoryKeyValueStore();
  storage = await openStorage({ kind: "key-value", store: kv }, deps);
  one = new Writer(() => storage.journal, key);
  await one.append();
  await one.start(run, { events: someEvents(run.run_id, 0, 2) });
  await storage.journal.publish(key, 1, someEvents(run.run_id, 2, 3));
  await one.append({
    checkpoints: [
      aCheckpoint(1, null, { l: add(0, "a"), x: set("whole ".repeat(20)) }, { run_id: run.run_id }),
      aCheckpoint(2, 1, { l: add(1, "b") }, { run_id: run.run_id }),
    ],
    writes: [someWrites(2, 20)],
    events: someEvents(run.run_id, 5, 1),
    thread: { checkpoint: id(2) },
  });
  const ended = { ...run, next_event: 6 };
  await one.settle(ended);
  await new Writer(() => storage.journal, threadKey(2)).append();
});

test("nothing is wrong with what is whole", async () => {
  expect(await all(storage.journal.verify())).toEqual([]);
});

const keys = async (): Promise<string[]> => (await all(kv.entries({ gte: "", lt: "~" }))).map(([at]) => at);

async function find(pattern: RegExp): Promise<string> {
  const found = (await keys()).filter((at) => pattern.test(at));
  expect(found.length).toBe(1);
  return found[0] ?? "";
}

async function drop(pattern: RegExp): Promise<void> {
  await kv.batch([{ key: await find(pattern), value: null }], { sync: true });
}

async function whats(): Promise<string[]> {
  const found = await all(storage.journal.verify());
  for (const damage of found) {
    expect(damage.key).toEqual(key);
    // It contains no key of the database, and does not repeat the thread's name.
    expect(damage.what).not.toMatch(/\/|is damaged:/);
  }
  // The check of a single thread reports the same.
  expect(await all(storage.journal.verify(key))).toEqual(found);
  expect(await all(storage.journal.verify(threadKey(2)))).toEqual([]);
  return found.map((damage) => damage.what);
}

describe("a value that is not what was written", () => {
  const first = `/t/${key.thread}`;
  const reads: [string, RegExp, () => unknown][] = [
    // Read from the store: a record that was just written would still be in the cache.
    ["the thread", new RegExp(`${first}/h$`), () => reopened().then((next) => next.journal.thread(key))],
    ["a run", /\/r\//, () => storage.journal.run(key, run.run_id)],
    ["its kwargs", /\/k\//, () => storage.journal.run(key, run.run_id)],
    ["a listed run", /\/r\//, () => storage.journal.runs(key, { limit: 1, offset: 0 })],
    ["a checkpoint", new RegExp(`/c/.*${id(2)}$`), () => storage.journal.checkpoint(key, "", id(2))],
    ["a listed one", new RegExp(`/c/.*${id(2)}$`), () => storage.journal.history(key, { ns: "", limit: 5 })],
    ["a whole value", /\/b\//, () => values()],
    ["a segment", /\/l\/.*\/10$/, () => values()],
    ["a task's writes", /\/w\/.*\/.*\//, () => storage.journal.writes(key, "", id(2))],
    ["events", /\/e\/.*\/12$/, () => storage.journal.events(key, run.run_id, 1, 9)],
    [
      "the last events",
      /\/e\/.*\/15$/,
      () => reopened().then((next) => next.journal.nextEvent(key, run.run_id)),
    ],
  ];
  const reopened = async (): Promise<Storage> => {
    await storage.close();
    storage = await openStorage({ kind: "key-value", store: kv }, deps);
    return storage;
  };
  const values = async (): Promise<unknown> => {
    const checkpoint = await storage.journal.checkpoint(key, "", id(2));
    return checkpoint && storage.journal.values(key, checkpoint);
  };

  test.each(reads)("%s: it is never answered, and verify names it", async (_, pattern, read) => {
    const at = await find(pattern);
    const good = Buffer.from(kv.get(at) ?? Buffer.alloc(0));
    // Every byte of the envelope, some of the rest, and every length.
    const places = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, Math.floor(good.length / 2), good.length - 1];
    const bad = places.map((place) => {
      const bytes = Buffer.from(good);
      bytes[place] = (bytes[place] ?? 0) ^ 0x40;
      return bytes;
    });
    bad.push(good.subarray(0, 5), good.subarray(0, -1), Buffer.alloc(0), Buffer.concat([good, good]));
    for (const bytes of bad) {
      await kv.batch([{ key: at, value: bytes }], { sync: true });
      await expect((async () => read())()).rejects.toMatchObject({
        code: "journal.damaged",
        message: expect.stringContaining(key.thread) as string,
      });
    }
    expect((await whats()).length).toBeGreaterThan(0);
  });

  test("an append to a thread whose record is damaged is refused", async () => {
    await storage.close();
    await kv.open();
    await kv.batch([{ key: await find(new RegExp(`${first}/h$`)), value: Buffer.from("broken!!!") }], {
      sync: true,
    });
    storage = await openStorage({ kind: "key-value", store: kv }, deps);
    await expect(one.append()).rejects.toMatchObject({ code: "journal.damaged" });
    const other = new Writer(() => storage.journal, threadKey(2), {
      ...one.record,
      thread_id: id(2),
      seq: 1,
      epoch: 0,
    });
    await other.append();
  });
});

describe("what is missing is found", () => {
  test.each([
    ["an append", /\/j\/12$/, ["appends 2 to 2 are missing"]],
    ["the last append", /\/j\/14$/, ["appends 4 to 4 are missing"]],
    ["events in the middle", /\/e\/.*\/12$/, [`events 2 to 4 of run ${run.run_id} are missing`]],
    ["the first events", /\/e\/.*\/10$/, [`events 0 to 1 of run ${run.run_id} are missing`]],
    ["the last events", /\/e\/.*\/15$/, [`events 5 to 5 of run ${run.run_id} are missing`]],
    ["a run's kwargs", /\/k\//, [`what run ${run.run_id} was created with is missing`]],
    ["a run's place", /\/o\//, [`run ${run.run_id} is missing from the order of runs`]],
    ["a whole value", /\/b\//, [1, 2].map((n) => `the value of channel x at checkpoint ${id(n)} is missing`)],
    ["a later segment", /\/l\/.*\/11$/, [`the value of channel l at checkpoint ${id(2)} is missing`]],
    [
      "an earlier segment",
      /\/l\/.*\/10$/,
      [1, 2].map((n) => `the value of channel l at checkpoint ${id(n)} is missing`),
    ],
    ["a parent", new RegExp(`/c/.*${id(1)}$`), [`the parent ${id(1)} of checkpoint ${id(2)} is missing`]],
    ["the index", new RegExp(`/i/${key.thread}$`), ["it is not in the index of threads"]],
    ["the index of runs", /\/ir\//, [`run ${run.run_id} is not in the index of runs`]],
    ["the record", new RegExp(`${key.thread}/h$`), ["its record is missing"]],
  ])("%s", async (_, pattern, expected) => {
    await drop(pattern);
    expect(await whats()).toEqual(expected);
  });

  test("a run", async () => {
    await drop(/\/r\//);
    expect(await whats()).toEqual([
      `run ${run.run_id} is in the order of runs and nowhere else`,
      `there are events of run ${run.run_id}, which is missing`,
    ]);
  });

  test("the latest checkpoint", async () => {
    await drop(new RegExp(`/c/.*${id(2)}$`));
    expect(await whats()).toEqual([
      `its latest checkpoint ${id(2)} is missing`,
      expect.stringContaining("tasks have left writes"),
    ]);
  });

  test("the mark of a thread with work", async () => {
    await one.append({ thread: { queue: [run.run_id] } });
    await drop(/^!active\//);
    expect(await whats()).toEqual(["it has work and is not marked"]);
  });

  test("a stretch of appends, as LevelDB drops it", async () => {
    for (let n = 0; n < 40; n++) await one.append();
    const gone = (await keys()).filter((at) => /\/j\//.test(at)).slice(10, 25);
    await kv.batch(
      gone.map((at) => ({ key: at, value: null })),
      { sync: true },
    );
    expect(await whats()).toEqual(["appends 11 to 25 are missing"]);
  });
});

describe("an index that has drifted from the threads' records", () => {
  const rooms = ["i", "ic", "iu", "is", "im"] as const;
  const waiting = {
    metadata: { team: "tea" },
    ttl: { minutes: 1, strategy: "delete" as const, due: 60_000 },
    delayed: [{ run: run.run_id, due: 9 }],
    timers: [{ id: "1:a/b", due: 9, run: null }],
  };

  test("is told of, and repaired: what it lacks, and what it has too much of", async () => {
    await one.append({ thread: { ...waiting, queue: [run.run_id] } });
    expect(await whats()).toEqual([]);
    const whole = await keys();
    const listed = whole.filter(
      (at) => rooms.some((room) => at.startsWith(`_/${room}/`)) || /^!(due|active|ttl|timer)/.test(at),
    );
    expect(listed.length).toBeGreaterThan(9);
    for (const at of listed) {
      await kv.batch([{ key: at, value: null }], { sync: true });
      expect(await all(storage.journal.verify()), at).toHaveLength(1);
      await repairIndex(kv);
      expect(await keys()).toEqual(whole);
    }
    // Index keys that a thread with another state would have.
    const other = { ...one.record, created_at: 7, rested_at: 8, rest: "error", metadata: { a: 1 } } as const;
    const strays = threadIndexKeys(key, other).filter((at) => !whole.includes(at));
    expect(strays.length).toBe(4);
    for (const at of [...strays, ...threadIndexKeys(threadKey(3), { ...other, thread_id: id(3) })]) {
      await kv.batch([{ key: at, value: PRESENT_MARK }], { sync: true });
      expect(await all(storage.journal.verify()), at).toMatchObject([
        { what: "it is in the index of threads, and should not be" },
      ]);
      await repairIndex(kv);
      expect(await keys()).toEqual(whole);
    }
    expect(await all(storage.journal.verify())).toEqual([]);
  });

  test("of runs is told of, and repaired: what it lacks, and what it has too much of", async () => {
    const [failed, paused] = [aRun(key, 2, { attempt: 1 }), aRun(key, 3, { attempt: 1 })];
    await one.start(failed, {});
    await one.settle(failed, { runs: [{ ...failed, status: "error", ended_at: 2_000 }] });
    await one.start(paused, {});
    await one.settle(paused, { runs: [{ ...paused, status: "interrupted", ended_at: 2_000 }] });
    const ofCron = aRun(key, 4, { attempt: 1, metadata: { cron_id: "a/cron" } });
    await one.start(ofCron, {});
    await one.settle(ofCron, { runs: [{ ...ofCron, status: "success", ended_at: 2_000 }] });
    expect(await whats()).toEqual([]);
    const whole = await keys();
    const listed = whole.filter((at) => /^_\/i[rfin]\//.test(at));
    expect(listed.length).toBe(7);
    for (const at of listed) {
      await kv.batch([{ key: at, value: null }], { sync: true });
      expect(await whats(), at).toHaveLength(1);
      await repairIndex(kv);
      expect(await keys()).toEqual(whole);
    }
    const strays = [
      // Keys of a run that has not failed, and of one that does not exist.
      ...runIndexKeys(key, { ...run, status: "error" }).slice(1),
      ...runIndexKeys(key, { ...failed, run_id: id(90) }),
      ...runIndexKeys(threadKey(3), failed),
    ];
    for (const at of strays) {
      await kv.batch([{ key: at, value: PRESENT_MARK }], { sync: true });
      expect(await all(storage.journal.verify()), at).toHaveLength(1);
      await repairIndex(kv);
      expect(await keys()).toEqual(whole);
    }
    expect(await all(storage.journal.verify())).toEqual([]);
  });

  test("is left alone where the record itself is damaged: that is no more to be believed", async () => {
    const before = await keys();
    await kv.batch([{ key: await find(new RegExp(`^_/t/${key.thread}/h$`)), value: Buffer.from("x") }], {
      sync: true,
    });
    await repairIndex(kv);
    expect(await keys()).toEqual(before);
  });
});

test("a jump of events where no later attempt began is found", async () => {
  const next = aRun(key, 2, { attempt: 1 });
  await one.start(next, { events: someEvents(next.run_id, 0, 1) });
  await storage.journal.publish(key, 2, someEvents(next.run_id, 100, 1));
  expect(await whats()).toEqual([`events 1 to 99 of run ${next.run_id} are missing`]);
});

test("a damaged assistant is never answered, and verify names it", async () => {
  const assistant = {
    assistant_id: id(7),
    graph_id: "agent",
    version: 1,
    name: "",
    description: null,
    config: {},
    context: {},
    metadata: {},
    created_at: 1,
    updated_at: 1,
  };
  await storage.catalog.transact("_", [{ kind: "assistant.put", assistant }]);
  await kv.batch([{ key: await find(/\/a\//), value: Buffer.from("broken!!!") }], { sync: true });
  expect(() => storage.catalog.assistant("_", id(7))).toThrow(
    expect.objectContaining({ code: "journal.damaged" }),
  );
  expect(await all(storage.journal.verify())).toEqual([
    { key: { tenant: "_", thread: "" }, what: `assistant ${id(7)}: it has 1 bytes in place of 1802465890` },
  ]);
});

test("a run that has not ended although its thread has gone past it is told of", async () => {
  const one = new Writer(() => storage.journal, threadKey(77));
  await one.append();
  const run = aRun(one.key, 1);
  await one.start(run);
  await one.append({ thread: { active: null } });
  expect(await all(storage.journal.verify(one.key))).toEqual([
    { key: one.key, what: `run ${run.run_id} has not ended, and its thread has gone past it` },
  ]);
});
