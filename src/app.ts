import { defaultSystemLimits, type SystemLimits } from "../actors/thread-system-interface.ts";
import { setUpAuth } from "./app/auth.ts";
import { openEngines } from "./app/engines.ts";
import { stoppingError, openPublicServer } from "./app/public-server.ts";
import { CloserStack } from "./app/closer-stack.ts";
import { type App, KNOWN_OPTIONS, type AppOptions, checkOptions, HANDLER_INTERNALS } from "./app/options.ts";
import { createShard, type Shard } from "./app/shard.ts";
import type { ProcessPlace, ShardLinks } from "./app/shard-links.ts";
import { checkStorages, createShardTotals } from "./app/shard-totals.ts";
import { setUpStore } from "./app/store-setup.ts";
import { createUserServices } from "./authorization/service.ts";
import type { CallableServices } from "./cluster/process-calls.ts";
import { createShardIds } from "./cluster/shard-ids.ts";
import { createShardedService } from "./cluster/sharded-service.ts";
import { shardedStoreItems } from "./cluster/sharded-store-items.ts";
import { type Config, readConfig } from "./config/config.ts";
import { parseWebhookPolicy } from "./config/webhooks.ts";
import { AccessControl, type AccessOptions } from "./access/access-control.ts";
import type { GraphDef } from "./graph/graph-builder.ts";
import { GraphRegistry } from "./graph/graph-registry.ts";
import { HttpAppHandler } from "./http/custom-http-app.ts";
import type { LoadedLangGraph } from "./langgraph/exported-graph.ts";
import { versionWarnings } from "./langgraph/user-library.ts";
import { loadInlineGraphs } from "./graph-loader/load-inline-graphs.ts";
import { loadGraphs, type LoadOptions } from "./graph-loader/load-graphs.ts";
import { loadHttpApp } from "./graph-loader/load-http-app.ts";
import { createBodyLimits } from "./ports/body-memory.ts";
import { ResponseMemoryBudget } from "./stream/response-memory-budget.ts";
import { TimeBudget } from "./ports/time-budget.ts";
import { noFailpoints } from "./ports/failpoints.ts";
import type { LibraryGraph } from "./ports/library-graph.ts";
import type { HttpApp } from "./ports/http-app.ts";
import type { AuthenticatedClient } from "./ports/peers.ts";
import type { StoreItems } from "./ports/store-items.ts";
import type { Handlers, Transport } from "./ports/transport.ts";
import type { AuthUser } from "./model/auth-user.ts";
import { createMonotonicIds } from "./model/ids.ts";
import { bootId } from "./platform/boot-id.ts";
import { systemClock } from "./platform/clock.ts";
import { readSystemHeapUsage } from "./platform/heap-usage.ts";
import { systemHttpClient } from "./platform/http-client.ts";
import { keepAliveDuring, keepProcessAlive } from "./platform/keep-process-alive.ts";
import { quietAfterStop, silentLogger } from "./platform/log.ts";
import { systemRandom } from "./platform/random.ts";
import { systemScheduler } from "./platform/scheduler.ts";
import { registerSdkLogger } from "./platform/sdk-logger.ts";
import type { Assistants } from "./service/assistants.ts";
import type { UnrestrictedService } from "./service/service.ts";
import { createStore } from "./service/store/store.ts";
import { DEFAULT_THREAD_EXPIRY_INTERVAL } from "./service/thread-expiry.ts";
import { openStorage, type Storage, type StorageOptions } from "./storage/open-storage.ts";
import { DEFAULT_EVENT_TTL } from "./stream/event-expiry.ts";
import { createBodyOpener } from "./transport/request-body.ts";

export type { App, AppOptions } from "./app/options.ts";
export { claimNextPort } from "./app/next-port.ts";
export type { ProcessNetwork, ProcessPlace } from "./app/shard-links.ts";
export { claimPort } from "./transport/claim-port.ts";
export { createHandler, type Handler, type HandlerOptions } from "./app/embedded-handler.ts";
export type { InlineGraph, MachineSnapshot } from "./graph-loader/inline-graph.ts";

const DEFAULT_BODY = 16 * 1024 * 1024;
const DEFAULT_DRAIN = 5_000;

/**
 * Starts a server. It continues the unfinished work of an earlier server on the same data, then accepts requests.
 * @throws ServiceError `config.invalid`, `graph.invalid`, `storage.locked`, `storage.version`, `storage.unavailable`, `server.address`,
 * `unsupported`
 */
export function createApp(options: AppOptions = {}): Promise<App> {
  // Keeps the process alive until the server is open. A pending promise does not, and the timers of the scheduler are unref'ed.
  return keepAliveDuring(openWithSdkLogger(options));
}

/**
 * Starts a server like {@link createApp}, but as one of several processes that share a port. Each process has the data of one shard, and
 * accepts requests for all shards.
 */
export function createShardApp(options: AppOptions, place: ProcessPlace): Promise<ShardApp> {
  // With a place, the app has the functions of a `ShardApp`.
  return keepAliveDuring(openWithSdkLogger(options, place)) as Promise<ShardApp>;
}

/** A running server that is one of several processes. */
export interface ShardApp extends App {
  /**
   * Stops the shard of this process, so that another process can take it over: waits up to `drainMs` milliseconds for running supersteps, and
   * closes the data. The process then forwards requests of the clients that are connected with it, and accepts no new connections.
   */
  releaseShard(drainMs: number): Promise<void>;
  /** Resolves when no response to a forwarded request is incomplete, and no forwarded WebSocket is open. */
  forwardingEnded(): Promise<void>;
}

async function openWithSdkLogger(options: AppOptions, place?: ProcessPlace): Promise<App> {
  const release = registerSdkLogger(options.logger ?? silentLogger);
  try {
    return await open(options, release, place);
  } catch (cause) {
    release();
    throw cause;
  }
}

/** Opens the app. `onClose` is called when the app has closed, but not if opening fails. */
async function open(options: AppOptions, onClose: () => void, place: ProcessPlace | undefined): Promise<App> {
  checkOptions(options, KNOWN_OPTIONS, "createApp");
  const {
    clock = systemClock,
    random = systemRandom(),
    scheduler = systemScheduler,
    failpoints = noFailpoints,
    logger = silentLogger,
  } = options;
  const config = typeof options.config === "string" ? readConfig(options.config) : options.config;
  /** Aborted near the end of the shutdown, before connections are closed. */
  const stop = new AbortController();
  const auth = await setUpAuth(options.auth, config, { clock, random, scheduler, logger, stop: stop.signal });
  const users = auth && { auth, studioUser: config?.auth?.studioUser ?? true };
  const accessSettings = { ...accessOptions(options, config), ...users };
  const access = new AccessControl(accessSettings, { clock, random });
  const givenPolicy = parseWebhookPolicy({ ...config?.webhooks, ...options.webhooks });
  const policy = {
    ...givenPolicy,
    isDisabled: config?.access?.disabled?.includes("webhooks") === true,
    // An app without a transport listens on no port, so a webhook cannot be a path on this server.
    ownPaths: givenPolicy.ownPaths && options.transport !== "none",
  };
  const registry = new GraphRegistry();
  const loaded =
    config === undefined
      ? undefined
      : await loadGraphs(config, { scheduler, onWarning: (warning) => logger.warn(warning) });
  const given = await loadInlineGraphs(options.graphs ?? {}, { scheduler });
  const isReplaced = (name: string) => Object.hasOwn(options.graphs ?? {}, name);
  const kept = Object.keys(loaded?.graphs ?? {}).filter((name) => !isReplaced(name));
  let served: ReadonlyMap<string, LoadedLangGraph> = new Map();
  const replaceGraphs: App["replaceGraphs"] = (graphs, langGraphs = new Map()) => {
    registry.replace(graphs);
    // The cast is safe: graphs of LangGraph.js come from the graph loader, which makes only `LoadedLangGraph` objects.
    served = langGraphs as ReadonlyMap<string, LoadedLangGraph>;
  };
  replaceGraphs(
    { ...Object.fromEntries(kept.map((name) => [name, loaded?.graphs[name] as GraphDef])), ...given.graphs },
    new Map<string, LibraryGraph>([
      ...[...(loaded?.langGraphs ?? [])].filter(([name]) => !isReplaced(name)),
      ...(options.langGraphs ?? []),
      ...given.langGraphs,
    ]),
  );
  // LangGraph.js graphs may still be added by `replaceGraphs`, so a server without graphs only causes a warning.
  if (registry.names().length === 0 && served.size === 0)
    logger.warn("no graph is served, so no run can start: createApp takes them as graphs, or in a config");
  for (const warning of versionWarnings(served.values())) logger.warn(warning);
  const maxBody = options.maxBody ?? config?.maxBody ?? DEFAULT_BODY;
  const httpApp = await httpAppHandlerOf(options.httpApp, config, maxBody, stop.signal, { scheduler });
  const setup = await setUpStore(options.store, config, scheduler);

  // The time budget for long work. New requests do not wait for long work: the HTTP handler has a budget of its own to start them.
  const budget = new TimeBudget(clock, scheduler);
  const streamMemory = new ResponseMemoryBudget(scheduler);
  const storages = [
    options.storage ??
      (await openStorage(storageOf(options.data), {
        scheduler,
        clock,
        failpoints,
        logger,
        budget,
        ...definedOf({ onProgress: options.onProgress }),
      })),
  ].flat();
  const closers = new CloserStack();
  /** Set once this process gives its shard up, with its storage. */
  let released: Promise<void> | undefined;
  closers.add(...storages.map((storage) => () => (released === undefined ? storage.close() : undefined)));
  try {
    const { engine, executor } = await openEngines({
      registry,
      workers: options.workers ?? config?.workers ?? 0,
      config,
      // Workers load no graphs that are state machines: the actors of a machine's step refer to each other, so all of them must run in one
      // thread.
      loaded: kept.filter((name) => loaded?.graphs[name]?.machine === undefined),
      deps: { logger, random, clock, scheduler, stacks: options.stacks ?? config?.stacks ?? false },
      langGraphs: () => served,
    });
    closers.add(() => executor.close());
    // True once the shards are drained. The server then handles no more requests.
    let hasStopped = false;
    const servingLogger = quietAfterStop(logger, () => hasStopped);
    const { lifetime, interval = DEFAULT_THREAD_EXPIRY_INTERVAL } = {
      ...config?.threadTtl,
      ...options.threadTtl,
    };
    const boot = bootId(random);
    const anyId = createMonotonicIds(
      () => clock.now(),
      (count) => random.bytes(count),
    );
    const ids = createShardIds(anyId, place?.count ?? storages.length, place?.number);
    // This module is loaded only if there are several processes, because it also loads the WebSocket library.
    const links =
      place &&
      new (await import("./app/shard-links.ts")).ShardLinks({
        place,
        newId: anyId,
        clock,
        random,
        scheduler,
      });
    if (links !== undefined) closers.add(() => links.close());
    const ownItems = itemsOf(storages);
    const items = links?.items(ownItems) ?? ownItems;
    const store = createStore({ items, policy: setup.policy, clock, scheduler, logger, budget });
    const settings = {
      store,
      engine,
      executor,
      authorizer: auth,
      boot,
      limits: limitsOf(
        { ...config?.runs, ...options.limits },
        access.hasTenants,
        readSystemHeapUsage().limit,
      ),
      policy,
      assistantDefaults: config?.assistants,
      threadTtl: lifetime,
      threadExpiryInterval: interval,
      itemSweepInterval: setup.sweep,
      streamsTtl: options.streamsTtl ?? config?.streamsTtl ?? DEFAULT_EVENT_TTL,
      sync: options.sync ?? config?.sync ?? "os",
      httpClient: options.httpClient ?? systemHttpClient,
      budget,
      streamMemory,
      clock,
      random,
      scheduler,
      failpoints,
      logger,
      servingLogger,
    };
    const shards: Shard[] = [];
    for (const [i, storage] of storages.entries()) {
      const newId = ids.ofShards[place?.number ?? i] as () => string;
      const home = shards[0]?.service.assistants;
      const assistants = (own: Assistants): Assistants => links?.assistants(own) ?? home ?? own;
      const shard = createShard({ ...settings, storage, newId, assistants });
      shards.push(shard);
      closers.add(() => shard.close());
    }
    await Promise.all(shards.map((shard) => shard.recover()));

    const own = serviceOfShards(shards);
    const ownOf = auth && createUserServices({ service: own, authorizer: auth, engine, newId: ids.newId });
    const serviceOf = links && ownOf ? (user: AuthUser) => links.serviceOf(ownOf(user), user) : ownOf;
    /** The functions of this process that another process may call while it handles a request of `user`. */
    const partsOf = ({
      user,
    }: AuthenticatedClient): Omit<CallableServices, "metrics" | "assistantCopies"> => {
      const { threads, runs, crons, webhooks, inspection, assistants } = user && ownOf ? ownOf(user) : own;
      return { threads, runs, crons, webhooks, inspection, assistants, items: ownItems };
    };
    const totals = createShardTotals(shards);
    const publicServer = await openPublicServer({
      service: links?.service(own) ?? own,
      serviceOf,
      ...(links !== undefined && {
        links: {
          forwarding: links.forwarding,
          releaseShard: () => links.releaseShard(),
          checkLeases: () => links.checkLeases(),
          access: links.access(accessSettings),
          metrics: links.metrics,
          listen: (
            handlers: Handlers,
            metrics: CallableServices["metrics"],
            limits: Parameters<ShardLinks["listen"]>[2],
          ) => links.listen(handlers, (client) => ({ ...partsOf(client), metrics }), limits),
        },
      }),
      totals,
      checkStorage: () => checkStorages(storages),
      access,
      httpApp,
      langGraphVersion: () => served.values().next().value?.library.version,
      maxBody,
      options,
      config,
      newId: () => anyId(),
      budget,
      streamMemory,
      clock,
      scheduler,
      logger,
      servingLogger,
    });
    closers.add(() => publicServer.close());

    const self = new URL(urlOf(publicServer.address, "127.0.0.1", "::1"));
    for (const shard of shards) shard.start(self);
    publicServer.start();

    const releaseShard = async (ms: number): Promise<void> => {
      publicServer.startDraining();
      await Promise.all(shards.map((shard) => shard.drain(ms)));
      hasStopped = true;
      for (const shard of shards) {
        shard.endStreams();
        shard.endWaits();
      }
      await publicServer.releaseShard();
      for (const shard of shards) await shard.close();
      for (const storage of storages) await storage.close();
    };
    const shut = async (ms: number): Promise<void> => {
      // Keeps the process alive during the shutdown. Node would end it as soon as nothing listens and nobody is connected.
      const release = keepProcessAlive();
      try {
        if (released === undefined) {
          publicServer.startDraining();
          await Promise.all(shards.map((shard) => shard.drain(ms)));
          hasStopped = true;
        } else await released;
        // Requests that still wait for the project's authentication or HTTP application get an error response before their connections
        // close.
        stop.abort(stoppingError());
        await new Promise<void>((resolve) => scheduler.soon(resolve));
        if (released === undefined) for (const shard of shards) shard.endStreams();
        publicServer.endRequests();
        await closers.close();
      } finally {
        onClose();
        release();
      }
    };
    let closing: Promise<void> | undefined;
    return {
      address: publicServer.address,
      url: publicServer.transport.kind === "none" ? "" : urlOf(publicServer.address),
      transport: publicServer.transport,
      fetch: publicServer.fetch,
      [HANDLER_INTERNALS]: publicServer.handlerDeps,
      storage: totals.storage,
      system: totals.system,
      replaceGraphs,
      close: (ms = DEFAULT_DRAIN) => (closing ??= shut(ms)),
      ...(links !== undefined && {
        releaseShard: (ms: number) => (released ??= releaseShard(ms)),
        forwardingEnded: () => links.forwarding.idle(),
      }),
    };
  } catch (cause) {
    await closers
      .close()
      .catch((failure: unknown) => logger.error("a failed start left parts open", { cause: failure }));
    throw cause;
  }
}

/** The service over all shards in this process. With one shard, it is the service of that shard. */
function serviceOfShards(shards: readonly Shard[]): UnrestrictedService {
  const services = shards.map(({ service }) => service);
  const [only] = services;
  return services.length === 1 && only !== undefined ? only : createShardedService(services);
}

function itemsOf(storages: readonly Storage[]): StoreItems {
  const items = storages.map(({ catalog }) => catalog.items);
  const [only] = items;
  return items.length === 1 && only !== undefined ? only : shardedStoreItems(items);
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

/** The largest part of the heap that the states of running runs may take. The inputs of queued runs may take another part of this size. */
const HEAP_SHARE = 1 / 8;

/**
 * The limits of the actor system, with defaults. If there are several tenants, one tenant may take at most half of the queue by default.
 * `heap`: the maximum size of the heap, in bytes.
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
    new HttpAppHandler(
      app,
      createBodyOpener(createBodyLimits({ maxBody, maxBodies: Infinity, scheduler })),
      stop,
    )
  );
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** A copy without members that are undefined. */
function definedOf<T extends object>(object: T): Defined<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Defined<T>;
}

function storageOf(data: AppOptions["data"]): StorageOptions {
  if (data === undefined) return { kind: "memory" };
  return typeof data === "string" ? { kind: "level", directory: data } : data;
}

function urlOf({ host, port }: Transport["address"], v4 = "localhost", v6 = v4): string {
  // 0.0.0.0 and :: mean "listen on every address"; not every client can connect to them.
  const reachable = host === "0.0.0.0" ? v4 : host === "::" ? v6 : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
