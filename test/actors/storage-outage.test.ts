import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import type { KeyValueStore } from "../../src/ports/key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

/** A store on a disk that is full on request; stored data stays readable. */
class FullableKeyValueStore extends MemoryKeyValueStore {
  isFull = false;
  /** True: probes, closing and opening detect the full disk. False: only a write does. */
  isProbed = true;
  /** True: the disk has room for writes of one operation, such as test writes. */
  takesSmallWrites = false;
  tries = 0;

  async probe(): Promise<void> {
    if (this.isFull && this.isProbed && !this.takesSmallWrites) throw new Error("no space left on device");
  }

  override async batch(...args: Parameters<KeyValueStore["batch"]>): Promise<void> {
    this.tries++;
    if (this.isFull && (!this.takesSmallWrites || args[0].length > 1)) {
      throw new Error("no space left on device");
    }
    return super.batch(...args);
  }
}

const THREADS = 40;

/** Starts runs on many threads; meanwhile the storage fails. */
async function outage(isProbed: boolean) {
  const kv = new FullableKeyValueStore();
  kv.isProbed = isProbed;
  const warned: string[] = [];
  let isHeld = true;
  const held: (() => void)[] = [];
  const work = graph({
    state: { log: list<string>() },
    nodes: {
      one: async () => {
        if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
        return { log: ["one"] };
      },
      two: async () => ({ log: ["two"] }),
    },
    edges: { start: "one", one: "two" },
  });
  const server = await Server.start(work, { kv, warned });
  const runs: (readonly [Awaited<ReturnType<Server["thread"]>>, Awaited<ReturnType<Server["admit"]>>])[] = [];
  for (let i = 0; i < THREADS; i++) {
    const key = await server.thread();
    runs.push([key, await server.admit(key)]);
  }
  await server.scheduler.settle();
  kv.isFull = true;
  isHeld = false;
  for (const release of held) release();
  await server.scheduler.settle();
  return { kv, server, runs, warned };
}

test.each([
  ["while a probe says that the disk is full", true],
  ["while only a write says so", false],
])(
  "%s, threads wait for the storage, with one line in the log; then each run goes on to its end",
  async (_, isProbed) => {
    const { kv, server, runs, warned } = await outage(isProbed);
    const { woken } = server.system.figures;
    const before = kv.tries;
    await server.scheduler.advance(600_000);
    expect(server.system.figures.woken).toBe(woken);
    // At most one attempt in two seconds.
    expect(kv.tries - before).toBeLessThanOrEqual(isProbed ? 0 : 305);
    const [failed, ...rest] = warned;
    expect(failed).toContain("a write to the storage failed");
    expect(rest).toEqual([
      "threads were given up because the storage failed; they are loaded again when it stores writes",
    ]);
    kv.isFull = false;
    await server.scheduler.advance(5_000);
    for (const [key, run] of runs) {
      expect(await server.record(key, run)).toMatchObject({ status: "success" });
      expect(await server.values(key)).toEqual({ log: ["one", "two"] });
    }
    expect(server.system.figures.woken).toBe(woken + THREADS);
    expect(warned).toHaveLength(2);
  },
);

test("a client's requests during the outage are refused, add no line, and do not put the reload off", async () => {
  const { kv, server, runs, warned } = await outage(true);
  const [[key]] = runs as [(typeof runs)[number]];
  for (let i = 0; i < 50; i++) {
    await expect(server.admit(key, { strategy: "enqueue" })).rejects.toMatchObject({
      code: "storage.unavailable",
    });
    await server.scheduler.advance(1_000);
  }
  expect(warned).toHaveLength(2);
  kv.isFull = false;
  await server.scheduler.advance(5_000);
  for (const [of, run] of runs) expect(await server.record(of, run)).toMatchObject({ status: "success" });
});

test("where the storage takes small writes alone, threads are loaded again at longer and longer intervals", async () => {
  const { kv, server, runs, warned } = await outage(true);
  const { woken } = server.system.figures;
  kv.takesSmallWrites = true;
  await server.scheduler.advance(600_000);
  // After 1, 2, 4, 8 and 16 seconds, then every 30.
  expect(server.system.figures.woken - woken).toBeLessThanOrEqual(25 * THREADS);
  expect(warned.length).toBeLessThanOrEqual(2 * 26);
  kv.isFull = false;
  await server.scheduler.advance(31_000);
  for (const [key, run] of runs) expect(await server.record(key, run)).toMatchObject({ status: "success" });
});

test("delayed runs that are due meanwhile start when the storage works again, and add no line", async () => {
  const { kv, server, warned } = await outage(false);
  kv.isFull = false;
  await server.scheduler.advance(5_000);
  const due: (readonly [Awaited<ReturnType<Server["thread"]>>, Awaited<ReturnType<Server["admit"]>>])[] = [];
  for (let i = 0; i < 20; i++) {
    const key = await server.thread();
    const draft = { ...draftOf(server.newId()), delay: 10_000 };
    due.push([key, await server.do(server.system.admit(key, draft))]);
  }
  warned.length = 0;
  kv.isFull = true;
  await server.scheduler.advance(600_000);
  expect(warned.length).toBeLessThanOrEqual(2);
  kv.isFull = false;
  await server.scheduler.advance(40_000);
  for (const [key, run] of due) expect(await server.record(key, run)).toMatchObject({ status: "success" });
  expect(warned.length).toBeLessThanOrEqual(2);
});
