import { beforeEach, describe, expect, test } from "vitest";
import { Committer } from "../../src/storage/committer.ts";
import { MAX_CONCURRENT_WRITES } from "../../src/storage/write-admission.ts";
import { GatedKeyValueStore } from "./gated-key-value-store.ts";
import { deps, turns } from "./support.ts";

let kv: GatedKeyValueStore;
let committer: Committer;
/** The admitted callers, in order. */
let inside: number[];

beforeEach(async () => {
  kv = new GatedKeyValueStore();
  await kv.open();
  committer = new Committer(kv, deps, { failed: () => {}, reopened: async () => {}, healed: () => {} });
  inside = [];
});

let count = 0;
/** A write, and its outcome. */
function write(): Promise<string> {
  const { refusal } = committer;
  if (refusal !== undefined) return Promise.resolve(refusal.code);
  const ops = [{ key: `key${count++}`, value: Buffer.alloc(10) }];
  return new Promise((resolve) => {
    committer.submit({
      ops,
      durable: true,
      stored: () => resolve("stored"),
      failed: ({ code }) => resolve(code),
    });
  });
}

/** This many callers, each of whom writes `times` times in sequence once it is admitted. */
function come(many: number, times = 1): Promise<string[]> {
  return Promise.all(
    Array.from({ length: many }, async (_, i) => {
      await committer.waitForCapacity();
      inside.push(i);
      let end = "nothing";
      for (let n = 0; n < times; n++) end = await write();
      return end;
    }),
  );
}

/** This many writers, each of whom writes again in the turn after its first write is stored, as runs do that begin then. */
const writersOfTwo = (many: number): Promise<string>[] =>
  Array.from({ length: many }, async () => {
    await write();
    await new Promise<void>(setImmediate);
    return write();
  });

const upTo = (end: number): number[] => Array.from({ length: end }, (_, i) => i);

describe("newcomers", () => {
  test("are let in at once while little is under way", () => {
    expect(committer.waitForCapacity()).toBeUndefined();
    void write();
    expect(committer.waitForCapacity()).toBeUndefined();
    return committer.close();
  });

  test("wait while much is, and come in by their order as it is stored", async () => {
    kv.free = false;
    const first = Array.from({ length: MAX_CONCURRENT_WRITES }, write);
    const all = come(100);
    await kv.arrival();
    expect(inside).toEqual([]);
    await kv.pass();
    await turns();
    expect(inside).toEqual(upTo(MAX_CONCURRENT_WRITES));
    kv.free = true;
    await kv.pass();
    expect(await all).toEqual(Array.from({ length: 100 }, () => "stored"));
    expect(inside).toEqual(upTo(100));
    await Promise.all(first);
    expect(committer.waitForCapacity()).toBeUndefined();
  });

  test("come behind those who write again in the turn after they are told, as runs do that begin then", async () => {
    kv.free = false;
    const first = writersOfTwo(MAX_CONCURRENT_WRITES);
    const all = come(100);
    await kv.pass();
    await kv.arrival();
    expect(inside.length).toBeLessThan(MAX_CONCURRENT_WRITES / 2);
    kv.free = true;
    await kv.pass();
    expect(new Set([...(await all), ...(await Promise.all(first))])).toEqual(new Set(["stored"]));
  });

  test("write in the same batch as those who write again", async () => {
    kv.free = false;
    const first = writersOfTwo(MAX_CONCURRENT_WRITES);
    const all = come(8);
    await kv.pass();
    await kv.arrival();
    expect(kv.batches.at(-1)?.ops).toHaveLength(MAX_CONCURRENT_WRITES + 8);
    kv.free = true;
    await kv.pass();
    expect(new Set([...(await all), ...(await Promise.all(first))])).toEqual(new Set(["stored"]));
    expect(kv.batches).toHaveLength(2);
  });

  test("are not passed by one who comes while others wait", async () => {
    kv.free = false;
    void Array.from({ length: MAX_CONCURRENT_WRITES }, write);
    const early = come(60);
    await kv.arrival();
    kv.free = true;
    await kv.pass();
    const late = committer.waitForCapacity()?.then(() => inside.push(-1));
    await Promise.all([early, late]);
    expect(inside.indexOf(-1)).toBe(60);
  });

  test("do not starve, however much is under way", async () => {
    let going = true;
    const busy = Array.from({ length: 200 }, async () => {
      while (going) await write();
    });
    await turns();
    const before = kv.batches.length;
    await come(20);
    expect(kv.batches.length - before).toBeLessThanOrEqual(5);
    going = false;
    await Promise.all(busy);
  });

  test("who write nothing leave their room to the next", async () => {
    const first = Array.from({ length: MAX_CONCURRENT_WRITES }, write);
    const all = come(500, 0);
    await Promise.all(first);
    expect(await all).toHaveLength(500);
  });

  test("are let in to be refused when a write fails", async () => {
    kv.free = false;
    const first = Array.from({ length: MAX_CONCURRENT_WRITES }, write);
    const failing = come(10);
    kv.openError = new Error("still full");
    await kv.pass(new Error("disk full"));
    expect(new Set([...(await failing), ...(await Promise.all(first))])).toEqual(
      new Set(["storage.unavailable"]),
    );
    await committer.close();
  });

  test("are let in to be refused when it is closed", async () => {
    const first = Array.from({ length: MAX_CONCURRENT_WRITES }, write);
    const closing = come(10);
    const over = committer.close();
    expect(new Set(await closing)).toEqual(new Set(["storage.unavailable"]));
    await over;
    expect(new Set(await Promise.all(first))).toEqual(new Set(["stored"]));
  });
});
