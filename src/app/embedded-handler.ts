import { isLoopback } from "../access/hosts.ts";
import { parsePathPrefix } from "../access/http-config.ts";
import { respondToWebRequest } from "../http/web-exchange.ts";
import { ServiceError } from "../model/errors.ts";
import type { Handlers, HttpRequest } from "../ports/transport.ts";
import { createNodeHandler, type NodeListener, type NodeUpgradeListener } from "../transport/node-handler.ts";
import { type App, checkOptions, HANDLER_INTERNALS } from "./options.ts";

export interface HandlerOptions {
  /**
   * The path prefix under which the app is reached, such as `/api`. It is removed before routing. Default: no prefix; the app handles all
   * paths.
   */
  readonly prefix?: string;
}

const HANDLER_OPTIONS: Readonly<Record<keyof HandlerOptions, true>> = { prefix: true };

/** An app as a part of another server, which listens instead of the app. */
export interface Handler {
  /**
   * A request listener for a `node:http` server, or a middleware for Express and similar frameworks. The framework may already have read
   * the body as JSON. For a path outside the prefix, `next` is called; without `next`, the response is a 404.
   */
  readonly listener: NodeListener;
  /**
   * Responds to a web `Request`, for Hono and other servers that use web requests. For a path outside the prefix, the response is a 404.
   */
  fetch(request: Request): Promise<Response>;
  /**
   * A listener for the `upgrade` event of a `node:http` server. Returns false if the path is outside the prefix; the caller then has to
   * respond on the socket.
   */
  readonly upgrade: NodeUpgradeListener;
}

const JSON_TYPE = { "content-type": "application/json" };
const NOT_FOUND = JSON.stringify({ detail: "Not Found" });
const STOPPED = JSON.stringify({ detail: "The server has stopped" });
const NOT_LOCAL = JSON.stringify({
  detail:
    "Without a key or users, only connections of this machine are served; give createApp keys, auth or insecure",
});

/**
 * Makes an app part of another server. The app itself need not listen: `createApp({ transport: "none" })`. `app.close()` ends the runs,
 * streams and sockets of the app, but does not close the other server; later requests get a 503.
 * @throws ServiceError `config.invalid` for an invalid prefix or an unknown option
 */
export function createHandler(
  app: Pick<App, typeof HANDLER_INTERNALS>,
  options: HandlerOptions = {},
): Handler {
  checkOptions(options, HANDLER_OPTIONS, "createHandler");
  const { handlers, maxBody, bodyMemory, openBody, scheduler, webRequests, isOnlyForLoopback, add } =
    app[HANDLER_INTERNALS];
  const prefix =
    parsePathPrefix(options.prefix, (what) => {
      throw new ServiceError("config.invalid", `prefix ${what}`);
    }) ?? "";
  const pathOf = (url: string): string | undefined => {
    if (prefix === "") return url;
    if (!url.startsWith(prefix)) return undefined;
    const path = url.slice(prefix.length);
    return path === "" ? "/" : path.startsWith("/") ? path : undefined;
  };
  const isOwn = (url: string) => pathOf(url.split("?", 1)[0] as string) !== undefined;
  const within = (request: HttpRequest): HttpRequest =>
    prefix === "" ? request : new RequestWithPath(request, pathOf(request.path) ?? request.path);
  const served: Handlers = {
    request: (request, reply) => handlers.request(within(request), reply),
    upgrade: (request) => handlers.upgrade(within(request)),
  };
  const node = createNodeHandler(served, { maxBody, bodyMemory, scheduler });
  add(node);

  /**
   * The response that refuses a request, if the app has stopped or does not serve connections to this local address. Undefined: the request
   * is served.
   */
  const refusalFor = (
    localAddress: string | undefined,
  ): readonly [status: number, body: string] | undefined => {
    if (webRequests.isClosed) return [503, STOPPED];
    if (isOnlyForLoopback && localAddress !== undefined && !isLoopback(localAddress.replace(/^::ffff:/i, "")))
      return [403, NOT_LOCAL];
    return undefined;
  };

  return {
    listener(request, response, next) {
      if (!isOwn(request.url ?? "")) {
        if (next !== undefined) return next();
        return void response.writeHead(404, JSON_TYPE).end(NOT_FOUND);
      }
      const refusal = refusalFor(request.socket.localAddress);
      if (refusal === undefined) node.request(request, response);
      else response.writeHead(refusal[0], JSON_TYPE).end(refusal[1]);
    },

    async fetch(request) {
      if (!isOwn(new URL(request.url).pathname))
        return new Response(NOT_FOUND, { status: 404, headers: JSON_TYPE });
      return respondToWebRequest(served.request, request, openBody, webRequests);
    },

    upgrade(request, socket, head) {
      if (!isOwn(request.url ?? "")) return false;
      const refusal = refusalFor(request.socket.localAddress);
      if (refusal === undefined) node.upgrade(request, socket, head);
      else node.refuse(socket, refusal[0], JSON_TYPE, refusal[1]);
      return true;
    },
  };
}

/** Wraps a request so that it has a different path. */
class RequestWithPath implements HttpRequest {
  readonly path: string;
  readonly method: string;
  readonly query: string;
  readonly #request: HttpRequest;

  constructor(request: HttpRequest, path: string) {
    this.path = path;
    this.method = request.method;
    this.query = request.query;
    this.#request = request;
  }

  header(name: string): string | undefined {
    return this.#request.header(name);
  }

  headers(): Iterable<readonly [name: string, value: string]> {
    return this.#request.headers();
  }

  body(tenant?: string): Promise<Uint8Array> {
    return this.#request.body(tenant);
  }

  bodyRead(): void {
    this.#request.bodyRead?.();
  }
}
