import { ServiceError } from "../model/errors.ts";
import { budgetOwnerOf } from "../model/auth-user.ts";
import { parseUuid } from "../model/ids.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Handlers, HttpRequest, Socket, Upgrade } from "../ports/transport.ts";
import { refuseSocket, UNAUTHORIZED } from "./close-codes.ts";
import type { AcceptedUpgrade, SocketClient, SocketHandlerDeps, UpgradeDeps } from "./deps.ts";
import { SocketBeforeAuth } from "./socket-before-auth.ts";
import { openProtocolSocket } from "./protocol-socket.ts";
import { openRunSocket } from "./run-socket.ts";
import { encodeAnswer, errorAnswerOf } from "./socket-answers.ts";
import { openThreadSocket } from "./thread-socket.ts";
import { failureDetailsOf } from "../schemas/error-to-response.ts";

/** Serves a socket. An error that it throws becomes the code and the reason with which the socket is closed. */
type Open = (deps: SocketHandlerDeps, socket: Socket, upgraded: AcceptedUpgrade) => Promise<void>;

const routes: readonly (readonly [path: RegExp, open: Open])[] = [
  [/^\/threads\/([^/]+)\/runs\/([^/]+)\/stream$/, openRunSocket],
  [/^\/threads\/([^/]+)\/stream$/, openThreadSocket],
  [/^\/threads\/([^/]+)\/stream\/events$/, openProtocolSocket],
  [/^\/inspect$/, async ({ inspect }, socket, upgraded) => inspect(socket, upgraded, upgraded.query)],
];

export const socketPaths: readonly RegExp[] = routes.map(([path]) => path);

/** The WebSocket subprotocol for MessagePack messages instead of text. */
const PACKED = "heddle.msgpack";

/** Stands in for `serviceOf` if there are no users. It throws, so that no user can ever get the unrestricted service. */
const noUsers = (): never => {
  throw new TypeError("users need a service of their own");
};

/** Routes WebSockets. Errors at a known path become close codes: browsers do not show why an upgrade was refused. */
export function createUpgrade(given: UpgradeDeps): Handlers["upgrade"] {
  const { service, serviceOf = noUsers, ...deps } = given;
  const { access, configurableHeaders, logger, requestLog } = deps;

  /**
   * The client of a handshake; undefined if it has no credentials. A user who has no token is identified by the
   * project's own code, which takes time.
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
    // The peer may disconnect before its socket is open; then a rejection must not be unhandled.
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
    // A page of a foreign origin gets no socket at all.
    if (refusal !== undefined) return refuse(403, refusal.message);
    const packed = protocolsOf(request).includes(PACKED);
    const protocol = packed && path !== "/inspect" ? { protocol: PACKED } : {};
    const client = clientOf(request, decision);
    // Clients stop at a close code; after a refused upgrade they retry forever.
    if (client === undefined) {
      return { kind: "accept", ...protocol, open: (socket) => socket.close(...UNAUTHORIZED) };
    }
    const found = routeOf(path);
    const missing = `There is no WebSocket at ${request.path.slice(0, 200)}`;
    if (found === undefined && !(client instanceof Promise)) return refuse(404, missing);
    // Reads the request now, because it cannot be read any more after this call has returned.
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
      // Only clients with credentials learn that there is no WebSocket at this path.
      if (found === undefined) throw new ServiceError("route.not_found", missing);
      if (path !== "/inspect") deps.sockets.add(socket);
      const name = socketShardOf(path, found.parts, upgraded.query);
      // Without a name, `/inspect` shows the actors of all shards. On another path, the id in the path is invalid, and
      // this process refuses it.
      if (deps.forwarding !== undefined && (name !== undefined || path === "/inspect")) {
        const forwarded = deps.forwarding.socket(name, socket, known, {
          path: target,
          headers: headers ?? {},
          ...protocol,
        });
        if (forwarded !== undefined) return forwarded;
      }
      const accepted = { ...known, ...upgraded, configurable: configurable(), parts: found.parts };
      await found.open(deps, socket, accepted);
    };
    return {
      kind: "accept",
      ...protocol,
      open(socket) {
        if (!(client instanceof Promise))
          return void serve(socket, client).catch((cause: unknown) => failed(socket, cause));
        const buffered = new SocketBeforeAuth(socket);
        let gone = false;
        socket.onClose(() => (gone = true));
        client
          .then((known) => (gone ? undefined : serve(buffered, known)))
          .catch((cause: unknown) => failed(socket, cause))
          .finally(() => buffered.discard());
      },
    };
  };
}

/** Calls a function now, and returns a getter that returns its result or throws its error. */
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

/** The thread or the run whose shard serves a socket; undefined for the inspector's feed of all threads. */
function socketShardOf(path: string, [thread]: readonly string[], query: string): string | undefined {
  if (path !== "/inspect") return parseUuid(thread);
  const asked = new URLSearchParams(query);
  // The id of a run was made so that it leads to the same shard as the id of its thread.
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
