import { defaultSystemLimits, type SystemLimits } from "../actors/thread-system.ts";
import { createSystem } from "../actors/create-system.ts";
import { setUpAuth } from "./app/auth.ts";
import { createMetrics } from "./app/metrics.ts";
import { createUserServices } from "./authorization/service.ts";
import { type App, KNOWN_OPTIONS, type AppOptions, checkOptions, HANDLER_INTERNALS } from "./app/options.ts";
import { withNextPort } from "./app/next-port.ts";
import { createAppStore, setUpStore } from "./app/store.ts";
import { type Config, readConfig } from "./config/config.ts";
import { AccessControl, type AccessOptions } from "./access/access-control.ts";
import { createHeaderSelector } from "./access/configurable-headers.ts";
import type { GraphDef } from "./graph/graph-builder.ts";
import { GraphRegistry } from "./graph/graph-registry.ts";
import { openEngines } from "./app/engines.ts";
import { HttpAppHandler } from "./http/custom-http-app.ts";
import { createRequestHandler } from "./http/handler.ts";
import { PendingWebRequests, respondToWebRequest } from "./http/web-exchange.ts";
import { Traffic } from "./http/response-counts.ts";
import { DEFAULT_VIEWER } from "./config/inspector.ts";
import { InspectorFeeds } from "./websocket/inspector/feeds.ts";
import type { UpgradeDeps } from "./websocket/deps.ts";
import { OpenSockets } from "./websocket/open-sockets.ts";
import { createUpgrade } from "./websocket/upgrade.ts";
import type { LoadedLangGraph } from "./langgraph/exported-graph.ts";
import { versionWarnings } from "./langgraph/user-library.ts";
import { loadInlineGraphs } from "./graph-loader/load-inline-graphs.ts";
import { loadGraphs, type LoadOptions } from "./graph-loader/load-graphs.ts";
import { loadHttpApp } from "./graph-loader/load-http-app.ts";
import { quietAfterStop, silentLogger } from "./platform/log.ts";
import { bundledComponents } from "./config/ui-bundler.ts";
import { builtPages } from "./app/dashboard-files.ts";
import { createBodyLimits } from "./ports/body-memory.ts";
import { ResponseMemoryBudget } from "./stream/response-memory-budget.ts";
import { TimeBudget } from "./ports/time-budget.ts";
import { noFailpoints } from "./ports/failpoints.ts";
import { userFrom } from "./model/auth-user.ts";
import { monotonicIds } from "./model/ids.ts";
import type { JsonObject } from "./model/json.ts";
import { ServiceError } from "./model/errors.ts";
import type { HostedGraph } from "./ports/hosted-graph.ts";
import type { HttpApp } from "./ports/http-app.ts";
import type { Transport } from "./ports/transport.ts";
import { maxFileDescriptors } from "./platform/file-descriptors.ts";
import { systemHttpClient } from "./platform/http-client.ts";
import { CronWorker } from "./service/crons/cron-worker.ts";
import { LostRunEndRepair } from "./service/lost-run-end-repair.ts";
import { WebhookWorker } from "./service/webhooks/webhook-worker.ts";
import { readWebhookPolicy } from "./config/webhooks.ts";
import { IDEMPOTENCY_TTL } from "./service/idempotency.ts";
import { createTimerHandler } from "./service/machine-timers.ts";
import { createService } from "./service/service.ts";
import { DEFAULT_THREAD_EXPIRY_INTERVAL, ThreadExpiry } from "./service/thread-expiry.ts";
import { openStorage, type StorageOptions } from "./storage/open.ts";
import { DEFAULT_EVENT_TTL, EventExpiry } from "./stream/event-expiry.ts";
import { createHub } from "./stream/hub.ts";
import { registerSdkLogger } from "./platform/sdk-logger.ts";
import { keepAliveDuring, keepProcessAlive } from "./platform/keep-process-alive.ts";
import { bootId } from "./platform/boot-id.ts";
import { systemClock } from "./platform/clock.ts";
import { systemHeap } from "./platform/heap.ts";
import { systemProcessMetrics } from "./platform/process-metrics.ts";
import { systemRandom } from "./platform/random.ts";
import { systemScheduler } from "./platform/scheduler.ts";
import { maxConnectionsOf } from "./transport/limits.ts";
import { openTransport } from "./transport/open-transport.ts";
import { bodyOpener } from "./transport/request-body.ts";
import { VERSION } from "./platform/version.ts";

export type { App, AppOptions } from "./app/options.ts";
export { createHandler, type Handler, type HandlerOptions } from "./app/embedded-handler.ts";
export type { InlineGraph, MachineSnapshot } from "./graph-loader/inline-graph.ts";

const DEFAULT_BODY = 16 * 1024 * 1024;
const DEFAULT_DRAIN = 5_000;
/** Milliseconds that webhook attempts in progress may take when the server stops. */
const WEBHOOK_DRAIN = 2_000;

/**
 * Builds a server from its parts, continues the unfinished work of an earlier one, and opens the transport.
 * @throws ServiceError `config.invalid`, `graph.invalid`, `storage.locked`, `storage.version`, `storage.unavailable`, `server.address`
 */
export function createApp(options: AppOptions = {}): Promise<App> {
  // A pending promise does not keep the process alive, nor do the scheduler's timers, which are unref'ed.
  return keepAliveDuring(openWithSdkLogger(options));
}

async function openWithSdkLogger(options: AppOptions): Promise<App> {
  const release = registerSdkLogger(options.logger ?? silentLogger);
  try {
    return await open(options, release);
  } catch (cause) {
    release();
    throw cause;
  }
}

/** `onClose` is called when the app has closed. */
async function open(options: AppOptions, onClose: () => void): Promise<App> {
  checkOptions(options, KNOWN_OPTIONS, "createApp");
  const {
    clock = systemClock,
    random = systemRandom(),
    scheduler = systemScheduler,
    failpoints = noFailpoints,
    logger = silentLogger,
  } = options;
  const config = typeof options.config === "string" ? readConfig(options.config) : options.config;
  /** Aborted at the end of a stop, before connections are closed. */
  const stop = new AbortController();
  const auth = await setUpAuth(options.auth, config, { clock, random, scheduler, logger, stop: stop.signal });
  const users = auth && { auth, studioUser: config?.auth?.studioUser ?? true };
  const access = new AccessControl({ ...accessOptions(options, config), ...users }, { clock, random });
  const givenPolicy = readWebhookPolicy({ ...config?.webhooks, ...options.webhooks });
  const policy = {
    ...givenPolicy,
    isDisabled: config?.access?.disabled?.includes("webhooks") === true,
    // An app that does not listen has no paths to send webhooks to.
    ownPaths: givenPolicy.ownPaths && options.transport !== "none",
  };
  const registry = new GraphRegistry();
  const loaded =
    config === undefined
      ? undefined
      : await loadGraphs(config, { random, scheduler, onWarning: (warning) => logger.warn(warning) });
  const given = await loadInlineGraphs(options.graphs ?? {}, { random, scheduler });
  const isReplaced = (name: string) => Object.hasOwn(options.graphs ?? {}, name);
  const kept = Object.keys(loaded?.graphs ?? {}).filter((name) => !isReplaced(name));
  let served: ReadonlyMap<string, LoadedLangGraph> = new Map();
  const replaceGraphs: App["replaceGraphs"] = (graphs, langGraphs = new Map()) => {
    registry.replace(graphs);
    // Hosted graphs are only made by the loader, and all are of this kind.
    served = langGraphs as ReadonlyMap<string, LoadedLangGraph>;
  };
  replaceGraphs(
    { ...Object.fromEntries(kept.map((name) => [name, loaded?.graphs[name] as GraphDef])), ...given.graphs },
    new Map<string, HostedGraph>([
      ...[...(loaded?.langGraphs ?? [])].filter(([name]) => !isReplaced(name)),
      ...(options.langGraphs ?? []),
      ...given.langGraphs,
    ]),
  );
  // LangGraph.js graphs may still be added by `replaceGraphs`.
  if (registry.names().length === 0 && served.size === 0)
    logger.warn("no graph is served, so no run can start: createApp takes them as graphs, or in a config");
  for (const warning of versionWarnings(served.values())) logger.warn(warning);
  const maxBody = options.maxBody ?? config?.maxBody ?? DEFAULT_BODY;
  const bodies = createBodyLimits({ maxBody, scheduler });
  const openBody = bodyOpener(bodies);
  const httpApp = await httpAppHandlerOf(options.httpApp, config, maxBody, stop.signal, {
    random,
    scheduler,
  });
  const setup = await setUpStore(options.store, config, { random, scheduler });

  // A budget for long work. Requests that begin have another one, so that they do not wait for it.
  const budget = new TimeBudget(clock, scheduler);
  // Streams have a budget of their own, so that a tenant's unread streams do not hold up its other responses.
  const memory = new ResponseMemoryBudget(scheduler);
  const streamMemory = new ResponseMemoryBudget(scheduler);
  const storage =
    options.storage ??
    (await openStorage(storageOf(options.data), {
      scheduler,
      clock,
      failpoints,
      logger,
      budget,
      ...definedOf({ onProgress: options.onProgress }),
    }));
  /** Closes the opened parts in reverse order. */
  const opened: (() => unknown)[] = [() => storage.close()];
  const closeAll = async (): Promise<void> => {
    // If closing one part fails, the rest is closed all the same.
    try {
      for (let close = opened.pop(); close !== undefined; close = opened.pop()) await close();
    } finally {
      if (opened.length > 0) await closeAll();
    }
  };
  try {
    const { journal, catalog, outbox, crons: book } = storage;
    const { engine, host } = await openEngines({
      registry,
      workers: options.workers ?? config?.workers ?? 0,
      config,
      // The actors of a machine's step refer to each other, so they run in one thread.
      loaded: kept.filter((name) => loaded?.graphs[name]?.machine === undefined),
      deps: { logger, random, clock, scheduler, stacks: options.stacks ?? config?.stacks ?? false },
      langGraphs: () => served,
    });
    opened.push(() => host.close());
    // The server is stopping, and serves no more requests.
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
    opened.push(() => hub.close());
    const limits = limitsOf({ ...config?.runs, ...options.limits }, access.hasTenants, systemHeap().limit);
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
      heap: systemHeap,
      logger,
      boot,
      limits,
    });
    opened.push(() => system.drain(0));
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
      assistantDefaults: config?.assistants,
      threadTtl: lifetime,
      hasUsers: auth !== undefined,
    });
    const serviceOf = auth && createUserServices({ service, authorizer: auth, journal, hub, engine, newId });
    const runsOf = (user: JsonObject | null) =>
      user === null || serviceOf === undefined ? service.runs : serviceOf(userFrom(user)).runs;
    const client = options.httpClient ?? systemHttpClient;
    const worker = new WebhookWorker({ ...parts, client, policy, version: VERSION });
    const ttl = options.streamsTtl ?? config?.streamsTtl ?? DEFAULT_EVENT_TTL;
    const expiry = new EventExpiry({ journal, hub, clock, scheduler, logger, ttl, repeats: IDEMPOTENCY_TTL });
    const firing = new CronWorker({ ...parts, book, crons: service.crons, runsOf });
    const threadExpiry = new ThreadExpiry({ ...parts, threads: system.threads, interval });
    const lostRunEndRepair = new LostRunEndRepair({ ...parts, lostRunEnds: storage.lostRunEnds });
    system.onTimer(createTimerHandler({ journal, runs: service.runs }));
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
    const watch: UpgradeDeps["inspect"] = (socket, client, query) =>
      feeds.open(socket, { tenant: client.tenant, inspection: client.service.inspection }, query);
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
    const headersForRuns = createHeaderSelector(options.configurableHeaders ?? config?.configurableHeaders);
    const handlers = {
      request: createRequestHandler({
        service,
        ...(serviceOf && { serviceOf }),
        access,
        configurableHeaders: headersForRuns,
        scheduler,
        clock,
        budget,
        memory,
        streamMemory,
        logger: servingLogger,
        requestLog,
        newId,
        ready: async () => {
          if (stopping) throw isStopping();
          await storage.check();
          const findings = storage.findings().length;
          const verifying = storage.verifying();
          return {
            // Damage does not make the server unready: it serves all other threads, and no other server does.
            ...(findings > 0 && { damaged: { ...storage.damage(), findings } }),
            ...(verifying !== undefined && { verifying }),
          };
        },
        inspect,
        dashboard: { prices: {}, ...config?.dashboard, ...options.dashboard },
        pages: builtPages(),
        ...(config?.components !== undefined && { components: bundledComponents(config.components) }),
        ...(httpApp !== undefined && { httpApp }),
        traffic,
        metrics: metrics.render,
        metricsHistory: metrics.history,
        about: {
          version: VERSION,
          transport: { kind: transports.kind, why: transports.why },
          langGraphVersion: () => served.values().next().value?.library.version,
        },
      }),
      upgrade: createUpgrade({
        service,
        ...(serviceOf && { serviceOf }),
        access,
        configurableHeaders: headersForRuns,
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
    const open = options.takeNextPort === true ? withNextPort(transports) : transports;
    const transport = await open(handlers, {
      host: options.host ?? "127.0.0.1",
      port: options.port ?? 0,
      maxBody,
      bodyMemory: bodies.memory,
      ...(descriptors !== undefined && { maxConnections: maxConnectionsOf(descriptors) }),
      scheduler,
    });
    opened.push(
      () => sweeper.stop(),
      () => expiry.stop(),
      () => transport.close(),
    );

    lostRunEndRepair.start();
    expiry.start();
    sweeper.start();
    firing.start();
    metrics.start();
    threadExpiry.start();
    if (!policy.isDisabled) void worker.start(new URL(urlOf(transport.address, "127.0.0.1", "::1")));
    const webRequests = new PendingWebRequests();
    const embedded: { startDraining(): void; close(): void }[] = [];

    const shut = async (ms: number): Promise<void> => {
      // Keeps the process alive during the stop: once nothing listens and nobody is connected, it would end halfway.
      const release = keepProcessAlive();
      stopping = true;
      metrics.close();
      try {
        for (const part of [transport, ...embedded]) part.startDraining();
        const fired = firing.stop();
        const sent = worker.stop(Math.min(ms, WEBHOOK_DRAIN));
        const swept = threadExpiry.stop();
        // The drain starts at once, so that no further run is accepted.
        await Promise.all([system.drain(ms), lostRunEndRepair.stop()]);
        await Promise.all([sent, fired, swept]);
        hasStopped = true;
        // Requests that still wait for the project's code, in authentication or in an HTTP application, are answered before their
        // connections close.
        stop.abort(isStopping());
        await new Promise<void>((resolve) => scheduler.soon(resolve));
        hub.close();
        webRequests.close();
        for (const part of embedded) part.close();
        await closeAll();
      } finally {
        onClose();
        release();
      }
    };
    let closing: Promise<void> | undefined;
    return {
      address: transport.address,
      url: transport.kind === "none" ? "" : urlOf(transport.address),
      transport: { kind: transports.kind, why: transports.why },
      fetch: (request) => respondToWebRequest(handlers.request, request, openBody, webRequests),
      [HANDLER_INTERNALS]: {
        handlers,
        maxBody,
        bodyMemory: bodies.memory,
        openBody,
        scheduler,
        webRequests,
        isOnlyForLoopback: !access.needsCredentials && options.insecure !== true,
        add: (part) => void embedded.push(part),
      },
      storage,
      system,
      replaceGraphs,
      close: (ms = DEFAULT_DRAIN) => (closing ??= shut(ms)),
    };
  } catch (cause) {
    await closeAll().catch((failure: unknown) =>
      logger.error("a failed start left parts open", { cause: failure }),
    );
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

/** The fraction of the heap that the states of runs in progress may take. The inputs of waiting runs may take as much again. */
const HEAP_SHARE = 1 / 8;

/**
 * With several tenants, none may fill the queue alone, unless the configuration allows it. `heap`: the largest size of the heap, in bytes.
 */
function limitsOf(given: Partial<SystemLimits>, hasTenants: boolean, heap: number): SystemLimits {
  const share = (bytes: number) => Math.min(bytes, Math.floor(heap * HEAP_SHARE));
  const limits = {
    ...defaultSystemLimits,
    maxStateBytes: share(defaultSystemLimits.maxStateBytes),
    maxQueuedBytes: share(defaultSystemLimits.maxQueuedBytes),
    ...given,
  };
  if (!hasTenants) return limits;
  return {
    ...limits,
    maxQueuedPerTenant: given.maxQueuedPerTenant ?? Math.ceil(limits.maxQueued / 2),
    maxQueuedBytesPerTenant: given.maxQueuedBytesPerTenant ?? Math.ceil(limits.maxQueuedBytes / 2),
  };
}

const isStopping = () => new ServiceError("server.draining", "The server is stopping");

async function httpAppHandlerOf(
  given: HttpApp | undefined,
  config: Config | undefined,
  maxBody: number,
  stop: AbortSignal,
  options: LoadOptions,
): Promise<HttpAppHandler | undefined> {
  const app = given ?? (config?.httpApp && (await loadHttpApp(config.path, config.httpApp, options)));
  const { scheduler } = options;
  return (
    app &&
    new HttpAppHandler(app, bodyOpener(createBodyLimits({ maxBody, maxBodies: Infinity, scheduler })), stop)
  );
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Leaves out members that are undefined. */
function definedOf<T extends object>(object: T): Defined<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Defined<T>;
}

function storageOf(data: AppOptions["data"]): StorageOptions {
  if (data === undefined) return { kind: "memory" };
  return typeof data === "string" ? { kind: "level", directory: data } : data;
}

function urlOf({ host, port }: Transport["address"], v4 = "localhost", v6 = v4): string {
  // 0.0.0.0 and :: mean "listen on every address"; a client cannot connect to them.
  const reachable = host === "0.0.0.0" ? v4 : host === "::" ? v6 : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
