import { type ErrorCode, ServiceError, withCauses } from "../model/errors.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import { budgetOwnerOf } from "../model/auth-user.ts";
import type { LogLevel } from "../ports/logger.ts";
import type { RequestForwarder } from "../ports/peers.ts";
import type { Handlers, Headers, HttpRequest, Reply } from "../ports/transport.ts";
import type { AccessDecision } from "../access/access-control.ts";
import { type CallClient, RouteCall } from "./route-call.ts";
import type { HttpDeps, RouteDeps } from "./deps.ts";
import { createStoredSender, createJsonSender, createListSender } from "./json-responses.ts";
import { failureResponseOf } from "../schemas/error-to-response.ts";
import { ResponseMemoryBudget } from "../stream/response-memory-budget.ts";
import { TimeBudget } from "../ports/time-budget.ts";
import { type LoggedClient, loggedReply } from "./request-log.ts";
import { shardSelectorOf, startsRun } from "./request-shard.ts";
import { requestId } from "./request-id.ts";
import { type Match, type Route, Router } from "./router.ts";
import { assistantRoutes } from "./routes/assistants.ts";
import { graphIntrospectionRoutes } from "./routes/graph-introspection.ts";
import { protocolRoutes } from "./routes/thread-protocol.ts";
import { socketTokenRoutes } from "./routes/socket-tokens.ts";
import { componentRoutes } from "./routes/ui-components.ts";
import { cronRoutes } from "./routes/crons.ts";
import { cancellationRoutes } from "./routes/run-cancellation.ts";
import { inspectRoutes } from "./routes/inspect.ts";
import { healthRoutes } from "./routes/health.ts";
import { docsRoutes } from "./routes/docs.ts";
import { pageRoutes } from "./routes/pages.ts";
import { runRoutes } from "./routes/runs.ts";
import { storeRoutes } from "./routes/store.ts";
import { runStreamRoutes } from "./routes/run-streams.ts";
import { machineEventRoutes } from "./routes/machine-events.ts";
import { stateRoutes } from "./routes/thread-states.ts";
import { threadRoutes } from "./routes/threads.ts";
import { runWaitRoutes } from "./routes/run-waits.ts";
import { countResponse } from "./response-counts.ts";
import { webhookRoutes } from "./routes/webhook-deliveries.ts";

const notFound = new ServiceError("route.not_found", "Not Found");
const hasStopped = new ServiceError("server.draining", "The server is stopping");
const onlyWithKey = new ServiceError(
  "auth.forbidden",
  "No rule says which users may do this: it needs an API key of the server",
);
const noKey = new ServiceError(
  "auth.required",
  "A valid API key is needed: send it as x-api-key, or as Authorization: Bearer",
);

/** Used as `serviceOf` if there are no users. It throws, so that no user can ever get the unrestricted service. */
const noUsers = (): never => {
  throw new TypeError("users need a service of their own");
};

/** Creates the HTTP API as one function of request and reply, independent of the transport. */
export function createRequestHandler(given: HttpDeps): Handlers["request"] {
  const { service, serviceOf = noUsers, ...rest } = given;
  // Lists have a memory budget of their own, so that a long search does not delay other responses.
  const sendList = createListSender({ ...given, memory: new ResponseMemoryBudget(given.scheduler) });
  const deps: RouteDeps = {
    ...rest,
    sendList,
    sendJson: createJsonSender(sendList),
    sendStored: createStoredSender(given),
  };
  const { clock, access, httpApp, logger, requestLog, scheduler, traffic } = deps;
  const routes: Route[] = [
    ...threadRoutes(deps),
    ...stateRoutes(deps),
    ...machineEventRoutes(deps),
    ...runRoutes(deps),
    ...cancellationRoutes(),
    ...cronRoutes(deps),
    ...runStreamRoutes(deps),
    ...runWaitRoutes(deps),
    ...assistantRoutes(deps),
    ...graphIntrospectionRoutes(),
    ...protocolRoutes(deps),
    ...socketTokenRoutes(deps),
    ...storeRoutes(deps),
    ...webhookRoutes(deps),
    ...healthRoutes(deps),
    ...componentRoutes(deps),
    ...inspectRoutes(deps),
    ...pageRoutes(deps),
  ];
  routes.push(...docsRoutes(deps, () => routes));
  const router = new Router(routes);
  const pace = new TimeBudget(clock, scheduler);
  const isLogged = logger.isOn?.(requestLog) ?? true;

  function dispatch(request: HttpRequest, reply: Reply, found: Match | undefined, client: CallClient): void {
    // A known path with a wrong method gets 404 too, not 405.
    if (found === undefined) return refuse(deps, reply, client.headers, notFound);
    const { route } = found;
    if (client.user !== undefined && route.access === undefined)
      return refuse(deps, reply, client.headers, onlyWithKey);
    if (deps.forwarding !== undefined && tryForward(deps.forwarding, request, reply, found, client)) return;
    // The data of this process are closed. The response closes the connection, so the next request reaches another process.
    if (deps.hasReleasedShard?.() === true && route.access !== "public")
      return refuse(deps, reply, client.headers, hasStopped);
    const call = new RouteCall(request, reply, client, found.params, traffic.of(route), deps.budget);
    try {
      route.handle(call)?.then(undefined, (cause: unknown) => fail(deps, call, cause));
    } catch (cause) {
      fail(deps, call, cause);
    }
  }

  /**
   * Forwards the request to the process that owns the shard to which the request belongs. Returns false, and does nothing, if this process
   * has to handle the request, because it owns the shard or because any process can.
   */
  function tryForward(
    forwarding: RequestForwarder,
    request: HttpRequest,
    reply: Reply,
    found: Match,
    client: CallClient,
  ): boolean {
    const name = shardSelectorOf(found, request);
    if (name === undefined) return false;
    const count = (status: number) => countResponse(traffic.of(found.route), status);
    const forwarded = forwarding.request(name, request, reply, {
      client,
      startsRun: startsRun(found),
      count,
    });
    forwarded?.catch((cause: unknown) => {
      logFailure(deps, request, client.id, cause);
      if (!reply.aborted) refuse(deps, reply, client.headers, cause);
    });
    return forwarded !== undefined;
  }

  function respond(request: HttpRequest, reply: Reply, found: Match | undefined, client: CallClient): void {
    if (httpApp === undefined) return dispatch(request, reply, found, client);
    const { id, headers, tenant, user, isKnown } = client;
    const next = (asked: HttpRequest, to: Reply): void => {
      const path = access.path(asked.path);
      const match = path === undefined ? undefined : router.find(asked.method, path);
      // The route is looked up again, because the application may have changed the path or method of the request.
      if (!isKnown && match?.route.access !== "public") refuse(deps, to, headers, noKey);
      else dispatch(asked, to, match, client);
    };
    const count = (status: number) => countResponse(traffic.unrouted, status);
    const onLateError = (cause: unknown) => logFailure(deps, request, id, cause);
    const hasRoute = found !== undefined;
    const asked = { request, reply, tenant, user, headers, hasRoute, next, count, onLateError };
    httpApp.handle(asked).catch((cause: unknown) => {
      // The client has disconnected, which is the cause of the error.
      if (reply.aborted) return;
      fail(deps, { request, id, answered: false, send: reply.send.bind(reply) }, cause);
    });
  }

  /**
   * Authenticates the user of a request, then responds. `logged` is completed with the tenant and the user for the request's line in the
   * log.
   */
  function authenticate(
    request: HttpRequest,
    reply: Reply,
    found: Match | undefined,
    { id, headers }: Pick<CallClient, "id" | "headers">,
    logged: LoggedClient | undefined,
  ): void {
    const tenant = DEFAULT_TENANT;
    access.authenticate(request).then(
      (user) => {
        if (logged !== undefined) Object.assign(logged, { tenant, user: user.identity });
        const client = { tenant, user, service: serviceOf(user), isKnown: true, id, headers };
        pace.take(budgetOwnerOf(tenant, user), () => respond(request, reply, found, client));
      },
      (cause: unknown) => {
        logFailure(deps, request, id, cause);
        refuse(deps, reply, headers, cause);
      },
    );
  }

  const serve = (
    request: HttpRequest,
    reply: Reply,
    found: Match | undefined,
    came: number,
    decision: AccessDecision,
  ): void => {
    const id = requestId(request, deps.newId);
    const logged = isLogged ? { id, tenant: decision.tenant, came } : undefined;
    const out = logged === undefined ? reply : loggedReply(deps, request, reply, logged);
    const headers = { "x-request-id": id, ...decision.headers };
    if (decision.refusal !== undefined) return refuse(deps, out, headers, decision.refusal);
    if (request.method === "OPTIONS") {
      countResponse(traffic.unrouted, 204);
      return out.send(204, { ...headers, ...access.preflight(request, decision) });
    }
    const isPublic = found?.route.access === "public";
    // Credentials are checked before a missing route is reported, so that a client without credentials learns nothing
    // about routes.
    if (decision.tenant === undefined && !isPublic) {
      if (!access.hasUsers) return refuse(deps, out, headers, noKey);
      return authenticate(request, out, found, { id, headers }, logged);
    }
    const { tenant = DEFAULT_TENANT } = decision;
    const client = { tenant, user: undefined, service, isKnown: decision.tenant !== undefined, id, headers };
    respond(request, out, found, client);
  };
  return (request, reply) => {
    const path = access.path(request.path);
    const found = path === undefined ? undefined : router.find(request.method, path);
    const came = isLogged ? clock.mono() : 0;
    // Access control comes before the body is read, and before the queue in which requests of all tenants wait for their turn.
    const decision = access.check(request);
    // Public routes, such as health checks, do not queue behind other requests.
    if (found?.route.access === "public") serve(request, reply, found, came, decision);
    else pace.take(decision.tenant ?? "", () => serve(request, reply, found, came, decision));
  };
}

/**
 * Log levels for errors that do not concern the single request. A failed storage and the stop of the server are each logged once elsewhere,
 * so the requests refused because of them are logged at a low level.
 */
const REFUSAL_LEVELS: { readonly [code in ErrorCode]?: LogLevel } = {
  "server.draining": "debug",
  "server.busy": "info",
  "storage.unavailable": "debug",
};

function refuse({ traffic }: RouteDeps, reply: Reply, extra: Headers, error: unknown): void {
  const { status, headers, body } = failureResponseOf(error);
  countResponse(traffic.unrouted, status);
  reply.send(status, { ...headers, ...extra }, body);
}

type FailedCall = Pick<RouteCall, "request" | "id" | "answered" | "send">;

function fail(deps: RouteDeps, call: FailedCall, cause: unknown): void {
  const { status, headers, body } = failureResponseOf(cause);
  logFailure(deps, call.request, call.id, cause);
  // A response that has started cannot be replaced by an error response.
  if (!call.answered) call.send(status, headers, body);
}

function logFailure({ logger }: RouteDeps, { method, path }: HttpRequest, id: string, cause: unknown): void {
  const { status } = failureResponseOf(cause);
  const why = cause instanceof ServiceError ? cause.code : undefined;
  const level = why && REFUSAL_LEVELS[why];
  if (level !== undefined) {
    logger[level]("a request was refused", { method, path, status, request_id: id, why });
  } else if (status >= 500) {
    logger.error("a request failed", {
      method,
      path,
      status,
      request_id: id,
      error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
      ...(cause instanceof Error && cause.cause !== undefined && { cause: withCauses(cause.cause) }),
    });
  }
}
