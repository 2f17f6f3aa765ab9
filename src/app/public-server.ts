import type { AccessControl } from "../access/access-control.ts";
import { createHeaderSelector } from "../access/configurable-headers.ts";
import type { CallableServices } from "../cluster/process-calls.ts";
import type { Config } from "../config/config.ts";
import { DEFAULT_VIEWER } from "../config/inspector.ts";
import { bundledComponents } from "../config/component-bundler.ts";
import type { HttpAppHandler } from "../http/custom-http-app.ts";
import type { HttpDeps, ReadyDetails } from "../http/deps.ts";
import { createRequestHandler } from "../http/handler.ts";
import { TrafficCounts } from "../http/response-counts.ts";
import { UnattendedRuns } from "../http/unattended-runs.ts";
import { PendingWebRequests, respondToWebRequest } from "../http/web-exchange.ts";
import type { AuthUser } from "../model/auth-user.ts";
import { ServiceError } from "../model/errors.ts";
import { createBodyLimits } from "../ports/body-memory.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { ResponseMemoryBudget } from "../stream/response-memory-budget.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Handlers, Transport } from "../ports/transport.ts";
import { maxFileDescriptors } from "../platform/file-descriptor-limit.ts";
import { systemProcessMetrics } from "../platform/process-metrics.ts";
import { VERSION } from "../platform/version.ts";
import type { Service, UnrestrictedService } from "../service/service.ts";
import { maxConnectionsOf } from "../transport/transport-limits.ts";
import type { PeerServer } from "../transport/peer-server.ts";
import { openTransport } from "../transport/open-transport.ts";
import { createBodyOpener } from "../transport/request-body.ts";
import type { UpgradeDeps } from "../websocket/deps.ts";
import { InspectorFeeds } from "../websocket/inspector/inspect-sockets.ts";
import { OpenSockets } from "../websocket/open-sockets.ts";
import { createUpgrade } from "../websocket/upgrade.ts";
import { builtPages } from "./dashboard-files.ts";
import { createMetrics, type MetricsDeps } from "./metrics.ts";
import { withNextPort } from "./next-port.ts";
import type { App, AppOptions, HandlerDeps } from "./options.ts";
import type { ShardLinks } from "./shard-links.ts";

export interface PublicServerDeps {
  readonly service: UnrestrictedService;
  /** Returns the service restricted to what a user may do; undefined if the server has no users. */
  readonly serviceOf: ((user: AuthUser) => Service) | undefined;
  /** The sums of the metrics of all shards in this process. */
  readonly totals: Pick<MetricsDeps, "system" | "storage" | "outbox" | "runLogs">;
  /** Resolves if the storage accepts writes. @throws ServiceError `storage.unavailable` */
  readonly checkStorage: () => Promise<ReadyDetails>;
  readonly access: AccessControl;
  /** Connects this process with the processes of the other shards. Absent if this process has all shards. */
  readonly links?: PublicServerLinks;
  readonly httpApp: HttpAppHandler | undefined;
  readonly langGraphVersion: HttpDeps["about"]["langGraphVersion"];
  /** The maximum size of a request body, in bytes. */
  readonly maxBody: number;
  /** The options of the app. An option takes precedence over the same setting in `config`. */
  readonly options: AppOptions;
  readonly config: Config | undefined;
  readonly newId: () => string;
  readonly budget: TimeBudget;
  readonly streamMemory: ResponseMemoryBudget;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** The logger for requests of clients. Once the server has stopped, it logs warnings and errors at the level `info`. */
  readonly servingLogger: Logger;
}

/** What the public server uses of {@link ShardLinks}, and the access control for forwarded requests. */
export interface PublicServerLinks extends Pick<
  ShardLinks,
  "forwarding" | "metrics" | "releaseShard" | "checkLeases"
> {
  /** The access control for requests that other processes forward. */
  readonly access: AccessControl;
  /** Opens the server to which other processes send requests and calls. Resolves with undefined if this process has no shard. */
  listen(
    handlers: Handlers,
    metrics: CallableServices["metrics"],
    limits: Parameters<ShardLinks["listen"]>[2],
  ): Promise<PeerServer | undefined>;
}

/** The part of a server that clients reach: transport, routes, sockets, pages and metrics. It holds no threads or runs. */
export interface PublicServer {
  readonly transport: App["transport"];
  readonly address: Transport["address"];
  readonly fetch: App["fetch"];
  readonly handlerDeps: HandlerDeps;
  /** Starts recording the history of the metrics. */
  start(): void;
  /** Accepts no new connections. From then on, readiness checks fail. */
  startDraining(): void;
  /**
   * Accepts no new connections, closes the WebSockets that this process serves itself, and handles no more requests of other processes. From
   * then on, the requests on open connections are forwarded or refused.
   */
  releaseShard(): Promise<void>;
  /** Ends the requests that came through embedded handlers or {@link fetch}, and closes all WebSockets of clients. */
  endRequests(): void;
  close(): Promise<void>;
}

/**
 * Builds the public part of a server, and opens its transport.
 * @throws ServiceError `config.invalid`, `unsupported`, `server.address`
 */
export async function openPublicServer(deps: PublicServerDeps): Promise<PublicServer> {
  const { service, serviceOf, totals, access, options, config, httpApp, maxBody } = deps;
  const { newId, budget, streamMemory, clock, scheduler, logger, servingLogger, links } = deps;
  const bodies = createBodyLimits({ maxBody, scheduler });
  const openBody = createBodyOpener(bodies);
  const chosen = await openTransport(options.transport);
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
  const watch: UpgradeDeps["inspect"] = (socket, { tenant, budgetOwner, service }, query) =>
    feeds.open(socket, { tenant, budgetOwner, inspection: service.inspection }, query);
  const [traffic, sockets] = [new TrafficCounts(), new OpenSockets()];
  const metrics = createMetrics({
    ...totals,
    about: { version: VERSION, transport: chosen.kind },
    traffic,
    sockets,
    feeds,
    process: systemProcessMetrics,
    ...(links && { multiProcess: links.metrics }),
    clock,
    scheduler,
    logger,
  });
  let isDraining = false;
  let isReleased = false;
  const shared = {
    service,
    ...(serviceOf && { serviceOf }),
    access,
    configurableHeaders: createHeaderSelector(options.configurableHeaders ?? config?.configurableHeaders),
    scheduler,
    budget,
    streamMemory,
    logger: servingLogger,
    requestLog,
  };
  const requests = {
    ...shared,
    clock,
    // Streams have a memory budget of their own (`streamMemory`), so that a tenant's unread streams do not delay its other responses.
    memory: new ResponseMemoryBudget(scheduler),
    newId,
    ready: async () => {
      if (isDraining) throw stoppingError();
      links?.checkLeases();
      return deps.checkStorage();
    },
    inspect,
    dashboard: { prices: {}, ...config?.dashboard, ...options.dashboard, has_users: serviceOf !== undefined },
    pages: builtPages(),
    ...(config?.components !== undefined && { components: bundledComponents(config.components) }),
    traffic,
    metrics: metrics.render,
    metricsHistory: metrics.history,
    ...(metrics.status && { shardStatus: metrics.status }),
    about: {
      version: VERSION,
      transport: { kind: chosen.kind, why: chosen.why },
      ...(deps.langGraphVersion && { langGraphVersion: deps.langGraphVersion }),
    },
  };
  const forwarding = links && { forwarding: links.forwarding };
  const handlers = {
    request: createRequestHandler({
      ...requests,
      ...forwarding,
      hasReleasedShard: () => isReleased,
      ...(httpApp !== undefined && { httpApp }),
    }),
    upgrade: createUpgrade({ ...shared, ...forwarding, sockets, inspect: watch }),
  };
  // The handlers of forwarded requests get no `forwarding`: this process answers them itself. They are counted by the process to which the
  // client is connected, not by this process.
  const forPeers = {
    access: links?.access ?? access,
    traffic: new TrafficCounts(),
    sockets: new OpenSockets(),
  };
  const unattendedRuns = new UnattendedRuns(scheduler);
  const peerServer = await links?.listen(
    {
      request: createRequestHandler({ ...requests, ...forPeers, isForPeers: true, unattendedRuns }),
      upgrade: createUpgrade({ ...shared, ...forPeers, inspect: watch }),
    },
    metrics.own,
    // A call between processes may be larger than the client's request that causes it, so its limit is twice as high.
    { maxBody: 2 * maxBody, bodyMemory: bodies.memory, scheduler },
  );
  const descriptors = maxFileDescriptors();
  const open = options.takeNextPort === true ? withNextPort(chosen) : chosen;
  const transport = await open(handlers, {
    host: options.host ?? "127.0.0.1",
    port: options.port ?? 0,
    sharesPort: links !== undefined,
    maxBody,
    bodyMemory: bodies.memory,
    ...(descriptors !== undefined && { maxConnections: maxConnectionsOf(descriptors) }),
    scheduler,
  });
  const webRequests = new PendingWebRequests();
  const embedded: Parameters<HandlerDeps["add"]>[0][] = [];
  return {
    transport: { kind: transport.kind, why: chosen.why },
    address: transport.address,
    fetch: (request) => respondToWebRequest(handlers.request, request, openBody, webRequests),
    handlerDeps: {
      handlers,
      maxBody,
      bodyMemory: bodies.memory,
      openBody,
      scheduler,
      webRequests,
      isOnlyForLoopback: !access.needsCredentials && options.insecure !== true,
      add: (part) => void embedded.push(part),
    },
    start: () => metrics.start(),
    startDraining() {
      isDraining = true;
      metrics.close();
      for (const part of [transport, ...embedded]) part.startDraining();
      peerServer?.startDraining();
    },
    async releaseShard() {
      isReleased = true;
      links?.releaseShard();
      transport.stopListening();
      sockets.closeOwn();
      await peerServer?.close();
    },
    endRequests() {
      sockets.closeAll();
      webRequests.close();
      for (const part of embedded) part.close();
    },
    async close() {
      await transport.close();
      if (!isReleased) await peerServer?.close();
    },
  };
}

export const stoppingError = () => new ServiceError("server.draining", "The server is stopping");
