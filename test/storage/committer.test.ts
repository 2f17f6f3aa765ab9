import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ServiceError } from "../../src/model/errors.ts";
import type { Failpoint } from "../../src/ports/failpoints.ts";
import { Committer } from "../../src/storage/committer.ts";
import { GatedKeyValueStore } from "./gated-key-value-store.ts";
import { deps, Timers, turns } from "./support.ts";

let kv: GatedKeyValueStore;
let timers: Timers;
let places: string[];
let hit: (place: Failpoint) => void | Promise<void>;
let committer: Committer;
let now: number;
/** The log records: level, message, fields. */
let lines: unknown[][];
/** Resolves when the contents of the store were read again after a failure. */
let reread: Promise<void>;

beforeEach(async () => {
  kv = new GatedKeyValueStore();
  await kv.open();
  kv.calls.length = 0;
  timers = new Timers();
  places = [];
  hit = () => {};
  now = 0;
  reread = Promise.resolve();
  const clock = { now: () => 0, mono: () => now };
  lines = [];
  const note =
    (level: string) =>
    (...line: unknown[]): void =>
      void lines.push([level, ...line]);
  const logger = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
  committer = new Committer(
    kv,
    {
      ...deps,
      clock,
      logger,
      scheduler: timers,
      failpoints: { hit: (place) => (places.push(place), hit(place)) },
    },
    {
      failed: () => places.push("failed"),
      reopened: () => reread,
      healed: () => places.push("healed"),
    },
  );
});

afterEach(() => committer.close());

let count = 0;
function write(durable: boolean, ops = 1, bytes = 10): Promise<void> {
  const { refusal } = committer;
  if (refusal !== undefined) return Promise.reject(refusal);
  return new Promise((stored, failed) => {
    committer.submit({
      durable,
      ops: Array.from({ length: ops }, () => ({ key: `key${count++}`, value: Buffer.alloc(bytes) })),
      stored,
      failed,
    });
  });
}

const sizes = (): number[] => kv.batches.map((batch) => batch.ops.length);

describe("batches", () => {
  test("writes of one turn share one", async () => {
    await Promise.all([write(true, 2), write(true, 3), write(false, 1)]);
    expect(sizes()).toEqual([6]);
    expect(committer.stats).toEqual({ batches: 1, synced: 1, ops: 6, bytes: 6 * 10 + keyBytes() });
  });

  const keyBytes = (): number =>
    kv.batches.reduce((sum, { ops }) => sum + ops.reduce((length, op) => length + op.key.length, 0), 0);

  test("what a writer puts off to the next turn when it is acknowledged shares the next one", async () => {
    let acknowledged: () => void = () => undefined;
    const isAcknowledged = new Promise<void>((resolve) => (acknowledged = resolve));
    const others: Promise<void>[] = [];
    committer.submit({
      durable: true,
      ops: [{ key: "first", value: Buffer.alloc(1) }],
      stored: () => {
        others.push(write(true, 2));
        acknowledged();
      },
      failed: () => undefined,
    });
    // Like the start of a run: after some promise callbacks, a task for the next turn.
    await isAcknowledged;
    await Promise.resolve();
    await new Promise<void>((resolve) => timers.soon(() => resolve(write(true, 3))));
    await Promise.all(others);
    expect(sizes()).toEqual([1, 5]);
  });

  test("one with an acknowledged write is synced, one of streamed writes alone is not", async () => {
    await Promise.all([write(false), write(false)]);
    await Promise.all([write(false), write(true), write(false)]);
    await write(false);
    expect(kv.batches.map((batch) => batch.sync)).toEqual([false, true, false]);
    expect(committer.stats).toMatchObject({ batches: 3, synced: 1 });
  });

  test("while one is in flight the next fills, and nothing overtakes", async () => {
    kv.free = false;
    const order: string[] = [];
    const note = (name: string, made: Promise<void>): void => void made.then(() => order.push(name));
    note("a", write(true));
    await kv.arrival();
    note("b", write(false));
    note("c", write(true));
    await turns();
    note("d", write(false));
    expect(sizes()).toEqual([1]);
    await kv.pass();
    await kv.arrival();
    expect(order).toEqual(["a"]);
    expect(sizes()).toEqual([1, 3]);
    await kv.pass();
    await turns();
    expect(order).toEqual(["a", "b", "c", "d"]);
  });

  test("what a stored write leads to comes along with the next", async () => {
    kv.free = false;
    const first = write(true).then(() => write(true));
    await kv.arrival();
    const second = write(true);
    await kv.pass();
    await kv.pass();
    await Promise.all([first, second]);
    expect(sizes()).toEqual([1, 2]);
  });

  test("where much waits, the next is in flight before the writers of the last one go on", async () => {
    kv.free = false;
    const seen: number[] = [];
    const first = write(true).then(() => {
      seen.push(kv.batches.length);
      return write(true);
    });
    await kv.arrival();
    const second = write(false, 1, 32 * 1024);
    await kv.pass();
    await kv.pass();
    await second;
    await kv.pass();
    await first;
    // Writes that the first one causes are in the next batch.
    expect(seen).toEqual([2]);
    expect(sizes()).toEqual([1, 1, 1]);
  });

  test("where little waits, what they go on to write comes along", async () => {
    kv.free = false;
    const first = write(true).then(() => write(true));
    await kv.arrival();
    const second = write(false, 1, 31 * 1024);
    await kv.pass();
    await kv.pass();
    await Promise.all([first, second]);
    expect(sizes()).toEqual([1, 2]);
  });

  test("one holds at most 1,024 operations, and no write is torn", async () => {
    await Promise.all([
      write(true, 1000),
      write(true, 24),
      write(true, 1),
      write(true, 1100),
      write(true, 2),
    ]);
    expect(sizes()).toEqual([1024, 1, 1100, 2]);
  });

  test("one holds at most 1 MiB, a larger write goes alone", async () => {
    const half = 512 * 1024;
    await Promise.all([
      write(true, 1, half),
      write(true, 1, half - 100),
      write(true, 1, 3 * half),
      write(false, 1),
    ]);
    expect(sizes()).toEqual([2, 1, 1]);
    expect(kv.batches.map((batch) => batch.sync)).toEqual([true, true, false]);
  });

  test("failpoints stand before and after each, and are waited for", async () => {
    let go = (): void => {};
    hit = (place) => {
      if (place === "commit.before") return new Promise<void>((resolve) => (go = resolve));
    };
    const made = write(true);
    await turns();
    expect(kv.batches).toEqual([]);
    go();
    await made;
    expect(places).toEqual(["commit.before", "commit.after"]);
  });
});

describe("a failure", () => {
  test("of a batch that set out ahead comes once all writers of the last one were told, turns later", async () => {
    // Slow callbacks, so that only a few are acknowledged in a turn.
    await write(true).then(() => (now += 100));
    kv.free = false;
    const many = Array.from({ length: 20 }, () => write(true).then(() => places.push("stored")));
    await kv.arrival();
    const ahead = write(true, 1, 64 * 1024).catch((error: ServiceError) => error.code);
    let batches = 0;
    hit = (place) => {
      if (place === "commit.before") throw new Error(`no space: ${++batches}`);
    };
    places.length = 0;
    await kv.pass();
    expect(await ahead).toBe("storage.unavailable");
    await Promise.all(many);
    const stored = Array.from({ length: 20 }, () => "stored");
    expect(places).toEqual(["commit.after", "commit.before", ...stored, "failed"]);
    expect(batches).toBe(1);
    expect(committer.refusal).toBeDefined();
  });

  test("refuses what is in flight, what waits and what comes", async () => {
    kv.free = false;
    const before = write(true);
    await kv.pass();
    await before;
    const { bytes } = committer.stats;
    const inFlight = write(true).catch((error: ServiceError) => error);
    await kv.arrival();
    const waiting = write(false).catch((error: ServiceError) => error);
    const cause = new Error("no space left on device");
    await kv.pass(cause);
    expect(committer.stats).toEqual({ batches: 1, synced: 1, ops: 1, bytes });
    for (const error of [await inFlight, await waiting, await write(true).catch((e: ServiceError) => e)]) {
      expect(error).toMatchObject({ code: "storage.unavailable", cause });
      expect(String(error)).not.toContain("no space left on device");
    }
    expect(places.filter((place) => place === "failed")).toEqual(["failed"]);
    expect(kv.batches.length).toBe(2);
  });

  test("heals: the store is closed and opened once a probe passes, and reads go on until then", async () => {
    kv.free = false;
    kv.probeError = new Error("still full");
    const broken = write(true);
    await kv.pass(new Error("full"));
    await expect(broken).rejects.toMatchObject({ code: "storage.unavailable" });
    kv.free = true;
    await timers.fire();
    await timers.fire();
    await turns();
    expect(kv.calls).toEqual(["probe", "probe"]);
    expect(kv.get("nothing")).toBeUndefined();
    kv.probeError = undefined;
    kv.openError = new Error("cannot open");
    await timers.fire();
    await turns();
    expect(kv.calls).toEqual(["probe", "probe", "probe", "close", "open"]);
    await expect(write(true)).rejects.toMatchObject({ code: "storage.unavailable" });
    kv.openError = undefined;
    await timers.fire();
    await turns();
    await write(true);
    expect(places).toContain("healed");
    expect(kv.calls.slice(5)).toEqual(["probe", "close", "open"]);
    expect(timers.pauses).toEqual([50, 100, 200, 400]);
  });

  test("accepts no write before what is stored was read anew", async () => {
    let wasRead = (): void => undefined;
    reread = new Promise((resolve) => (wasRead = resolve));
    kv.free = false;
    const broken = write(true);
    await kv.pass(new Error("full"));
    await expect(broken).rejects.toMatchObject({ code: "storage.unavailable" });
    kv.free = true;
    await timers.fire();
    await turns();
    expect(kv.calls).toEqual(["probe", "close", "open"]);
    await expect(write(true)).rejects.toMatchObject({ code: "storage.unavailable" });
    wasRead();
    await turns();
    expect(places).toContain("healed");
    await write(true);
  });

  test("tries at least every two seconds", async () => {
    kv.free = false;
    kv.probeError = new Error("still full");
    const broken = write(true).catch(() => {});
    await kv.pass(new Error("full"));
    await broken;
    for (let i = 0; i < 9; i++) await timers.fire();
    await turns();
    expect(Math.max(...timers.pauses)).toBe(2_000);
  });

  test("is over once a write is stored again, not when the store is open: until then all others are refused", async () => {
    kv.free = false;
    const broken = write(true).catch(() => {});
    await kv.pass(new Error("full"));
    await broken;
    const writable = committer.whenWritable();
    let isWritable = false;
    void writable?.then(() => (isWritable = true));
    for (let i = 0; i < 3; i++) {
      await timers.fire();
      await kv.pass(new Error("full"));
      await turns();
    }
    expect(kv.calls).toEqual(["probe", "close", "open", "probe", "close", "open", "probe", "close", "open"]);
    expect(kv.batches.slice(1).map(({ ops }) => ops.length)).toEqual([1, 1, 1]);
    await expect(write(true)).rejects.toMatchObject({ code: "storage.unavailable" });
    await expect(committer.check()).rejects.toMatchObject({ code: "storage.unavailable" });
    expect([isWritable, places.includes("healed")]).toEqual([false, false]);
    await timers.fire();
    await kv.pass();
    await writable;
    expect(places).toContain("healed");
    expect(committer.whenWritable()).toBeUndefined();
    expect(timers.pauses).toEqual([50, 100, 200, 400]);
    kv.free = true;
    await write(true);
  });

  test("is two lines in the log, however long it is and however many writes it refuses, and one for each new cause", async () => {
    kv.free = false;
    const full = new Error("full");
    const broken = [write(true), write(false)].map((one) => one.catch(() => {}));
    await kv.pass(full);
    await Promise.all(broken);
    kv.probeError = full;
    for (let i = 0; i < 100; i++) {
      await expect(committer.store([], true)).rejects.toMatchObject({ code: "storage.unavailable" });
      await timers.fire();
      await turns();
    }
    kv.probeError = new Error("read-only");
    for (let i = 0; i < 3; i++) await timers.fire().then(() => turns());
    kv.probeError = undefined;
    now += 200_049;
    await timers.fire();
    await kv.pass();
    await turns();
    expect(lines).toEqual([
      [
        "error",
        "a write to the storage failed; writes are refused until it stores one again",
        { error: expect.stringContaining("full") },
      ],
      ["warn", "the storage is still not available", { error: expect.stringContaining("read-only") }],
      ["info", "the storage stores writes again", { seconds: 200, refused: 102 }],
    ]);
  });

  test("behind the batch, too, is a failure: nobody is told that it is stored", async () => {
    hit = (place) => {
      if (place === "commit.after") throw new Error("killed");
    };
    await expect(write(true)).rejects.toMatchObject({ code: "storage.unavailable" });
  });
});

describe("closing", () => {
  test("waits for what was taken and refuses what comes", async () => {
    kv.free = false;
    const taken = [write(true), write(false)];
    const closed = committer.close();
    await expect(write(true)).rejects.toMatchObject({ code: "storage.unavailable" });
    await kv.pass();
    await closed;
    await Promise.all(taken);
  });

  test("does not wait for a store that is broken", async () => {
    kv.free = false;
    const broken = write(true).catch(() => {});
    await kv.pass(new Error("full"));
    await broken;
    await committer.close();
    expect(timers.waiting).toBe(0);
    expect(kv.calls).toEqual([]);
  });
});
