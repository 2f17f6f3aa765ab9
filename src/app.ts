import { defaultSystemLimits, type SystemLimits } from "../actors/thread-system.ts";
import { createSystem } from "../actors/create-system.ts";
import { createMetrics } from "./app/metrics.ts";
import type { App, AppOptions } from "./app/options.ts";
import { createAppStore, setUpStore } from "./app/store.ts";
import { type Config, readConfig } from "./config/config.ts";
import { AccessControl, type AccessOptions } from "./access/access-control.ts";
import { GraphRegistry } from "./graph/graph-registry.ts";
import { openEngines } from "./app/engines.ts";
import { createHandler } from "./http/handler.ts";
import { Traffic } from "./http/response-counts.ts";
import { DEFAULT_VIEWER } from "./config/inspector.ts";
import { InspectorFeeds } from "./websocket/inspector/feeds.ts";
import type { WebSocketDeps } from "./websocket/deps.ts";
import { OpenSockets } from "./websocket/open-sockets.ts";
import { createUpgrade } from "./websocket/upgrade.ts";
import type { LoadedLangGraph } from "./langgraph/exported-graph.ts";
import { loadGraphs } from "./graph-loader/load-graphs.ts";
import { quietAfterStop, silentLogger } from "./platform/log.ts";
import { bundledComponents } from "./config/ui-bundler.ts";
import { builtPages } from "./app/dashboard-files.ts";
import { MemoryBudget } from "./ports/memory-budget.ts";
import { TimeBudget } from "./ports/time-budget.ts";
import { noFailpoints } from "./ports/failpoints.ts";
import { monotonicIds } from "./model/ids.ts";
import { ServiceError } from "./model/errors.ts";
import type { Transport } from "./ports/transport.ts";
import { maxFileDescriptors } from "./platform/file-descriptors.ts";
import { systemHttpClient } from "./platform/http-client.ts";
import { CronWorker } from "./service/crons/cron-worker.ts";
import { UnendedRunRepair } from "./service/unended-run-repair.ts";
import { WebhookWorker } from "./service/webhooks/webhook-worker.ts";
import { readPolicy } from "./config/webhooks.ts";
import { IDEMPOTENCY_TTL } from "./service/idempotency.ts";
import { createService } from "./service/service.ts";
import { DEFAULT_THREAD_EXPIRY_INTERVAL, ThreadExpiry } from "./service/thread-expiry.ts";
import { openStorage, type StorageOptions } from "./storage/open.ts";
import { DEFAULT_EVENT_TTL, EventExpiry } from "./stream/event-expiry.ts";
import { createHub } from "./stream/hub.ts";
import { keepAliveDuring, keepProcessAlive } from "./platform/keep-process-alive.ts";
import { bootId } from "./platform/boot-id.ts";
import { systemClock } from "./platform/clock.ts";
import { systemProcessMetrics } from "./platform/process-metrics.ts";
import { systemRandom } from "./platform/random.ts";
import { systemScheduler } from "./platform/scheduler.ts";
import { connectionsWith } from "./transport/limits.ts";
import { openTransport } from "./transport/open-transport.ts";
import { VERSION } from "./platform/version.ts";

export type { App, AppOptions } from "./app/options.ts";

const DEFAULT_BODY = 16 * 1024 * 1024;
const DEFAULT_DRAIN = 5_000;
/** Milliseconds for webhooks that are on their way when the server stops. */
const WEBHOOK_DRAIN = 2_000;

/**
 * Builds a server out of its parts, takes up what an earlier one left unsettled, and opens the transport.
 * @throws ServiceError `config.invalid`, `graph.invalid`, `storage.locked`, `storage.version`, `storage.unavailable`, `server.address`
 */
export function createApp(options: AppOptions): Promise<App> {
  // What it waits for meanwhile, such as the pause before a second try, need not keep the process by itself.
  return keepAliveDuring(open(options));
}

async function open(options: AppOptions): Promise<App> {
  const {
    clock = systemClock,
    random = systemRandom(),
    scheduler = systemScheduler,
    failpoints = noFailpoints,
    logger = silentLogger,
  } = options;
  const config = typeof options.config === "string" ? readConfig(options.config) : options.config;
  const access = new AccessControl(accessOptions(options, config), { clock, random });
  const policy = readPolicy({ ...config?.webhooks, ...options.webhooks });
  const registry = new GraphRegistry();
  const loaded = config === undefined ? undefined : await loadGraphs(config, { random, scheduler });
  let served: ReadonlyMap<string, LoadedLangGraph> = new Map();
  const replaceGraphs: App["replaceGraphs"] = (graphs, langGraphs = new Map()) => {
    registry.replace(graphs);
    // Only the loading makes them, of this one kind.
    served = langGraphs as ReadonlyMap<string, LoadedLangGraph>;
  };
  replaceGraphs(
    { ...loaded?.graphs, ...options.graphs },
    new Map([...(loaded?.langGraphs ?? []), ...(options.langGraphs ?? [])]),
  );
  const setup = await setUpStore(options.store, config, { random, scheduler });

  // Apart from that of requests that begin: what is long does not keep those waiting.
  const budget = new TimeBudget(clock, scheduler);
  // Two, so that a tenant's streams that nobody takes do not hold up its other responses.
  const memory = new MemoryBudget(scheduler);
  const streamMemory = new MemoryBudget(scheduler);
  const storage =
    options.storage ??
    (await openStorage(storageOf(options.data), { scheduler, clock, failpoints, logger, budget }));
  try {
    const { journal, catalog, outbox, crons: book } = storage;
    const { engine, host } = await openEngines({
      registry,
      workers: options.workers ?? config?.workers ?? 0,
      config,
      loaded: Object.keys(loaded?.graphs ?? {}).filter((name) => !Object.hasOwn(options.graphs ?? {}, name)),
      deps: { logger, random, clock, scheduler, stacks: options.stacks ?? config?.stacks ?? false },
      langGraphs: () => served,
    });
    // Nobody is served any more.
    let hasStopped = false;
    const servingLogger = quietAfterStop(logger, () => hasStopped);
    const hub = createHub({
      journal,
      scheduler,
      memory: streamMemory,
      budget,
      logger: servingLogger,
      sync: options.sync ?? config?.sync ?? "os",
    });
    const limits = limitsOf({ ...config?.runs, ...options.limits }, access.hasTenants);
    const boot = bootId(random);
    const { store, sweeper } = createAppStore(catalog.items, setup, { clock, scheduler, logger, budget });
    const system = createSystem({
      journal,
      engine,
      host,
      sinks: hub,
      store,
      clock,
      random,
      scheduler,
      failpoints,
      logger,
      boot,
      limits,
    });
    const parts = { system, journal, catalog, outbox, clock, random, scheduler, logger };
    const { lifetime, interval = DEFAULT_THREAD_EXPIRY_INTERVAL } = {
      ...config?.threadTtl,
      ...options.threadTtl,
    };
    const newId = monotonicIds(
      () => clock.now(),
      (count) => random.bytes(count),
    );
    const service = createService({
      ...parts,
      budget,
      newId,
      store,
      crons: book,
      engine,
      hub,
      policy,
      threadTtl: lifetime,
    });
    const client = options.httpClient ?? systemHttpClient;
    const worker = new WebhookWorker({ ...parts, client, policy, version: VERSION });
    const ttl = options.streamsTtl ?? config?.streamsTtl ?? DEFAULT_EVENT_TTL;
    const expiry = new EventExpiry({ journal, hub, clock, scheduler, logger, ttl, repeats: IDEMPOTENCY_TTL });
    const firing = new CronWorker({ ...parts, book, crons: service.crons, runs: service.runs });
    const threadExpiry = new ThreadExpiry({ ...parts, threads: system.threads, interval });
    const unendedRunRepair = new UnendedRunRepair({ ...parts, unended: storage.unended });
    await system.recover();

    const transports = await openTransport(options.transport);
    let stopping = false;
    const { requestLog = "debug" } = options;
    const inspect = { values: false, viewer: DEFAULT_VIEWER, ...config?.inspect, ...options.inspect };
    const { inspection } = service;
    const feeds = new InspectorFeeds({
      inspection,
      clock,
      scheduler,
      logger: servingLogger,
      values: inspect.values,
    });
    const watch: WebSocketDeps["inspect"] = (...asked) => feeds.open(...asked);
    const [traffic, sockets] = [new Traffic(), new OpenSockets()];
    const metrics = createMetrics({
      ...parts,
      about: { version: VERSION, transport: transports.kind },
      storage,
      hub,
      traffic,
      sockets,
      feeds,
      process: systemProcessMetrics,
    });
    const handlers = {
      request: createHandler({
        service,
        access,
        scheduler,
        clock,
        budget,
        memory,
        streamMemory,
        logger: servingLogger,
        requestLog,
        newId,
        ready: async () => {
          if (stopping) throw new ServiceError("server.draining", "The server is stopping");
          await storage.check();
          const damaged = storage.damage();
          const verifying = storage.verifying();
          return {
            // No reason to send its clients elsewhere: all other threads are served, by this server alone.
            ...(damaged.threads + damaged.keys + damaged.ranges > 0 && { damaged }),
            ...(verifying !== undefined && { verifying }),
          };
        },
        inspect,
        pages: builtPages(),
        ...(config?.components !== undefined && { components: bundledComponents(config.components) }),
        traffic,
        metrics: metrics.render,
        about: { version: VERSION, transport: { kind: transports.kind, why: transports.why } },
      }),
      upgrade: createUpgrade({
        journal,
        hub,
        runs: service.runs,
        protocol: service.protocol,
        access,
        sockets,
        inspect: watch,
        scheduler,
        budget,
        streamMemory,
        logger: servingLogger,
        requestLog,
      }),
    };
    const descriptors = maxFileDescriptors();
    const transport = await transports(handlers, {
      host: options.host ?? "127.0.0.1",
      port: options.port ?? 0,
      maxBody: options.maxBody ?? config?.maxBody ?? DEFAULT_BODY,
      ...(descriptors !== undefined && { maxConnections: connectionsWith(descriptors) }),
      scheduler,
    });

    unendedRunRepair.start();
    expiry.start();
    sweeper.start();
    firing.start();
    threadExpiry.start();
    void worker.start(new URL(urlOf(transport.address, "127.0.0.1", "::1")));

    const shut = async (ms: number): Promise<void> => {
      // Once nothing listens and nobody is connected, the process would end in the middle of it.
      const release = keepProcessAlive();
      stopping = true;
      metrics.close();
      try {
        transport.stopListening();
        const fired = firing.stop();
        const sent = worker.stop(Math.min(ms, WEBHOOK_DRAIN));
        const swept = threadExpiry.stop();
        await unendedRunRepair.stop();
        await system.drain(ms);
        await Promise.all([sent, fired, swept]);
        hasStopped = true;
        hub.close();
        await transport.close();
        await host.close();
        await expiry.stop();
        await sweeper.stop();
        await storage.close();
      } finally {
        release();
      }
    };
    let closing: Promise<void> | undefined;
    return {
      address: transport.address,
      url: urlOf(transport.address),
      transport: { kind: transports.kind, why: transports.why },
      storage,
      system,
      replaceGraphs,
      close: (ms = DEFAULT_DRAIN) => (closing ??= shut(ms)),
    };
  } catch (cause) {
    await storage.close();
    throw cause;
  }
}

function accessOptions(options: AppOptions, config: Config | undefined): AccessOptions {
  const { keys, insecure, hosts, origins, studio, mount, tokenSecret: secret, host: bound } = options;
  const file = config?.access;
  return {
    ...file,
    ...definedOf({ keys, insecure, hosts, studio, mount, secret, bound }),
    cors: { ...file?.cors, ...definedOf({ origins }) },
  };
}

/** Where there are several tenants, none may fill the queue by itself, unless it is allowed to. */
function limitsOf(given: Partial<SystemLimits>, hasTenants: boolean): SystemLimits {
  const limits = { ...defaultSystemLimits, ...given };
  if (!hasTenants || given.maxQueuedPerTenant !== undefined) return limits;
  return { ...limits, maxQueuedPerTenant: Math.ceil(limits.maxQueued / 2) };
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the members that say nothing. */
function definedOf<T extends object>(object: T): Defined<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Defined<T>;
}

function storageOf(data: AppOptions["data"]): StorageOptions {
  if (data === undefined) return { kind: "memory" };
  return typeof data === "string" ? { kind: "level", directory: data } : data;
}

function urlOf({ host, port }: Transport["address"], v4 = "localhost", v6 = v4): string {
  // Every address of the machine is no address to go to.
  const reachable = host === "0.0.0.0" ? v4 : host === "::" ? v6 : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
