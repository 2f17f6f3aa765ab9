import { ServiceError } from "../model/errors.ts";
import { budgetOwnerOf } from "../model/auth-user.ts";
import { parseUuid } from "../model/ids.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Handlers, HttpRequest, Socket, Upgrade } from "../ports/transport.ts";
import { UNAUTHORIZED_CLOSE } from "./close-codes.ts";
import { refuseSocket } from "./refuse-socket.ts";
import type { AcceptedUpgrade, SocketClient, SocketHandlerDeps, UpgradeDeps } from "./deps.ts";
import { BufferingSocket } from "./buffering-socket.ts";
import { openProtocolSocket } from "./protocol-socket.ts";
import { openRunSocket } from "./run-socket.ts";
import { encodeAnswer, errorAnswerOf } from "./socket-answers.ts";
import { openThreadSocket } from "./thread-socket.ts";
import { failureDetailsOf } from "../schemas/error-to-response.ts";

/** Serves an open socket. If the promise rejects, the socket is closed with a code and a reason made from the error. */
type Open = (deps: SocketHandlerDeps, socket: Socket, upgraded: AcceptedUpgrade) => Promise<void>;

const routes: readonly (readonly [path: RegExp, open: Open])[] = [
  [/^\/threads\/([^/]+)\/runs\/([^/]+)\/stream$/, openRunSocket],
  [/^\/threads\/([^/]+)\/stream$/, openThreadSocket],
  [/^\/threads\/([^/]+)\/stream\/events$/, openProtocolSocket],
  [/^\/inspect$/, async ({ inspect }, socket, upgraded) => inspect(socket, upgraded, upgraded.query)],
];

export const socketPaths: readonly RegExp[] = routes.map(([path]) => path);

/** The WebSocket subprotocol that a client requests to get MessagePack messages instead of text. */
const PACKED = "heddle.msgpack";

/** Used as `serviceOf` on a server without users. It throws, so that no user can ever get the unrestricted service. */
const noUsers = (): never => {
  throw new TypeError("users need a service of their own");
};

/**
 * Creates the handler of WebSocket upgrades. Most errors do not refuse the upgrade; instead the socket is opened and closed at once with a
 * code for the error, because browsers do not show why an upgrade was refused.
 */
export function createUpgrade(given: UpgradeDeps): Handlers["upgrade"] {
  const { service, serviceOf = noUsers, ...deps } = given;
  const { access, configurableHeaders, logger, requestLog } = deps;

  /**
   * Finds the client of a handshake; undefined if it has no valid credentials. A promise if the project's authentication code has to
   * identify the user.
   */
  function clientOf(
    request: HttpRequest,
    { tenant, user }: ReturnType<typeof access.checkSocket>,
  ): SocketClient | Promise<SocketClient> | undefined {
    if (tenant !== undefined) {
      const budgetOwner = budgetOwnerOf(tenant, user);
      return { tenant, user, budgetOwner, service: user === undefined ? service : serviceOf(user) };
    }
    if (!access.hasUsers) return undefined;
    const client = access.authenticate(request).then((found) => ({
      tenant: DEFAULT_TENANT,
      user: found,
      budgetOwner: budgetOwnerOf(DEFAULT_TENANT, found),
      service: serviceOf(found),
    }));
    // Prevents an unhandled rejection in case the client disconnects before its socket is open.
    client.catch(() => undefined);
    return client;
  }

  return (request) => {
    const decision = access.checkSocket(request);
    const { tenant, user, refusal } = decision;
    const path = access.path(request.path) ?? "";
    logger[requestLog]("socket", {
      path: request.path.slice(0, 300),
      tenant,
      ...(user && { user: user.identity }),
      refused: refusal?.message,
    });
    // A page whose origin is not allowed gets no socket, not even one that is closed with a code.
    if (refusal !== undefined) return refuse(403, refusal.message);
    const packed = protocolsOf(request).includes(PACKED);
    const protocol = packed && path !== "/inspect" ? { protocol: PACKED } : {};
    const client = clientOf(request, decision);
    // The upgrade is accepted and the socket closed with a code, because clients stop at this code. After a refused upgrade they would
    // connect again and again.
    if (client === undefined) {
      return { kind: "accept", ...protocol, open: (socket) => socket.close(...UNAUTHORIZED_CLOSE) };
    }
    const found = routeOf(path);
    const missing = `There is no WebSocket at ${request.path.slice(0, 200)}`;
    if (found === undefined && !(client instanceof Promise)) return refuse(404, missing);
    // Headers and query are read now, because the request becomes invalid when this function has returned.
    const configurable = attempt(() => configurableHeaders(request));
    const upgraded = { query: request.query, lastEventId: request.header("last-event-id"), packed };
    const headers = deps.forwarding && Object.fromEntries(request.headers());
    const target = request.query === "" ? request.path : `${request.path}?${request.query}`;
    const failed = (socket: Socket, cause: unknown) => {
      refuseSocket(socket, cause, (error) => encodeAnswer(packed, errorAnswerOf(null, error)));
      if (failureDetailsOf(cause).status < 500) return;
      logger.error("a WebSocket request failed", { path, error: String(cause) });
    };
    const serve = async (socket: Socket, known: SocketClient): Promise<void> => {
      // An unknown path is reported only here, after authentication, so that a client without credentials does not learn which paths exist.
      if (found === undefined) throw new ServiceError("route.not_found", missing);
      deps.sockets.add(socket, path !== "/inspect");
      const name = socketShardOf(path, found.parts, upgraded.query);
      // `name` is undefined in two cases: `/inspect` without a thread or run, which is forwarded to all shards, and a path with an invalid
      // id, which this process refuses.
      if (deps.forwarding !== undefined && (name !== undefined || path === "/inspect")) {
        const forwarded = deps.forwarding.socket(name, socket, known, {
          path: target,
          headers: headers ?? {},
          ...protocol,
        });
        if (forwarded !== undefined) {
          deps.sockets.setForwarded(socket);
          return forwarded;
        }
      }
      const accepted = { ...known, ...upgraded, configurable: configurable(), parts: found.parts };
      await found.open(deps, socket, accepted);
    };
    return {
      kind: "accept",
      ...protocol,
      open(socket) {
        // Messages have to be buffered until the client is authenticated, and until the connection to the process of another shard is open.
        if (!(client instanceof Promise) && deps.forwarding === undefined)
          return void serve(socket, client).catch((cause: unknown) => failed(socket, cause));
        const buffered = new BufferingSocket(socket);
        let gone = false;
        socket.onClose(() => (gone = true));
        Promise.resolve(client)
          .then((known) => (gone ? undefined : serve(buffered, known)))
          .catch((cause: unknown) => failed(socket, cause))
          .finally(() => buffered.discard());
      },
    };
  };
}

/** Calls a function at once. Returns a function that returns the result or throws the error of that call. */
function attempt<T>(call: () => T): () => T {
  try {
    const value = call();
    return () => value;
  } catch (cause) {
    return () => {
      throw cause;
    };
  }
}

/** The id of the thread or run whose shard serves a socket. Undefined for the inspector's feed of all threads, or if the id is invalid. */
function socketShardOf(path: string, [thread]: readonly string[], query: string): string | undefined {
  if (path !== "/inspect") return parseUuid(thread);
  const asked = new URLSearchParams(query);
  // Run ids are generated so that they select the shard of their thread.
  return parseUuid(asked.get("thread_id")) ?? parseUuid(asked.get("run_id"));
}

function routeOf(path: string): { readonly open: Open; readonly parts: readonly string[] } | undefined {
  for (const [pattern, open] of routes) {
    const match = pattern.exec(path);
    if (match !== null) return { open, parts: match.slice(1) };
  }
  return undefined;
}

const protocolsOf = (request: HttpRequest): readonly string[] =>
  (request.header("sec-websocket-protocol") ?? "").split(",").map((name) => name.trim());

function refuse(status: number, detail: string): Upgrade {
  const headers = { "content-type": "application/json" };
  return { kind: "refuse", status, headers, body: JSON.stringify({ detail }) };
}
