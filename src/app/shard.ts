import type { SystemLimits, ThreadSystem } from "../../actors/thread-system-interface.ts";
import { createSystem } from "../../actors/create-system.ts";
import { createUserServices } from "../authorization/service.ts";
import type { AssistantDefaults } from "../model/assistant.ts";
import { storedUserOf } from "../model/auth-user.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadLifetime } from "../model/thread.ts";
import type { WebhookPolicy } from "../model/webhook-policy.ts";
import type { Authorizer } from "../ports/authorizer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Engine } from "../ports/engine.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import type { HttpClient } from "../ports/http-client.ts";
import type { Logger } from "../ports/logger.ts";
import type { ResponseMemoryBudget } from "../stream/response-memory-budget.ts";
import type { NodeExecutor } from "../ports/node-executor.ts";
import type { Random } from "../ports/random.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Store } from "../ports/store.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import { readSystemHeapUsage } from "../platform/heap-usage.ts";
import { VERSION } from "../platform/version.ts";
import type { Assistants } from "../service/assistants.ts";
import { CronOutcomes } from "../service/crons/cron-outcomes.ts";
import { CronWorker } from "../service/crons/cron-worker.ts";
import { IDEMPOTENCY_TTL } from "../service/idempotency.ts";
import { LostRunEndRepair } from "../service/lost-run-end-repair.ts";
import { createTimerHandler } from "../service/admit-timer-run.ts";
import { createService, type UnrestrictedService } from "../service/service.ts";
import { ItemSweeper } from "../service/store/item-sweeper.ts";
import { ThreadExpiry } from "../service/thread-expiry.ts";
import { WebhookWorker } from "../service/webhooks/webhook-worker.ts";
import type { Storage } from "../storage/open-storage.ts";
import type { StreamSync } from "../stream/attempt-event-writer.ts";
import { EventExpiry } from "../stream/event-expiry.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../stream/run-log-registry.ts";
import { CloserStack } from "./closer-stack.ts";

/** The longest time that webhook attempts in progress get when the server stops, in milliseconds. */
const WEBHOOK_DRAIN_MS = 2_000;

/** The settings that all shards of a server have in common. */
export interface ShardSettings {
  readonly limits: SystemLimits;
  readonly policy: WebhookPolicy;
  readonly assistantDefaults: AssistantDefaults | undefined;
  /** The default lifetime of threads; undefined: threads do not expire. */
  readonly threadTtl: ThreadLifetime | undefined;
  /** Milliseconds between two passes over the threads, in which expired threads are deleted or pruned. */
  readonly threadExpiryInterval: number;
  /** Milliseconds between two passes that delete expired items of the store. */
  readonly itemSweepInterval: number;
  /** Milliseconds for which the events of an ended run are kept. */
  readonly streamsTtl: number;
  readonly sync: StreamSync;
}

export interface ShardDeps extends ShardSettings {
  /** The storage of this shard. The caller that opened it MUST close it after the shard is closed. */
  readonly storage: Storage;
  readonly store: Store;
  readonly engine: Engine;
  readonly executor: NodeExecutor;
  /** Decides what users may do; undefined if the server has no users. */
  readonly authorizer: Authorizer | undefined;
  /** Creates ids that belong to this shard. */
  readonly newId: () => string;
  /** Gets this shard's assistants, and returns the assistants to use instead. Absent: the shard uses its own assistants. */
  readonly assistants?: ((own: Assistants) => Assistants) | undefined;
  readonly boot: string;
  readonly httpClient: HttpClient;
  readonly budget: TimeBudget;
  readonly streamMemory: ResponseMemoryBudget;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly failpoints: Failpoints;
  readonly logger: Logger;
  /** The logger for requests of clients. Once the server has stopped, it logs warnings and errors at the level `info`. */
  readonly servingLogger: Logger;
}

/** A part of the server's threads, with their runs and all that belongs to them, in a storage that only this shard uses. */
export interface Shard {
  readonly storage: Storage;
  readonly system: ThreadSystem;
  readonly runLogs: RunLogRegistry;
  readonly service: UnrestrictedService;
  /** Continues the unfinished work of an earlier process. Called once, before the shard is used. */
  recover(): Promise<void>;
  /** Starts the background work: crons, webhooks, expiry and repair. `self`: the server's own URL, for webhooks that are paths. */
  start(self: URL): void;
  /** Accepts no further runs, and waits up to `ms` milliseconds for running supersteps. Streams stay open. */
  drain(ms: number): Promise<void>;
  endStreams(): void;
  /** Ends the requests that wait for the end of a run: another process continues the runs. */
  endWaits(): void;
  close(): Promise<void>;
}

export function createShard(deps: ShardDeps): Shard {
  const { storage, store, engine, executor, authorizer, newId, policy, budget, limits } = deps;
  const { clock, random, scheduler, failpoints, logger, servingLogger } = deps;
  const { journal, catalog, outbox, crons: cronStorage } = storage;
  const closers = new CloserStack();
  const runLogs = createRunLogRegistry({
    journal,
    scheduler,
    memory: deps.streamMemory,
    budget,
    logger: servingLogger,
    sync: deps.sync,
  });
  closers.add(() => runLogs.close());
  const sweeper = new ItemSweeper({
    items: catalog.items,
    interval: deps.itemSweepInterval,
    clock,
    scheduler,
    logger,
  });
  const system = createSystem({
    journal,
    engine,
    executor,
    sinks: runLogs,
    store,
    clock,
    random,
    scheduler,
    failpoints,
    heap: readSystemHeapUsage,
    logger,
    boot: deps.boot,
    limits,
  });
  closers.add(() => system.drain(0));
  const parts = { system, journal, catalog, outbox, clock, random, scheduler, logger };
  const service = createService({
    ...parts,
    budget,
    newId,
    store,
    crons: cronStorage,
    engine,
    runLogs,
    policy,
    assistantDefaults: deps.assistantDefaults,
    assistants: deps.assistants,
    threadTtl: deps.threadTtl,
    hasUsers: authorizer !== undefined,
  });
  const serviceOf = authorizer && createUserServices({ service, authorizer, engine, newId });
  const runsOf = (user: JsonObject | null) =>
    user === null || serviceOf === undefined ? service.runs : serviceOf(storedUserOf(user)).runs;
  const worker = new WebhookWorker({ ...parts, client: deps.httpClient, policy, version: VERSION });
  const expiry = new EventExpiry({
    journal,
    runLogs,
    clock,
    scheduler,
    logger,
    ttl: deps.streamsTtl,
    repeats: IDEMPOTENCY_TTL,
  });
  const firing = new CronWorker({ ...parts, cronStorage, crons: service.crons, runsOf });
  const outcomes = new CronOutcomes(cronStorage, logger);
  system.onRunEnd(({ tenant }, run) => outcomes.runEnded(tenant, run));
  const threadExpiry = new ThreadExpiry({
    ...parts,
    threads: system.threads,
    interval: deps.threadExpiryInterval,
  });
  const lostRunEndRepair = new LostRunEndRepair({ ...parts, lostRunEnds: storage.lostRunEnds });
  system.onTimer(createTimerHandler({ engine, journal, runs: service.runs }));
  closers.add(
    () => sweeper.stop(),
    () => expiry.stop(),
  );
  return {
    storage,
    system,
    runLogs,
    service,
    recover: () => system.recover(),

    start(self) {
      lostRunEndRepair.start();
      expiry.start();
      sweeper.start();
      firing.start();
      threadExpiry.start();
      if (policy.isDisabled !== true) void worker.start(self);
    },

    async drain(ms) {
      const fired = firing.stop();
      const sent = worker.stop(Math.min(ms, WEBHOOK_DRAIN_MS));
      const swept = threadExpiry.stop();
      // The drain begins while the background workers are still stopping, so that no further run is accepted meanwhile.
      await Promise.all([system.drain(ms), lostRunEndRepair.stop()]);
      // The outcomes of crons are not awaited if the storage refuses writes, because they could not be stored.
      const noted = journal.whenWritable() === undefined ? outcomes.settled() : undefined;
      await Promise.all([sent, fired, swept, noted]);
    },

    endStreams: () => runLogs.close(),
    endWaits: () => system.endWaits(),
    close: () => closers.close(),
  };
}
