import { beforeEach, describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

/** Two states of 10,000 characters reach the limit. */
const limits = { largeState: 5_000, maxStateBytes: 20_000 };
const NO_ROOM = { used: 1_000_000, limit: 0 };
const ROOM = { used: 0, limit: 1_000_000 };

let server: Server;
let kv: MemoryKeyValueStore;
let heap: { used: number; limit: number };
/** By the name in its input: the function that releases a run whose node waits. */
let waiting: Map<string, () => void>;

/** Each run sets `text`. A run with a `name` waits until the test releases it, and then may set it again. */
const work = graph({
  state: { text: value(""), name: value(""), grow: value(-1), log: list<string>() },
  nodes: {
    work: async ({ name, grow }) => {
      if (name !== "") await new Promise<void>((resolve) => waiting.set(name, resolve));
      return { name: "", grow: -1, log: [name], ...(grow >= 0 && { text: "x".repeat(grow) }) };
    },
  },
  edges: { start: "work" },
});

const start = () => Server.start(work, { kv, limits: { ...limits, idle: 1_000 }, heap: () => heap });

beforeEach(async () => {
  kv = new MemoryKeyValueStore();
  heap = NO_ROOM;
  waiting = new Map();
  server = await start();
});

const settled = (key: ThreadKey, { run_id }: RunRecord) => server.do(server.system.settled(key, run_id));

/** A thread with a state of about `bytes`, which is not in memory. */
async function thread(bytes: number): Promise<ThreadKey> {
  const key = await server.thread();
  await settled(key, await server.admit(key, { input: { text: "x".repeat(bytes) } }));
  await server.scheduler.advance(3_000);
  expect(server.system.counts.live).toBe(0);
  return key;
}

/** Threads with states of about `bytes` each. */
async function threads(count: number, bytes: number): Promise<ThreadKey[]> {
  const keys: ThreadKey[] = [];
  // oxlint-disable-next-line no-await-in-loop -- each thread leaves memory before the next is created
  while (keys.length < count) keys.push(await thread(bytes));
  return keys;
}

/** Starts a run with a small input that waits until it is released. */
async function run(key: ThreadKey, name: string, more: object = {}): Promise<RunRecord> {
  const admitted = await server.admit(key, { input: { name }, strategy: "enqueue", ...more });
  await server.scheduler.settle();
  return admitted;
}

/** The names of the runs whose nodes wait, in the order of their start. */
const atWork = () => [...waiting.keys()];

async function goOn(name: string): Promise<void> {
  waiting.get(name)?.();
  waiting.delete(name);
  await server.scheduler.settle();
}

const inMemory = () => server.system.figures.stateBytes;

describe("runs on threads with large states", () => {
  test("wait while those in progress take too much memory, and begin one after the other", async () => {
    const keys = await threads(5, 10_000);
    const runs: RunRecord[] = [];
    for (const [i, key] of keys.entries()) runs.push(await run(key, `${i}`));
    expect(atWork()).toEqual(["0", "1"]);
    expect(inMemory()).toBeGreaterThan(20_000);
    expect(inMemory()).toBeLessThan(25_000);
    const [, , third, , last] = runs;
    if (third === undefined || last === undefined) throw new TypeError("there are five");
    expect(await server.record(keys[2] as ThreadKey, third)).toMatchObject({ status: "pending", attempt: 0 });
    expect(server.system.isRunning(keys[2] as ThreadKey, third.run_id)).toBe(false);
    expect(server.system.positionOf(keys[4] as ThreadKey, last.run_id)).toBe(3);
    for (const name of ["1", "0"]) await goOn(name);
    expect(atWork()).toEqual(["2", "3"]);
    for (const name of ["2", "3", "4"]) await goOn(name);
    for (const [i, key] of keys.entries()) {
      expect(await settled(key, runs[i] as RunRecord)).toMatchObject({ status: "success", attempt: 1 });
      expect((await server.values(key))["log"]).toEqual(["", `${i}`]);
    }
    expect(inMemory()).toBe(0);
    expect(server.system.figures).toMatchObject({ queued: 0, waiting: 0 });
  });

  test("do not hold up runs on others", async () => {
    const small = await thread(10);
    const keys = await threads(3, 10_000);
    for (const [i, key] of keys.entries()) await run(key, `large ${i}`);
    await run(small, "small");
    await run(await server.thread(), "new");
    expect(atWork()).toEqual(["large 0", "large 1", "small", "new"]);
  });

  test("are not held in memory meanwhile, also where another run of the thread has just ended", async () => {
    const keys = await threads(3, 10_000);
    for (const [i, key] of keys.entries()) await run(key, `first ${i}`);
    const [one, two, three] = keys as [ThreadKey, ThreadKey, ThreadKey];
    const queued = await run(one, "second");
    const reads: ThreadKey[] = [];
    const { journal } = server.storage;
    const values = journal.values.bind(journal);
    journal.values = (key, ...rest) => {
      reads.push(key);
      return values(key, ...rest);
    };
    // The slot goes to the first run in the queue, on another thread; the state of this one is dropped.
    await goOn("first 0");
    expect(atWork()).toEqual(["first 1", "first 2"]);
    expect(reads).toEqual([three]);
    await goOn("first 1");
    expect(reads).toEqual([three, one]);
    await goOn("second");
    expect((await settled(one, queued))?.status).toBe("success");
    expect((await server.values(one))["log"]).toEqual(["", "first 0", "second"]);
    expect(two).toBeDefined();
  });

  test("begin one each second while there is room in the heap: one may wait for another that it started", async () => {
    const keys = await threads(3, 30_000);
    heap = ROOM;
    await run(keys[0] as ThreadKey, "above");
    await run(keys[1] as ThreadKey, "below");
    await run(keys[2] as ThreadKey, "another");
    expect(atWork()).toEqual(["above"]);
    await server.scheduler.advance(1_000);
    expect(atWork()).toEqual(["above", "below"]);
    for (const name of ["below", "above", "another"]) await goOn(name);
    expect(inMemory()).toBe(0);
  });

  test("can be cancelled, and their threads deleted", async () => {
    const keys = await threads(4, 20_000);
    const runs: RunRecord[] = [];
    for (const [i, key] of keys.entries()) runs.push(await run(key, `${i}`));
    const [, one, two, three] = keys as [ThreadKey, ThreadKey, ThreadKey, ThreadKey];
    const cancelled = runs[1] as RunRecord;
    await server.do(server.system.cancel(one, cancelled.run_id, "interrupt"));
    expect(await settled(one, cancelled)).toMatchObject({ status: "interrupted", attempt: 0 });
    expect(await server.storage.journal.thread(one)).toMatchObject({
      active: null,
      queue: [],
      rest: "success",
    });
    await server.do(server.system.threads.remove(two));
    expect(await server.storage.journal.thread(two)).toBeUndefined();
    const newer = await run(three, "newer", { strategy: "rollback" });
    expect(await server.record(three, runs[3] as RunRecord)).toBeUndefined();
    await goOn("0");
    expect(atWork()).toEqual(["newer"]);
    await goOn("newer");
    expect((await settled(three, newer))?.status).toBe("success");
    expect((await server.values(one))["log"]).toEqual([""]);
  });

  test.each(["stop", "kill"] as const)("wait again after a %s, and count no attempt", async (how) => {
    const keys = await threads(4, 20_000);
    const runs: RunRecord[] = [];
    for (const [i, key] of keys.entries()) runs.push(await run(key, `${i}`));
    if (how === "stop") {
      const drained = server.system.drain(5_000);
      await server.scheduler.settle();
      // It gets no more memory from now on.
      await goOn("0");
      await server.do(drained);
      await server.do(server.storage.close());
    } else server.scheduler.kill();
    waiting.clear();
    server = await start();
    await server.scheduler.settle();
    const first = how === "stop" ? "1" : "0";
    expect(atWork()).toEqual([first]);
    for (let i = Number(first); i < 4; i++) await goOn(`${i}`);
    for (const [i, key] of keys.entries()) {
      const attempt = how === "kill" && i === 0 ? 2 : 1;
      expect(await settled(key, runs[i] as RunRecord)).toMatchObject({ status: "success", attempt });
    }
  });
});

describe("what makes a state large", () => {
  /** A run on the thread waits while another state takes all the memory. */
  async function isLarge(key: ThreadKey, kwargs: object = {}): Promise<boolean> {
    const other = await thread(30_000);
    await run(other, "other");
    const asked = await run(key, "asked", kwargs);
    const waits = !waiting.has("asked");
    await goOn("other");
    expect(atWork()).toEqual(["asked"]);
    await goOn("asked");
    expect((await settled(key, asked))?.status).toBe("success");
    expect(inMemory()).toBe(0);
    await server.scheduler.advance(3_000);
    return waits;
  }

  test("is what runs have stored", async () => {
    expect(await isLarge(await thread(10_000))).toBe(true);
    expect(await isLarge(await thread(100))).toBe(false);
    // Small changes that add up to a large state.
    const key = await server.thread();
    for (let i = 0; i < 20; i++) {
      await settled(key, await server.admit(key, { input: { log: ["x".repeat(500)] } }));
      await server.scheduler.advance(3_000);
    }
    expect(await isLarge(key)).toBe(true);
  });

  test("are no changes that replace each other", async () => {
    const key = await server.thread();
    for (let i = 0; i < 20; i++) {
      await settled(key, await server.admit(key, { input: { text: "x".repeat(500) } }));
      await server.scheduler.advance(3_000);
    }
    expect((await server.storage.journal.thread(key))?.state_bytes).toBeLessThan(limits.largeState);
  });

  test("is an older state that the run begins from", async () => {
    const key = await thread(10_000);
    const from = (await server.storage.journal.thread(key))?.checkpoint;
    await settled(key, await server.admit(key, { input: { text: "" } }));
    await server.scheduler.advance(3_000);
    const config = { configurable: { checkpoint_id: from } };
    expect(await isLarge(key, { config })).toBe(true);
  });

  test("is an update by a client, and a thread that is created with a state", async () => {
    const writes = [{ values: { text: "x".repeat(10_000) }, as_node: "work" }];
    const first = await thread(1);
    await server.do(server.system.update(first, { from: null, ns: "", supersteps: [writes] as never }));
    await server.scheduler.advance(3_000);
    expect(await isLarge(first)).toBe(true);
    const created = { tenant: "_", thread: server.newId() };
    const metadata = { graph_id: "graph" };
    const draft = { metadata, supersteps: [writes] as never, if_exists: "raise" } as const;
    await server.do(server.system.create(created, draft));
    expect(await isLarge(created)).toBe(true);
  });

  test("is that of a copied thread", async () => {
    const copy = { tenant: "_", thread: server.newId() };
    await server.do(server.system.threads.copy(await thread(10_000), copy));
    expect(await isLarge(copy)).toBe(true);
  });

  test("is the input of the run", async () => {
    const key = await server.thread();
    expect(await isLarge(key, { input: { name: "asked", text: "x".repeat(10_000) } })).toBe(true);
    expect(await isLarge(await server.thread(), { context: { text: "x".repeat(10_000) } })).toBe(true);
  });

  test("is what a node returns, from then on", async () => {
    const key = await server.thread();
    await run(key, "grows", { input: { name: "grows", grow: 10_000 } });
    expect(inMemory()).toBe(0);
    await goOn("grows");
    await server.scheduler.advance(3_000);
    expect(await isLarge(key)).toBe(true);
  });

  test("is learned when it is read, where an older version has stored the thread", async () => {
    const key = await thread(30_000);
    const { journal } = server.storage;
    const record = await journal.thread(key);
    if (record === undefined) throw new TypeError("there is no thread");
    const { epoch, seq } = record;
    await server.do(
      journal.append({
        key,
        fence: { epoch, seq },
        kind: "updated",
        durable: true,
        thread: { ...record, seq: seq + 1, state_bytes: null },
      }),
    );
    journal.release(key);
    await run(key, "first");
    expect(inMemory()).toBeGreaterThan(30_000);
    await goOn("first");
    expect((await journal.thread(key))?.state_bytes).toBeGreaterThan(30_000);
  });
});

test("the inputs of runs that wait take no more memory than is allowed", async () => {
  const key = await thread(30_000);
  server = await Server.start(work, {
    kv,
    limits: { ...limits, maxQueuedBytes: 50_000, maxQueuedBytesPerTenant: 40_000 },
    heap: () => heap,
  });
  await run(key, "first");
  const admit = (tenant: string, bytes: number) => {
    const draft = draftOf(server.newId(), { input: { text: "x".repeat(bytes) } });
    const key = { tenant, thread: server.newId() };
    return server.do(server.system.admit(key, { ...draft, create: {} }));
  };
  const BUSY = { code: "server.busy", message: expect.stringContaining("memory") };
  await admit("a", 25_000);
  await expect(admit("a", 25_000)).rejects.toMatchObject(BUSY);
  await admit("b", 10_000);
  await expect(admit("c", 25_000)).rejects.toMatchObject(BUSY);
  await goOn("first");
  expect(server.system.figures.queued).toBe(0);
  await admit("a", 25_000);
});
