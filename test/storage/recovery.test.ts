import { beforeEach, describe, expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { openStorage, type Storage } from "../../src/storage/open-storage.ts";
import { GatedKeyValueStore } from "./gated-key-value-store.ts";
import { aCheckpoint, add, all, aRun, id, set, someEvents, threadKey, Writer } from "./samples.ts";
import { deps, Timers, turns } from "./support.ts";

let kv: GatedKeyValueStore;
let timers: Timers;
let storage: Storage;

async function open(): Promise<void> {
  timers = new Timers();
  storage = await openStorage({ kind: "key-value", store: kv }, { ...deps, scheduler: timers });
}

beforeEach(async () => {
  kv = new GatedKeyValueStore();
  await open();
});

const writer = (n: number): Writer => new Writer(() => storage.journal, threadKey(n));

/** Creates a thread as soon as the recovered storage accepts writes. */
async function created(n: number): Promise<Writer> {
  for (;;) {
    const made = writer(n);
    try {
      await made.append();
      return made;
    } catch (cause) {
      if (!(cause instanceof ServiceError) || cause.code !== "storage.unavailable") throw cause;
      await turns(1);
    }
  }
}

describe("a write that fails", () => {
  test("takes with it what was in flight behind it; who reads anew goes on", async () => {
    const one = writer(1);
    await one.append();
    const stored = one.record;
    kv.free = false;
    const unavailable = expect.objectContaining({ code: "storage.unavailable" }) as Error;
    const first = one.append({ checkpoints: [aCheckpoint(1, null, { l: add(0, "lost") })] });
    const second = one.append({ checkpoints: [aCheckpoint(2, 1, { l: add(1, "too") })] });
    const told = [first, second].map((append) => expect(append).rejects.toEqual(unavailable));
    await kv.pass(new Error("no space left"));
    await Promise.all(told);
    // Reads still work; writes are refused.
    expect(await storage.journal.thread(one.key)).toEqual(stored);
    await expect(new Writer(() => storage.journal, one.key, stored).append()).rejects.toEqual(unavailable);
    await expect(storage.journal.publish(one.key, 0, someEvents(id(1), 0, 1))).rejects.toEqual(unavailable);
    await expect(storage.journal.remove(one.key, stored)).rejects.toEqual(unavailable);
    await expect(storage.catalog.transact("_", [])).rejects.toEqual(unavailable);
    kv.free = true;
    await timers.fire();
    await turns();
    const again = new Writer(() => storage.journal, one.key, stored);
    await again.append({ checkpoints: [aCheckpoint(3, null, { l: add(0, "kept") })] });
    const found = await storage.journal.checkpoint(one.key, "", id(3));
    expect(found && (await storage.journal.values(one.key, found))).toEqual({ l: ["kept"] });
    expect(await storage.journal.checkpoint(one.key, "", id(1))).toBeUndefined();
    expect(await all(storage.journal.verify())).toEqual([]);
  });

  test("may have been stored all the same: the fence says so", async () => {
    const one = writer(1);
    await one.append();
    const stale = new Writer(() => storage.journal, one.key, one.record);
    let die = false;
    const failing = { hit: () => (die ? Promise.reject(new Error("after the batch")) : undefined) };
    await storage.close();
    storage = await openStorage(
      { kind: "key-value", store: kv },
      {
        ...deps,
        scheduler: timers,
        failpoints: { hit: (p) => (p === "commit.after" ? failing.hit() : undefined) },
      },
    );
    die = true;
    await expect(one.append()).rejects.toMatchObject({ code: "storage.unavailable" });
    die = false;
    await timers.fire();
    await turns();
    await expect(stale.append()).rejects.toMatchObject({ code: "journal.conflict" });
    expect(await storage.journal.thread(one.key)).toEqual(one.record);
  });
});

test("what a failed write has deleted all the same is not found among the large records that readers share", async () => {
  const one = writer(1);
  const run = aRun(one.key, 1, { kwargs: { ...aRun(one.key, 1).kwargs, input: "x".repeat(300 * 1024) } });
  let die = false;
  await storage.close();
  storage = await openStorage(
    { kind: "key-value", store: kv },
    {
      ...deps,
      scheduler: timers,
      failpoints: {
        hit: (p) => (p === "commit.after" && die ? Promise.reject(new Error("after")) : undefined),
      },
    },
  );
  await one.append();
  await one.start(run);
  const read = () => storage.journal.sharedRun(one.key, run.run_id);
  const held = [await read(), await read()];
  die = true;
  await expect(one.append({ forget: [run.run_id], thread: { active: null } })).rejects.toThrow(
    "a write failed",
  );
  die = false;
  await timers.fire();
  await turns(20);
  const again = aRun(one.key, 1, { order: 2 });
  const next = new Writer(() => storage.journal, one.key, await storage.journal.thread(one.key));
  await next.append({ runs: [again], thread: { queue: [again.run_id] } });
  expect(await read()).toEqual(again);
  expect(held).toHaveLength(2);
});

describe("appends in flight", () => {
  test("are seen by what is derived from them, batch by batch", async () => {
    const one = writer(1);
    await one.append({ checkpoints: [aCheckpoint(1, null, { l: add(0, "a") })] });
    kv.free = false;
    const made = [one.append({ checkpoints: [aCheckpoint(2, 1, { l: add(1, "b") })] })];
    await kv.arrival();
    made.push(
      one.append({ checkpoints: [aCheckpoint(3, 2, { l: add(2, "c") }), aCheckpoint(6, 3, { x: set(6) })] }),
    );
    await kv.pass();
    await kv.arrival();
    // The second is in flight, the first is stored; a fork from it must not continue the same span.
    made.push(
      one.append({
        checkpoints: [aCheckpoint(4, 2, { l: add(2, "d") }), aCheckpoint(5, 3, { l: add(3, "e") })],
      }),
    );
    await kv.pass();
    await kv.pass();
    await Promise.all(made);
    kv.free = true;
    for (const [n, l] of [
      [2, "ab"],
      [3, "abc"],
      [4, "abd"],
      [5, "abce"],
    ] as const) {
      const found = await storage.journal.checkpoint(one.key, "", id(n));
      expect(found && (await storage.journal.values(one.key, found))).toEqual({ l: [...l] });
    }
  });

  test("are not seen by readers", async () => {
    const one = writer(1);
    await one.append();
    const before = one.record;
    kv.free = false;
    const made = one.append({ runs: [aRun(one.key, 1)] });
    await kv.arrival();
    expect(await storage.journal.thread(one.key)).toEqual(before);
    expect(await storage.journal.run(one.key, id(1))).toBeUndefined();
    await kv.pass();
    await made;
    expect(await storage.journal.run(one.key, id(1))).toBeDefined();
  });
});

describe("a deletion that is stored, before anyone is told", () => {
  let told: (() => void)[];

  beforeEach(async () => {
    await storage.close();
    told = [];
    const hit = (place: string) =>
      place === "commit.after" && !kv.free ? new Promise<void>((resolve) => told.push(resolve)) : undefined;
    storage = await openStorage(
      { kind: "key-value", store: kv },
      { ...deps, scheduler: timers, failpoints: { hit } },
    );
  });

  /** The batch in flight is stored, but not acknowledged yet. */
  async function untold(): Promise<void> {
    await kv.pass();
    while (told.length === 0) await turns();
  }

  async function tell(): Promise<void> {
    kv.free = true;
    for (const go of told) go();
    await turns(20);
  }

  test("of a thread takes all of it from every reader at once", async () => {
    const one = writer(1);
    await one.append();
    const run = aRun(one.key, 1);
    await one.start(run, {
      checkpoints: [aCheckpoint(1, null, { l: add(0, "a") })],
      events: someEvents(run.run_id, 0, 1),
    });
    kv.free = false;
    const { journal } = storage;
    const removed = journal.remove(one.key, one.record);
    expect(await journal.thread(one.key)).toEqual(one.record);
    await untold();
    expect(await journal.thread(one.key)).toBeUndefined();
    expect(await journal.run(one.key, run.run_id)).toBeUndefined();
    expect(await journal.runs(one.key, { limit: 10, offset: 0 })).toEqual([]);
    expect(await journal.checkpoint(one.key, "", id(1))).toBeUndefined();
    expect(await journal.history(one.key, { ns: "", limit: 10 })).toEqual([]);
    expect(await journal.events(one.key, run.run_id, -1, 10)).toEqual([]);
    await expect(writer(1).append()).rejects.toMatchObject({ code: "journal.conflict" });
    await tell();
    await removed;
  });

  test("of a run takes its events with it", async () => {
    const one = writer(1);
    await one.append();
    const run = aRun(one.key, 1);
    await one.start(run, { events: someEvents(run.run_id, 0, 1) });
    kv.free = false;
    const gone = one.append({ forget: [run.run_id], thread: { active: null } });
    await untold();
    expect(await storage.journal.run(one.key, run.run_id)).toBeUndefined();
    expect(await storage.journal.events(one.key, run.run_id, -1, 10)).toEqual([]);
    await tell();
    await gone;
  });
});

describe("a deletion that was cut short", () => {
  test.each(["close", "crash"])("is invisible, and finished after a %s", async (how) => {
    const stored = async () => (await all(kv.entries({ gte: "", lt: "~" }))).length;
    const atFirst = await stored();
    const one = writer(1);
    await one.append();
    const run = aRun(one.key, 1);
    await one.start(run);
    for (let n = 0; n < 500; n++) await storage.journal.publish(one.key, 1, someEvents(run.run_id, n, 1));
    kv.free = false;
    const removed = storage.journal.remove(one.key, one.record).catch(() => "cut short");
    // Not stored yet: it can be read, and is not written to any more.
    expect(await storage.journal.run(one.key, run.run_id)).toEqual(run);
    await expect(writer(1).append()).rejects.toMatchObject({ code: "journal.conflict" });
    await kv.pass();
    await kv.arrival();
    expect(await storage.journal.run(one.key, run.run_id)).toBeUndefined();
    expect(await all(storage.journal.verify())).toEqual([]);
    expect(await storage.journal.events(one.key, run.run_id, -1, 10)).toEqual([]);
    await expect(writer(1).append()).rejects.toMatchObject({ code: "journal.conflict" });
    if (how === "close") {
      const closed = storage.close();
      await kv.pass();
      await closed;
    } else {
      await kv.pass(new Error("the disk is gone"));
      await timers.fire();
      await turns();
    }
    await removed;
    kv.free = true;
    if (how === "close") await open();
    else await kv.pass();
    while ((await stored()) > atFirst) await turns();
    await writer(1).append();
    expect(await all(storage.journal.verify())).toEqual([]);
  });

  test.each(["close", "crash"])("lets the thread be created anew at once after a %s", async (how) => {
    const one = writer(1);
    await one.append();
    const run = aRun(one.key, 1);
    await one.start(run);
    for (let n = 0; n < 500; n++) await storage.journal.publish(one.key, 1, someEvents(run.run_id, n, 1));
    kv.free = false;
    const removed = storage.journal.remove(one.key, one.record).catch(() => "cut short");
    await kv.pass();
    await kv.arrival();
    if (how === "close") {
      const closed = storage.close();
      await kv.pass();
      await closed;
      await open();
    } else {
      await kv.pass(new Error("the disk is gone"));
      await timers.fire();
      await kv.arrival();
    }
    await removed;
    const made = created(1);
    // The write that tests the disk.
    if (how === "crash") await kv.pass();
    await turns();
    // The first batch of the sweep.
    kv.free = true;
    await kv.pass();
    const anew = await made;
    await turns(20);
    expect(await storage.journal.thread(anew.key)).toEqual(anew.record);
    expect(await storage.journal.run(anew.key, run.run_id)).toBeUndefined();
    expect(await all(storage.journal.verify())).toEqual([]);
  });

  test("hides a run's events at once, and is finished after the next open", async () => {
    const one = writer(1);
    await one.append();
    const run = aRun(one.key, 1);
    await one.start(run, { events: someEvents(run.run_id, 0, 1) });
    kv.free = false;
    const gone = one.append({ forget: [run.run_id], thread: { active: null } }).catch(() => {});
    const late = storage.journal.publish(one.key, 1, someEvents(run.run_id, 1, 1));
    await expect(late).rejects.toMatchObject({ code: "journal.conflict" });
    expect(await storage.journal.events(one.key, run.run_id, -1, 10)).toHaveLength(1);
    await kv.pass();
    await kv.arrival();
    const again = aRun(one.key, 1, { order: 2 });
    await expect(storage.journal.publish(one.key, 1, someEvents(run.run_id, 1, 1))).rejects.toMatchObject({
      code: "journal.conflict",
    });
    const same = new Writer(() => storage.journal, one.key, one.record);
    await expect(same.append({ runs: [again] })).rejects.toMatchObject({ code: "journal.conflict" });
    expect(await storage.journal.events(one.key, run.run_id, -1, 10)).toEqual([]);
    expect(await all(storage.journal.verify())).toEqual([]);
    const closed = storage.close();
    await kv.pass();
    await closed;
    await gone;
    kv.free = true;
    await open();
    await turns(20);
    expect((await all(kv.entries({ gte: "", lt: "~" }))).some(([key]) => /\/e\/|sweep/.test(key))).toBe(
      false,
    );
    expect(await all(storage.journal.verify())).toEqual([]);
  });
});
