import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ThreadSystem } from "../../actors/create-system.ts";
import type { ChannelChange, NewCheckpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { parseWebhookPolicy } from "../../src/config/webhooks.ts";
import { createMonotonicIds, uuid6 } from "../../src/model/ids.ts";
import type { Interrupt } from "../../src/model/interrupt.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { RunRecord, RunStatus } from "../../src/model/run.ts";
import { newThreadRecord, type ThreadKey, type ThreadRecord } from "../../src/model/thread.ts";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import type { Engine } from "../../src/ports/engine.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import type { Append } from "../../src/ports/journal.ts";
import { createStore, DEFAULT_STORE_POLICY } from "../../src/service/store/store.ts";
import { createService, type Service } from "../../src/service/service.ts";
import type { Storage } from "../../src/storage/open-storage.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { createRunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { runRecord, THREAD, Timers } from "../http/support.ts";
import { scheduler } from "../transport/rig.ts";

const KEY: ThreadKey = { tenant: "_", thread: THREAD };
const NOBODY: ThreadKey = { tenant: "_", thread: "01a1f8d4-0000-7000-8000-0000000000ff" };
const run = (n: number, change: Partial<RunRecord> = {}): RunRecord => ({
  ...runRecord(),
  run_id: `01a1f8d4-0000-7000-8000-00000000010${n}`,
  order: n,
  status: "success",
  ...change,
});
const checkpointId = (n: number) => uuid6(1_800_000_000_000 + n, 0, n, new Uint8Array(6));
const interrupt: Interrupt = {
  value: "ok?",
  id: "a27f7ef7ab8dbf83180f29fe9b348864",
  resumable: true,
  ns: ["ask:t1"],
  when: "during",
};
const waiting = { id: "t1", name: "ask", path: ["__pregel_pull", "ask"], triggers: [] };

let storage: Storage;
let service: Service;
let parts: Parameters<typeof createService>[0];
let thread: ThreadRecord;
let now = 1_000;
/** The run that the stubbed actors report as running. */
let running: string | undefined;
let settled: RunRecord | undefined;

beforeEach(async () => {
  const lines = () => undefined;
  const logger = { debug: lines, info: lines, warn: lines, error: lines };
  const clock = { now: () => now, mono: () => now };
  storage = await openStorage({ kind: "memory" }, { scheduler, clock, failpoints: noFailpoints, logger });
  running = undefined;
  settled = undefined;
  const system: ThreadSystem = {
    create: () => Promise.reject(new Error("not here")),
    admit: () => Promise.reject(new Error("not here")),
    update: () => Promise.reject(new Error("not here")),
    settled: async () => settled,
    ended: async () => ({ run: settled }),
    endWaits: () => undefined,
    forget: () => Promise.reject(new TypeError("nothing is deleted here")),
    cancel: async () => undefined,
    cancelOnDisconnect: () => undefined,
    keepTemporary: () => () => undefined,
    positionOf: () => undefined,
    isRunning: (_, id) => id === running,
    inspect: () => () => undefined,
    live: { list: () => [], threadOf: () => undefined },
    get figures(): never {
      throw new TypeError("nobody asks for figures here");
    },
    threads: {
      update: () => Promise.reject(new Error("not here")),
      copy: () => Promise.reject(new Error("not here")),
      remove: () => Promise.reject(new Error("not here")),
      prune: () => Promise.reject(new Error("not here")),
      expire: () => Promise.reject(new Error("not here")),
    },
    recover: async () => undefined,
    onTimer: () => undefined,
    onRunEnd: () => undefined,
    admitAll: () => Promise.reject(new Error("not here")),
    restoreRunEnd: () => Promise.reject(new Error("not here")),
    drain: async () => undefined,
    counts: { live: 0, busy: 0 },
  };
  const engine: Pick<Engine, "has" | "graphs" | "output"> = {
    output: () => null,
    has: (name) => name === "agent" || name === "other",
    graphs: () => ["agent", "other"],
  };
  const { journal, catalog, outbox, crons } = storage;
  let seed = 0;
  parts = {
    system,
    store: createStore({
      items: catalog.items,
      clock,
      scheduler: new Timers(),
      logger,
      policy: DEFAULT_STORE_POLICY,
    }),
    journal,
    catalog,
    outbox,
    crons,
    policy: parseWebhookPolicy({}),
    engine: engine as Engine,
    runLogs: createRunLogRegistry({ journal, scheduler: new Timers(), clock, logger } as Parameters<
      typeof createRunLogRegistry
    >[0]),
    clock,
    budget: new TimeBudget(clock, new Timers()),
    newId: createMonotonicIds(
      () => clock.now(),
      (count) => new Uint8Array(count).fill(++seed),
    ),
  };
  service = createService(parts);
  thread = { ...newThreadRecord(THREAD, 1_000, {}), seq: 1 };
  await storage.journal.append({
    key: KEY,
    fence: { epoch: 0, seq: 0 },
    kind: "created",
    durable: true,
    thread,
  });
});

afterEach(() => storage.close());

async function append(change: Partial<ThreadRecord>, rest: Partial<Append> = {}): Promise<void> {
  const fence = { epoch: thread.epoch, seq: thread.seq };
  thread = { ...thread, ...change, seq: thread.seq + 1 };
  await storage.journal.append({ key: KEY, fence, kind: "test", durable: true, thread, ...rest });
}

/** Stores a checkpoint of a run, the thread's latest from now on. */
async function step(n: number, made: RunRecord, values: JsonObject, more: Partial<NewCheckpoint> = {}) {
  const set = (value: unknown): ChannelChange => ({ kind: "set", value });
  const checkpoint: NewCheckpoint = {
    id: checkpointId(n),
    parent: thread.checkpoint,
    ns: "",
    step: n,
    source: "loop",
    created_at: 1_000 + n,
    run_id: made.run_id,
    metadata: {},
    writes: null,
    next: [],
    engine: null,
    graph: "h",
    changes: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, set(value)])),
    ...more,
  };
  await append({ checkpoint: checkpoint.id }, { checkpoints: [checkpoint], runs: [made] });
}

const left = (n: number, change: Partial<PendingTaskWrites>): PendingTaskWrites => ({
  ns: "",
  checkpoint: checkpointId(n),
  task: "t1",
  name: "ask",
  interrupts: [],
  resumes: [],
  steps: {},
  error: null,
  ...change,
});

describe("the outcome of a run", () => {
  const outcome = (record: RunRecord | undefined) => {
    settled = record;
    return service.runs.result(KEY, run(record?.order ?? 9, { status: "pending" }));
  };

  test("its last state", async () => {
    await step(1, run(1), { a: 1, b: [1] });
    expect(await outcome(run(1))).toEqual({ a: 1, b: [1] });
  });

  test("never null: no state yet, a run that is gone", async () => {
    expect(await outcome(run(1))).toEqual({});
    expect(await outcome(undefined)).toEqual({});
  });

  test("an error where the run is gone with its thread", async () => {
    settled = undefined;
    const gone = expect.objectContaining({ code: "thread.not_found" }) as Error;
    await expect(service.runs.result(NOBODY, run(1, { status: "pending" }))).rejects.toEqual(gone);
  });

  test("not an empty one where the thread is deleted once the run has been found", async () => {
    await step(1, run(1), { a: 1 });
    settled = undefined;
    expect(await service.runs.result(KEY, run(1))).toEqual({ a: 1 });
    await storage.journal.remove(KEY, thread);
    const gone = expect.objectContaining({ code: "thread.not_found" }) as Error;
    await expect(service.runs.result(KEY, run(1))).rejects.toEqual(gone);
  });

  test("paused at an interrupt: the state and what is asked", async () => {
    await step(1, run(1), { a: 1 }, { next: [waiting] });
    await append({ rest: "interrupted" }, { writes: [left(1, { interrupts: [interrupt] })] });
    expect(await outcome(run(1))).toEqual({ a: 1, __interrupt__: [interrupt] });
  });

  test("paused at a breakpoint: an empty list", async () => {
    await step(1, run(1), { a: 1 }, { next: [waiting] });
    expect(await outcome(run(1))).toEqual({ a: 1, __interrupt__: [] });
  });

  test("cancelled on its way: the state so far, and no pause", async () => {
    await step(1, run(1), { a: 1 }, { next: [waiting] });
    expect(await outcome(run(1, { status: "interrupted" }))).toEqual({ a: 1 });
  });

  test.each(["error", "timeout"] as const)("%s: what went wrong", async (status) => {
    await step(1, run(1), { a: 1 });
    const error = { error: "TypeError", message: "kaboom" };
    expect(await outcome(run(1, { status, error }))).toEqual({ __error__: error });
    expect(await outcome(run(1, { status }))).toMatchObject({ __error__: { error: "Error" } });
  });

  test("later runs have gone on: still its own last state", async () => {
    await step(1, run(1), { a: 1 });
    await step(2, run(1), { a: 2 }, { next: [waiting] });
    for (let n = 3; n < 250; n++) await step(n, run(2), { a: n });
    expect(await outcome(run(1, { status: "interrupted" }))).toEqual({ a: 2 });
    expect(await outcome(run(2))).toEqual({ a: 249 });
  });

  test("it made no checkpoint: the one that it started from", async () => {
    await step(1, run(1), { a: 1 });
    const idle = run(2, { base_checkpoint: checkpointId(1) });
    expect(await outcome(idle)).toEqual({ a: 1 });
    await step(2, run(3), { a: 3 });
    expect(await outcome(idle)).toEqual({ a: 1 });
  });

  test("it made none and started from none: nothing, whatever came later", async () => {
    await step(1, run(2), { a: 2 });
    expect(await outcome(run(1))).toEqual({});
  });
});

describe("threads", () => {
  test("a thread shows its state, and null before it has one", async () => {
    expect(await service.threads.get(KEY)).toMatchObject({ status: "idle", values: null });
    await step(1, run(1), { a: 1 });
    expect(await service.threads.get(KEY)).toMatchObject({ status: "idle", values: { a: 1 } });
  });

  test("a state before the first run is empty, not missing", async () => {
    expect(await service.threads.state(KEY, {})).toMatchObject({
      values: {},
      next: [],
      tasks: [],
      checkpoint: null,
      parent_checkpoint: null,
    });
  });

  test("its text says what it is now, however often it was asked for before", async () => {
    const all = {};
    const same = async () => {
      const text = String(await service.threads.stateText(KEY, all));
      expect(await service.threads.stateText(KEY, all)).toBe(text);
      expect(JSON.parse(text)).toEqual(await service.threads.state(KEY, all));
      return text;
    };
    const empty = await same();
    await step(1, run(1), { a: 1 });
    const first = await same();
    // Too long for the cache, and of a thread with a pending run.
    await step(2, run(1), { a: "x".repeat(20_000) });
    const long = await same();
    await step(3, run(1), { a: 3 }, { next: [waiting] });
    const paused = await same();
    await append({}, { writes: [left(3, { interrupts: [interrupt] })] });
    const asking = await same();
    expect(new Set([empty, first, long, paused, asking]).size).toBe(5);
    // Back to the earlier state: a rollback.
    await append({ checkpoint: checkpointId(1) });
    expect(await same()).toBe(first);
    // A large state is written piece by piece instead.
    await step(4, run(1), { a: "x".repeat(200_000) });
    expect(await service.threads.stateText(KEY, all)).toEqual(await service.threads.state(KEY, all));
    await append({ checkpoint: checkpointId(1) });
    const selected = await service.threads.stateText(KEY, { fields: new Set(["next"]) });
    expect(JSON.parse(String(selected))).toEqual({ next: [] });
    const nobody = async () => service.threads.stateText(NOBODY, all);
    await expect(nobody()).rejects.toMatchObject({ code: "thread.not_found" });
  });

  test("only the keys that are asked for", async () => {
    await step(1, run(1), { a: 1, b: 2 });
    const state = (keys: readonly string[]) =>
      service.threads.state(KEY, { fields: new Set(["values"]), keys });
    expect(await state(["a"])).toEqual({ values: { a: 1 } });
    expect(await state(["nope", "__proto__", "constructor"])).toEqual({ values: {} });
    expect(await state([])).toEqual({ values: {} });
  });

  test.each(["get", "state"] as const)("%s of an unknown one", async (what) => {
    const asked = what === "get" ? service.threads.get(NOBODY) : service.threads.state(NOBODY, {});
    await expect(asked).rejects.toMatchObject({
      code: "thread.not_found",
      message: `Thread with ID ${NOBODY.thread} not found`,
    });
  });
});

describe("runs", () => {
  const ids = async (page: Parameters<Service["runs"]["list"]>[1]) => {
    const orders: number[] = [];
    for await (const { order } of (await service.runs.list(KEY, page)).runs) orders.push(order);
    return orders;
  };
  const total = async (status?: RunStatus) =>
    (await service.runs.list(KEY, { limit: 1, offset: 0, ...(status && { status }) })).total;

  test("newest first, in pages, by status", async () => {
    const active = run(3, { status: "pending" });
    const queued = [run(4, { status: "pending" }), run(5, { status: "pending" })];
    await append(
      { active: active.run_id, queue: queued.map(({ run_id }) => run_id) },
      { runs: [run(1), run(2, { status: "error" }), active, ...queued] },
    );
    running = active.run_id;
    expect(await ids({ limit: 10, offset: 0 })).toEqual([5, 4, 3, 2, 1]);
    expect(await ids({ limit: 2, offset: 1 })).toEqual([4, 3]);
    expect(await ids({ limit: 10, offset: 0, status: "error" })).toEqual([2]);
    expect(await ids({ limit: 10, offset: 0, status: "running" })).toEqual([3]);
    expect(await ids({ limit: 10, offset: 1, status: "running" })).toEqual([]);
    expect(await ids({ limit: 10, offset: 0, status: "pending" })).toEqual([5, 4]);
    expect(await ids({ limit: 1, offset: 1, status: "pending" })).toEqual([4]);
    expect([await total(), await total("error"), await total("timeout")]).toEqual([5, 1, 0]);
    expect([await total("running"), await total("pending")]).toEqual([1, 2]);
    expect(service.runs.show(KEY, active)["status"]).toBe("running");
    expect(service.runs.show(KEY, queued[0] as RunRecord)["status"]).toBe("pending");
  });

  test("an unknown run, an unknown thread", async () => {
    await expect(service.runs.find(KEY, run(1).run_id)).rejects.toMatchObject({ code: "run.not_found" });
    await expect(service.runs.find(NOBODY, run(1).run_id)).rejects.toMatchObject({
      code: "thread.not_found",
    });
    await expect(service.runs.list(NOBODY, { limit: 1, offset: 0 })).rejects.toMatchObject({
      code: "thread.not_found",
    });
    const asked = { assistant_id: "agent" };
    await expect(service.runs.start(NOBODY, asked)).rejects.toMatchObject({ code: "thread.not_found" });
    await expect(service.runs.start(KEY, { assistant_id: "nope" })).rejects.toMatchObject({
      code: "assistant.not_found",
      message:
        'No assistant found for "nope". Make sure the assistant ID is for a valid assistant or a valid graph ID.',
    });
  });
});

describe("assistants", () => {
  test("every graph has one, found by its name and by its id", async () => {
    const byName = await service.assistants.resolve("_", "agent");
    expect(byName).toMatchObject({
      assistant_id: "fe096781-5601-53d2-b2f6-0d3403f7e9ca",
      name: "agent",
      config: {},
      metadata: { created_by: "system" },
    });
    expect(await service.assistants.get("_", byName.assistant_id.toUpperCase())).toBe(byName);
    await expect(async () => service.assistants.get("_", "nope")).rejects.toMatchObject({
      code: "assistant.not_found",
    });
  });

  test("a created one is found, by its tenant alone", async () => {
    const made = await service.assistants.create("_", {
      graph_id: "agent",
      config: { configurable: { x: 1 } },
    });
    expect(made).toMatchObject({
      name: "Untitled",
      version: 1,
      description: null,
      context: {},
      metadata: {},
    });
    expect(await service.assistants.get("_", made.assistant_id)).toEqual(made);
    await expect(async () => service.assistants.get("other", made.assistant_id)).rejects.toMatchObject({
      code: "assistant.not_found",
    });
  });

  test("an unknown graph is refused", async () => {
    await expect(service.assistants.create("_", { graph_id: "nope" })).rejects.toMatchObject({
      code: "graph.not_found",
    });
  });

  test("a taken id: refused, or answered as it is, and two at once never both make it", async () => {
    const assistant_id = run(1).run_id;
    const ask = (name: string, if_exists?: "do_nothing") =>
      service.assistants.create("_", {
        graph_id: "agent",
        assistant_id,
        name,
        ...(if_exists && { if_exists }),
      });
    const raced = await Promise.allSettled([ask("one"), ask("two"), ask("three")]);
    expect(raced.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(await ask("four", "do_nothing")).toMatchObject({ name: "one" });
    const system = (await service.assistants.resolve("_", "agent")).assistant_id;
    await expect(
      service.assistants.create("_", { graph_id: "agent", assistant_id: system }),
    ).rejects.toMatchObject({ code: "assistant.exists" });
  });

  test("pages: newest first, the default ones last, each exactly once", async () => {
    for (let i = 0; i < 5; i++) {
      now += 1_000;
      await service.assistants.create("_", { graph_id: "agent", name: `a${i}`, metadata: { n: i } });
    }
    for (const limit of [1, 2, 3, 4, 5, 6, 7, 100]) {
      const names: string[] = [];
      for (let offset = 0; offset < 7; offset += limit) {
        const { assistants, total } = await service.assistants.search("_", { limit, offset });
        expect(total).toBe(7);
        names.push(...assistants.map(({ name }) => name));
      }
      expect(names).toEqual(["a4", "a3", "a2", "a1", "a0", "agent", "other"]);
    }
  });

  test("filters hold for the default ones too", async () => {
    await service.assistants.create("_", { graph_id: "other", name: "mine", metadata: { tags: ["x", "y"] } });
    const names = async (filter: object) =>
      (await service.assistants.search("_", { limit: 10, offset: 0, ...filter })).assistants.map(
        ({ name }) => name,
      );
    expect(await names({ graph_id: "other" })).toEqual(["mine", "other"]);
    expect(await names({ metadata: { created_by: "system" } })).toEqual(["agent", "other"]);
    expect(await names({ metadata: { created_by: "me" } })).toEqual([]);
  });
});

test("a rollback while a thread is being read: it is read once more, never half", async () => {
  let reads = 0;
  const journal = new Proxy(storage.journal, {
    get(target, name) {
      if (name === "thread") {
        return () => (++reads === 1 ? { ...thread, checkpoint: "gone" } : { ...thread, seq: 2 });
      }
      const member = Reflect.get(target, name) as unknown;
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
  const { threads } = createService({ ...parts, journal });
  expect(await threads.get(KEY)).toMatchObject({ thread_id: THREAD, values: null });
  expect(reads).toBeGreaterThan(1);
});
