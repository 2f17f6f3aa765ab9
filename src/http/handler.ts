import { ServiceError, withCauses } from "../model/errors.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Handlers, Headers, HttpRequest, Reply } from "../ports/transport.ts";
import { RouteCall } from "./request-context.ts";
import type { HttpDeps, RouteDeps } from "./deps.ts";
import { jsonReader, jsonSender, listSender } from "./json-list.ts";
import { failureResponseOf } from "../schemas/error-responses.ts";
import { MemoryBudget } from "../ports/memory-budget.ts";
import { TimeBudget } from "../ports/time-budget.ts";
import { loggedReply } from "./request-log.ts";
import { requestId } from "./request-id.ts";
import { type Match, type Route, Router } from "./router.ts";
import { assistantRoutes } from "./routes/assistants.ts";
import { drawingRoutes } from "./routes/graph-drawings.ts";
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
import { stateRoutes } from "./routes/thread-states.ts";
import { threadRoutes } from "./routes/threads.ts";
import { runWaitRoutes } from "./routes/run-waits.ts";
import { countResponse } from "./response-counts.ts";
import { webhookRoutes } from "./routes/webhooks.ts";

const notFound = new ServiceError("route.not_found", "Not Found");
const noKey = new ServiceError(
  "auth.required",
  "A valid API key is needed: send it as x-api-key, or as Authorization: Bearer",
);

/** The HTTP API as one function from request to reply, independent of the transport. */
export function createHandler(given: HttpDeps): Handlers["request"] {
  // Lists have a budget of their own: a long search holds up no other response.
  const sendList = listSender({ ...given, memory: new MemoryBudget(given.scheduler, { reads: 3 }) });
  const deps: RouteDeps = {
    ...given,
    sendList,
    sendJson: jsonSender(sendList),
    readJson: jsonReader(given),
  };
  const { clock, access, logger, requestLog, scheduler, traffic } = deps;
  const routes: Route[] = [
    ...threadRoutes(deps),
    ...stateRoutes(deps),
    ...runRoutes(deps),
    ...cancellationRoutes(deps),
    ...cronRoutes(deps),
    ...runStreamRoutes(deps),
    ...runWaitRoutes(deps),
    ...assistantRoutes(deps),
    ...drawingRoutes(deps),
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
  const serve = (request: HttpRequest, reply: Reply, found: Match | undefined, came: number): void => {
    // Access control comes first, before a body is read.
    const client = access.check(request);
    const { tenant = DEFAULT_TENANT } = client;
    const id = requestId(request, deps.newId);
    const out = isLogged ? loggedReply(deps, request, reply, { id, tenant: client.tenant, came }) : reply;
    const headers = { "x-request-id": id, ...client.headers };
    if (client.refusal !== undefined) return refuse(deps, out, headers, client.refusal);
    if (request.method === "OPTIONS") {
      countResponse(traffic.unrouted, 204);
      return out.send(204, { ...headers, ...access.preflight(request, client) });
    }
    // Before the route is known: a client without a key learns nothing about routes.
    if (client.tenant === undefined && found?.route.keyless !== true)
      return refuse(deps, out, headers, noKey);
    // Also for a wrong method: clients retry a 405 for longer than they should.
    if (found === undefined) return refuse(deps, out, headers, notFound);
    const call = new RouteCall(
      request,
      out,
      { tenant, id, headers },
      found.params,
      traffic.of(found.route),
      deps.budget,
    );
    try {
      found.route.handle(call)?.then(undefined, (cause: unknown) => fail(deps, call, cause));
    } catch (cause) {
      fail(deps, call, cause);
    }
  };
  return (request, reply) => {
    const path = access.path(request.path);
    const found = path === undefined ? undefined : router.find(request.method, path);
    const came = isLogged ? clock.mono() : 0;
    // Health checks do not queue behind other requests.
    if (found?.route.keyless === true) serve(request, reply, found, came);
    else pace.take(() => serve(request, reply, found, came));
  };
}

function refuse({ traffic }: HttpDeps, reply: Reply, extra: Headers, error: ServiceError): void {
  const { status, headers, body } = failureResponseOf(error);
  countResponse(traffic.unrouted, status);
  reply.send(status, { ...headers, ...extra }, body);
}

function fail({ logger }: HttpDeps, call: RouteCall, cause: unknown): void {
  const { status, headers, body } = failureResponseOf(cause);
  const { method, path } = call.request;
  // A refusal because of a shutdown or high load is not a failure of the server.
  if (cause instanceof ServiceError && (cause.code === "server.draining" || cause.code === "server.busy")) {
    logger.info("a request was refused", { method, path, status, request_id: call.id, why: cause.code });
  } else if (status >= 500) {
    logger.error("a request failed", {
      method,
      path,
      status,
      request_id: call.id,
      error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
      ...(cause instanceof Error && cause.cause !== undefined && { cause: withCauses(cause.cause) }),
    });
  }
  // A response that has started cannot be changed.
  if (!call.answered) call.send(status, headers, body);
}
