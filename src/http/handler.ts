import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Handlers } from "../ports/transport.ts";
import { Call } from "./call.ts";
import type { HttpDeps } from "./deps.ts";
import { failureOf, JSON_HEADERS } from "./errors.ts";
import { Router } from "./router.ts";
import { assistantRoutes } from "./routes/assistants.ts";
import { metaRoutes } from "./routes/meta.ts";
import { runRoutes } from "./routes/runs.ts";
import { streamRoutes } from "./routes/streams.ts";
import { threadRoutes } from "./routes/threads.ts";
import { waitRoutes } from "./routes/waits.ts";

const NOT_FOUND = JSON.stringify({ detail: "Not Found", code: "route.not_found" });

/** The wire protocol as one function from request to reply, whatever carries them. */
export function createHandler(deps: HttpDeps): Handlers["request"] {
  const router = new Router([
    ...threadRoutes(deps),
    ...runRoutes(deps),
    ...streamRoutes(deps),
    ...waitRoutes(deps),
    ...assistantRoutes(deps),
    ...metaRoutes(deps),
  ]);
  return (request, reply) => {
    // The place for the door: who may come in, from which page and to which tenant, is decided before anything is read.
    const found = router.find(request.method, request.path);
    // Also for another method: clients try 405 again for longer than they should.
    if (found === undefined) return reply.send(404, JSON_HEADERS, NOT_FOUND);
    const call = new Call(request, reply, DEFAULT_TENANT, found.params);
    try {
      found.route.handle(call)?.then(undefined, (cause: unknown) => fail(deps, call, cause));
    } catch (cause) {
      fail(deps, call, cause);
    }
  };
}

function fail({ logger }: HttpDeps, call: Call, cause: unknown): void {
  const { status, headers, body } = failureOf(cause);
  const { method, path } = call.request;
  if (status >= 500) {
    logger.error("a request failed", {
      method,
      path,
      status,
      error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
    });
  }
  // Nothing is left to say to whom has been answered.
  if (!call.answered) call.send(status, headers, body);
}
