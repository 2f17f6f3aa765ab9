import type { Handlers, HttpRequest, Socket, Upgrade } from "../ports/transport.ts";
import { refuseSocket, UNAUTHORIZED } from "./close-codes.ts";
import type { AcceptedUpgrade, WebSocketDeps } from "./deps.ts";
import { openProtocolSocket } from "./protocol-socket.ts";
import { openRunSocket } from "./run-socket.ts";
import { openThreadSocket } from "./thread-socket.ts";
import { failureDetailsOf } from "../schemas/error-responses.ts";

/** Serves a socket. An error that it throws becomes the code and the reason with which the socket is closed. */
type Open = (deps: WebSocketDeps, socket: Socket, asked: AcceptedUpgrade) => Promise<void>;

const routes: readonly (readonly [path: RegExp, open: Open])[] = [
  [/^\/threads\/([^/]+)\/runs\/([^/]+)\/stream$/, openRunSocket],
  [/^\/threads\/([^/]+)\/stream$/, openThreadSocket],
  [/^\/threads\/([^/]+)\/stream\/events$/, openProtocolSocket],
];

/** The WebSocket subprotocol for MessagePack messages instead of text. */
const PACKED = "heddle.msgpack";

/** Routes WebSockets. Errors at a known path become close codes: browsers do not show why an upgrade was refused. */
export function createUpgrade(deps: WebSocketDeps): Handlers["upgrade"] {
  const { access, logger, requestLog } = deps;
  return (request) => {
    const { tenant, refusal } = access.checkSocket(request);
    logger[requestLog]("socket", { path: request.path.slice(0, 300), tenant, refused: refusal?.message });
    // A page of a foreign origin gets no socket at all.
    if (refusal !== undefined) return refuse(403, refusal.message);
    const packed = protocolsOf(request).includes(PACKED);
    const protocol = packed ? { protocol: PACKED } : {};
    // Clients stop at a close code; after a refused upgrade they retry forever.
    if (tenant === undefined) {
      return { kind: "accept", ...protocol, open: (socket) => socket.close(...UNAUTHORIZED) };
    }
    const path = access.path(request.path) ?? "";
    const { query } = request;
    if (path === "/inspect") {
      return { kind: "accept", open: (socket) => deps.inspect(socket, tenant, query) };
    }
    for (const [pattern, open] of routes) {
      const match = pattern.exec(path);
      if (match === null) continue;
      // The request is invalid after this call returns.
      const asked = {
        tenant,
        parts: match.slice(1),
        query,
        lastEventId: request.header("last-event-id"),
        packed,
      };
      return {
        kind: "accept",
        ...protocol,
        open(socket) {
          deps.sockets.add(socket);
          open(deps, socket, asked).catch((cause: unknown) => {
            refuseSocket(socket, cause);
            if (failureDetailsOf(cause).status < 500) return;
            logger.error("a socket could not be served", { path, error: String(cause) });
          });
        },
      };
    }
    return refuse(404, `There is no WebSocket at ${request.path.slice(0, 200)}`);
  };
}

const protocolsOf = (request: HttpRequest): readonly string[] =>
  (request.header("sec-websocket-protocol") ?? "").split(",").map((name) => name.trim());

function refuse(status: number, detail: string): Upgrade {
  const headers = { "content-type": "application/json" };
  return { kind: "refuse", status, headers, body: JSON.stringify({ detail }) };
}
