import { createSystem, defaultLimits, type ThreadSystem } from "../../actors/create-system.ts";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { createInThreadNodeExecutor } from "../../src/engine/in-thread-node-executor.ts";
import { createNativeEngine } from "../../src/engine/native-engine.ts";
import { GraphRegistry } from "../../src/graph/graph-registry.ts";
import { createMonotonicIds } from "../../src/model/ids.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import type { HttpClient } from "../../src/ports/http-client.ts";
import type { Logger } from "../../src/ports/logger.ts";
import { CronWorker } from "../../src/service/crons/cron-worker.ts";
import { createTimerHandler } from "../../src/service/admit-timer-run.ts";
import { createService, type Service } from "../../src/service/service.ts";
import { createStore, DEFAULT_STORE_POLICY } from "../../src/service/store/store.ts";
import { WebhookWorker } from "../../src/service/webhooks/webhook-worker.ts";
import type { RunMemoryLimits } from "../../actors/run-memory-budget.ts";
import type { LargeWriteLimits } from "../../src/storage/large-write-queue.ts";
import { openStorage, type Storage } from "../../src/storage/open-storage.ts";
import type { KeyValueStore } from "../../src/ports/key-value-store.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { parseWebhookPolicy } from "../../src/config/webhooks.ts";
import { simulated, type Sleep } from "./graph.ts";
import { simulatedMachine } from "./machines.ts";
import type { Observed } from "./observed.ts";
import type { SimulatedRandom } from "./random.ts";
import type { SimulatedScheduler } from "./scheduler.ts";

export interface ServerDeps {
  readonly scheduler: SimulatedScheduler;
  readonly clock: Clock;
  readonly random: SimulatedRandom;
  readonly logger: Logger;
  readonly kv: KeyValueStore;
  readonly observed: Observed;
  readonly client: HttpClient;
  readonly sleep: Sleep;
  readonly boot: string;
  /** The largest number of concurrent runs. */
  readonly slots: number;
  readonly largeWrites: LargeWriteLimits | undefined;
  readonly runningStates: RunMemoryLimits | undefined;
}

/** One life of the server, from a start to a stop or a crash. */
export interface Life {
  readonly storage: Storage;
  readonly runLogs: RunLogRegistry;
  readonly system: ThreadSystem;
  readonly service: Service;
  /** Stops gracefully, as `App.close` does. */
  stop(ms: number): Promise<void>;
}

/** Milliseconds for webhooks that are in flight when the server stops. */
const WEBHOOK_DRAIN = 2_000;

/** Starts a whole server without its sockets. Resolves when it would begin to listen. */
export async function startServer(deps: ServerDeps): Promise<Life> {
  const { scheduler, clock, random, logger, observed } = deps;
  const storage = await openStorage(
    { kind: "key-value", store: deps.kv },
    {
      scheduler,
      clock,
      failpoints: noFailpoints,
      logger,
      ...(deps.largeWrites && { largeWrites: deps.largeWrites }),
    },
  );
  const journal = observed.journal(storage.journal);
  const runLogs = createRunLogRegistry({ journal, scheduler, logger });
  const registry = new GraphRegistry()
    .add("sim", simulated(deps.sleep))
    .add("machine", simulatedMachine(observed, deps.sleep));
  const engine = createNativeEngine(registry, scheduler);
  const executor = observed.executor(
    createInThreadNodeExecutor(registry, { logger, random, clock, scheduler }),
    clock,
  );
  const { items } = storage.catalog;
  const store = createStore({ items, clock, scheduler, logger, policy: DEFAULT_STORE_POLICY });
  const system = createSystem({
    journal,
    engine,
    executor,
    sinks: runLogs,
    store,
    clock,
    random,
    scheduler,
    failpoints: noFailpoints,
    heap: () => ({ used: 0, limit: 1 }),
    logger,
    boot: deps.boot,
    limits: {
      ...defaultLimits,
      attempts: 1_000,
      idle: 50,
      linger: 200,
      ...deps.runningStates,
      concurrent: { ...defaultLimits.concurrent, all: deps.slots },
    },
  });
  const policy = parseWebhookPolicy({});
  const { catalog, outbox, crons: cronStorage } = storage;
  const parts = { system, journal, catalog, outbox, clock, random, scheduler, logger };
  const budget = new TimeBudget(clock, scheduler);
  const newId = createMonotonicIds(
    () => clock.now(),
    (count) => random.bytes(count),
  );
  const service = createService({
    ...parts,
    newId,
    budget,
    store,
    crons: cronStorage,
    engine,
    runLogs,
    policy,
  });
  const worker = new WebhookWorker({ ...parts, client: deps.client, policy, version: "simulated" });
  const firing = new CronWorker({ ...parts, cronStorage, crons: service.crons, runsOf: () => service.runs });
  system.onTimer(createTimerHandler({ engine, journal, runs: service.runs }));
  await system.recover();
  firing.start();
  void worker.start(new URL("http://self.test/"));
  return {
    storage,
    runLogs,
    system,
    service,
    async stop(ms) {
      const fired = firing.stop();
      const sent = worker.stop(Math.min(ms, WEBHOOK_DRAIN));
      const from = clock.mono();
      observed.drains.begin(from, ms);
      await system.drain(ms);
      observed.drained(from, ms, clock.mono());
      await Promise.all([sent, fired]);
      runLogs.close();
      await executor.close();
      await storage.close();
    },
  };
}
