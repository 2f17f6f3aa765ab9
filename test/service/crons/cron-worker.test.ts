import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../../src/index.ts";
import type { CronRecord } from "../../../src/model/cron.ts";
import { defaultAssistantId } from "../../../src/model/ids.ts";
import type { ThreadKey } from "../../../src/model/thread.ts";
import { TimeBudget } from "../../../src/ports/time-budget.ts";
import type { CronStorage } from "../../../src/ports/cron-storage.ts";
import { CronOutcomes } from "../../../src/service/crons/cron-outcomes.ts";
import { CronWorker } from "../../../src/service/crons/cron-worker.ts";
import { createService, type Service } from "../../../src/service/service.ts";
import { createStore, DEFAULT_STORE_POLICY } from "../../../src/service/store/store.ts";
import { createLogger } from "../../../src/platform/log.ts";
import { MemoryKeyValueStore } from "../../../src/storage/memory-key-value-store.ts";
import { parseWebhookPolicy } from "../../../src/config/webhooks.ts";
import { Server } from "../../actors/server.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.parse("2026-03-28T12:00:30Z");

const named = graph({
  state: { name: value(""), log: list<string>() },
  nodes: {
    work: async ({ name }, ctx) => {
      if (name === "bad") throw new RangeError("no such file");
      return { log: [`${name} ${String(ctx.config["metadata"] !== null)}`] };
    },
  },
  edges: { start: "work" },
});

interface Rig {
  readonly server: Server;
  readonly service: Service;
  readonly worker: CronWorker;
  readonly lines: string[];
}

/** A server whose crons fire by a clock that the test advances. */
async function rig({
  kv = new MemoryKeyValueStore(),
  at = START,
  seed = 1,
  cronStorage,
}: {
  kv?: MemoryKeyValueStore;
  at?: number;
  seed?: number;
  cronStorage?: (cronStorage: CronStorage) => CronStorage;
} = {}): Promise<Rig> {
  const server = await Server.start(named, { kv, at, seed });
  const { storage, system, runLogs, engine, clock, scheduler } = server;
  const { journal, catalog, outbox, crons } = storage;
  const policy = parseWebhookPolicy({});
  const quiet = createLogger({ clock, level: "error", write: () => undefined });
  const store = createStore({
    items: catalog.items,
    clock,
    scheduler,
    logger: quiet,
    policy: DEFAULT_STORE_POLICY,
  });
  const service = createService({
    system,
    journal,
    catalog,
    outbox,
    crons,
    engine,
    runLogs,
    clock,
    budget: new TimeBudget(clock, scheduler),
    newId: server.newId,
    policy,
    store,
  });
  const lines: string[] = [];
  const line = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const logger = { debug: () => undefined, info: line, warn: line, error: line };
  const worker = new CronWorker({
    journal,
    cronStorage: cronStorage?.(crons) ?? crons,
    crons: service.crons,
    runsOf: () => service.runs,
    clock,
    scheduler,
    logger,
  });
  const outcomes = new CronOutcomes(crons, logger);
  system.onRunEnd(({ tenant }, run) => outcomes.runEnded(tenant, run));
  worker.start();
  await scheduler.settle();
  return { server, service, worker, lines };
}

async function pass({ server: { scheduler } }: Rig, ms: number): Promise<void> {
  await scheduler.advance(ms);
  await scheduler.settle();
}

const asked = { assistant_id: "graph", schedule: "* * * * *", run: { input: { name: "tick" } } };

async function on(rig: Rig, more: object = {}): Promise<{ key: ThreadKey; cron: CronRecord }> {
  const key = await rig.server.thread();
  const cron = await rig.server.do(rig.service.crons.createOn(key, { ...asked, ...more }));
  return { key, cron };
}

const runsOf = async ({ server }: Rig, key: ThreadKey) =>
  (await server.storage.journal.runs(key, { limit: 1_000, offset: 0 })).map(({ created_at }) =>
    new Date(created_at).toISOString().slice(11, 16),
  );

const nextOf = async ({ service }: Rig, { cron_id }: CronRecord) =>
  (await service.crons.get("_", cron_id)).next;

describe("a cron on a thread", () => {
  test("fires at every slot, with its metadata and its name, and the same input", async () => {
    const one = await rig();
    const { key, cron } = await on(one, { metadata: { who: "me" } });
    expect(cron).toMatchObject({
      next: START + MINUTE / 2,
      assistant_id: defaultAssistantId("graph"),
      on_run_completed: null,
    });
    await pass(one, 3 * MINUTE);
    expect(await runsOf(one, key)).toEqual(["12:03", "12:02", "12:01"]);
    const [run] = await one.server.storage.journal.runs(key, { limit: 1, offset: 0 });
    expect(run).toMatchObject({
      multitask_strategy: "enqueue",
      metadata: { who: "me", cron_id: cron.cron_id, graph_id: "graph" },
      kwargs: { input: { name: "tick" } },
    });
    expect(await one.server.values(key)).toMatchObject({ log: Array(3).fill("tick true") });
    expect(await nextOf(one, cron)).toBe(Date.parse("2026-03-28T12:04:00Z"));
  });

  test("not after its end, nor while it is off; turned on, it goes on from then", async () => {
    const one = await rig();
    const { key, cron } = await on(one, { end_time: START + 100 * MINUTE });
    await pass(one, MINUTE);
    await one.server.do(one.service.crons.update("_", cron.cron_id, { enabled: false, run: {} }));
    expect(await nextOf(one, cron)).toBeNull();
    await pass(one, HOUR);
    await one.server.do(
      one.service.crons.update("_", cron.cron_id, { enabled: true, run: { input: { name: "new" } } }),
    );
    await pass(one, MINUTE);
    expect(await runsOf(one, key)).toEqual(["13:02", "12:01"]);
    await pass(one, 10 * HOUR);
    expect((await runsOf(one, key))[0]).toBe("13:40");
    expect(await nextOf(one, cron)).toBeNull();
    await one.server.do(one.service.crons.update("_", cron.cron_id, { end_time: null, run: {} }));
    await pass(one, MINUTE);
    expect((await runsOf(one, key))[0]).toBe("23:03");
  });

  test("goes with its thread, and says why", async () => {
    const one = await rig();
    const { key, cron } = await on(one);
    const { epoch, seq } = (await one.server.storage.journal.thread(key)) ?? { epoch: 0, seq: 0 };
    await one.server.do(one.server.storage.journal.remove(key, { epoch, seq }));
    await pass(one, MINUTE);
    await expect(one.service.crons.get("_", cron.cron_id)).rejects.toMatchObject({ code: "cron.not_found" });
    expect(one.lines.join()).toContain("thread.not_found");
    expect(one.server.scheduler.timers).toBeLessThan(5);
  });

  test("what refuses one slot leaves the next", async () => {
    const one = await rig();
    const { key, cron } = await on(one);
    // As one that was created while its graph still accepted it.
    const at = { tenant: "_", cron: cron.cron_id };
    const nonsense = { payload: { input: { nonsense: 1 } } };
    await one.server.do(one.server.storage.crons.change(at, (made) => made && { ...made, ...nonsense }));
    await pass(one, MINUTE);
    expect(await runsOf(one, key)).toEqual([]);
    expect(one.lines.join()).toContain("validation.failed");
    const { last_run } = await one.service.crons.get("_", cron.cron_id);
    expect(last_run).toMatchObject({
      run_id: null,
      status: "error",
      error: { message: expect.any(String) as string },
    });
    await one.server.do(one.service.crons.update("_", cron.cron_id, { run: { input: { name: "mended" } } }));
    await pass(one, MINUTE);
    expect(await runsOf(one, key)).toEqual(["12:02"]);
  });

  test("keeps to its zone when the clocks change", async () => {
    const one = await rig();
    const { key } = await on(one, { schedule: "30 2 * * *", timezone: "Europe/Berlin" });
    await pass(one, 48 * HOUR);
    // At 03:00 summer time, and at 02:30 on the next day.
    expect(await runsOf(one, key)).toEqual(["00:30", "01:00"]);
  });
});

describe("a cron without a thread", () => {
  test.each(["delete", "keep"] as const)(
    "has one made for each run; on_run_completed %s",
    async (on_run_completed) => {
      const one = await rig();
      await one.server.do(one.service.crons.create("_", { ...asked, on_run_completed }));
      await pass(one, 2 * MINUTE);
      await pass(one, 0);
      const threads = await one.server.storage.catalog.threads("_", { limit: 10 });
      expect(threads).toHaveLength(on_run_completed === "keep" ? 2 : 0);
      for (const key of threads) expect(await one.server.values(key)).toMatchObject({ log: ["tick true"] });
    },
  );
});

describe("over a stop and a start", () => {
  test("of the slots that were missed one is made up for", async () => {
    const kv = new MemoryKeyValueStore();
    const one = await rig({ kv });
    const { key, cron } = await on(one);
    await pass(one, MINUTE);
    one.server.scheduler.kill();
    const two = await rig({ kv, at: START + 10 * HOUR, seed: 2 });
    await two.server.scheduler.settle();
    expect(await runsOf(two, key)).toEqual(["22:00", "12:01"]);
    expect(await nextOf(two, cron)).toBe(Date.parse("2026-03-28T22:01:00Z"));
    await pass(two, MINUTE);
    expect((await runsOf(two, key))[0]).toBe("22:01");
  });

  test("one whose end has passed meanwhile is not made up for", async () => {
    const kv = new MemoryKeyValueStore();
    const one = await rig({ kv });
    const { key, cron } = await on(one, { end_time: START + HOUR });
    one.server.scheduler.kill();
    const two = await rig({ kv, at: START + 10 * HOUR, seed: 2 });
    await two.server.scheduler.settle();
    expect(await runsOf(two, key)).toEqual([]);
    expect(await nextOf(two, cron)).toBeNull();
  });

  test.each([MINUTE, 30 * HOUR])(
    "killed between a run's admission and its own step, it does not fire twice, %d ms later",
    async (later) => {
      const kv = new MemoryKeyValueStore();
      let firing = false;
      const one = await rig({
        kv,
        // The change that advances the cron is never stored: the process is dead by then.
        cronStorage: (cronStorage) => ({
          find: (key) => cronStorage.find(key),
          list: (tenant) => cronStorage.list(tenant),
          ofThread: (tenant, thread) => cronStorage.ofThread(tenant, thread),
          next: (limit) => cronStorage.next(limit),
          change: () => {
            firing = true;
            return new Promise(() => undefined);
          },
        }),
      });
      const { key } = await on(one);
      await pass(one, MINUTE);
      expect(firing).toBe(true);
      expect(await runsOf(one, key)).toEqual(["12:01"]);
      one.server.scheduler.kill();
      const two = await rig({ kv, at: START + later, seed: 2 });
      await two.server.scheduler.settle();
      expect(await runsOf(two, key)).toEqual(["12:01"]);
    },
  );

  test("storage that fails for a while costs no slot", async () => {
    const kv = new MemoryKeyValueStore();
    const one = await rig({ kv });
    const { key } = await on(one);
    const { batch } = kv;
    const refuse = () => Promise.reject(new Error("the disk is full"));
    kv.batch = refuse as typeof batch;
    let reads = 0;
    const { entries } = kv;
    kv.entries = (...args) => {
      reads++;
      return entries.apply(kv, args);
    };
    await pass(one, MINUTE / 2 + 25_000);
    expect(await runsOf(one, key)).toEqual([]);
    // It waits for the storage, instead of trying again and again; the storage itself logs its failure.
    expect(reads).toBeLessThan(10);
    expect(one.lines).toEqual([]);
    kv.batch = batch;
    await pass(one, 20_000);
    expect(await runsOf(one, key)).toHaveLength(1);
  });

  test("a stop does not wait for storage that fails", async () => {
    const kv = new MemoryKeyValueStore();
    const one = await rig({ kv });
    await on(one);
    kv.batch = () => Promise.reject(new Error("the disk is full"));
    await pass(one, MINUTE);
    await one.server.do(one.worker.stop());
    expect(one.lines).toEqual([]);
  });
});

test("the clock on the wall is set forward: the slot comes soon; set back: no slot comes twice", async () => {
  const one = await rig();
  const { key } = await on(one, { schedule: "0 * * * *" });
  one.server.clock.jump(HOUR);
  await pass(one, MINUTE);
  expect(await runsOf(one, key)).toHaveLength(1);
  one.server.clock.jump(-HOUR);
  await pass(one, 50 * MINUTE);
  expect(await runsOf(one, key)).toHaveLength(1);
});

test("how the last run ended stays on the cron, when the run is deleted with its thread, and over a restart", async () => {
  const kv = new MemoryKeyValueStore();
  const one = await rig({ kv });
  const failing = { ...asked, schedule: "1 12 * * *", run: { input: { name: "bad" } } };
  const { cron_id } = await one.server.do(one.service.crons.create("_", failing));
  expect(await one.service.crons.get("_", cron_id)).not.toHaveProperty("last_run");
  await pass(one, 5 * MINUTE);
  expect(await one.server.do(one.service.threads.count("_", {}))).toBe(0);
  one.server.scheduler.kill();
  const two = await rig({ kv, at: START + HOUR, seed: 2 });
  const { last_run } = await two.service.crons.get("_", cron_id);
  expect(last_run).toEqual({
    run_id: expect.any(String) as string,
    status: "error",
    error: { error: "RangeError", message: "no such file" },
    ended_at: expect.any(Number) as number,
  });
  expect((last_run?.ended_at ?? 0) - Date.parse("2026-03-28T12:01:00Z")).toBeLessThan(1_000);
});
