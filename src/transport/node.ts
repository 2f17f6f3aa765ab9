import { createServer, IncomingMessage, type Server } from "node:http";
import { type AddressInfo, Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import { ServiceError } from "../model/errors.ts";
import type { Transport, TransportOpener, TransportOptions } from "../ports/transport.ts";
import { listenErrorOf } from "./listen-error.ts";
import { HEAD_TIMEOUT_MS, MAX_HEAD_BYTES, MAX_HEADERS } from "./transport-limits.ts";
import { createNodeHandler, refuseRaw } from "./node-handler.ts";
import {
  malformedRequest,
  type Refusal,
  REFUSAL_HEADERS,
  refusalBody,
  requestTooLarge,
} from "./framing-headers.ts";

/**
 * Milliseconds after which a connection is closed if no byte was transferred in either direction. Open streams send heartbeats much more
 * often.
 */
const IDLE_TIMEOUT_MS = 60_000;

/**
 * A request that counts as an upgrade only if it asks for a WebSocket, or if its method is CONNECT. Node would treat every request with an
 * `Upgrade` header as an upgrade, and would not read its body. Clients that offer HTTP/2 (`h2c`) send this header with ordinary requests.
 */
class RequestOrWebSocket extends IncomingMessage {
  /** Declared without a value and not `#private`, because Node's constructor sets `upgrade` before the fields of this class exist. */
  declare isUpgrade: boolean;

  get upgrade(): boolean {
    return (
      this.isUpgrade && (this.method === "CONNECT" || this.headers.upgrade?.toLowerCase() === "websocket")
    );
  }

  set upgrade(value: boolean) {
    this.isUpgrade = value;
  }
}

/** The transport on Node's own HTTP server, for platforms without a binary of uWebSockets.js. */
export const openNode: TransportOpener = async (handlers, options) => {
  const server = createServer({
    IncomingMessage: RequestOrWebSocket,
    headersTimeout: HEAD_TIMEOUT_MS,
    connectionsCheckingInterval: 2_000,
    keepAliveTimeout: HEAD_TIMEOUT_MS,
    // There is no time limit for a whole request, because a large body on a slow connection is legitimate. Instead, `SlowUploadGuard`
    // closes connections whose bodies arrive below a minimum speed.
    requestTimeout: 0,
    // Bytes, including the request line. Larger than Heddle's own limit, so that normally Heddle itself refuses a request that is too
    // large.
    maxHeaderSize: 2 * MAX_HEAD_BYTES,
    // Heddle itself refuses a request without a Host header, in the same way as a request with two of them.
    requireHostHeader: false,
    noDelay: true,
  });
  server.timeout = IDLE_TIMEOUT_MS;
  if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections;
  // Node silently drops headers above this number. One more than allowed is accepted, so that Heddle notices the excess and refuses the
  // request.
  server.maxHeadersCount = MAX_HEADERS + 1;
  // Connections on which no error response may be sent: a response is in progress, or the request was refused and the connection closes.
  const busy = new WeakSet<Duplex>();
  server.on("clientError", (cause: NodeJS.ErrnoException, duplex) => {
    if (busy.has(duplex)) duplex.destroy();
    else refuseConnection(duplex, cause.code);
  });
  const handler = createNodeHandler(handlers, options);
  server.on("request", (raw, response) => {
    const { socket } = raw;
    busy.add(socket);
    if (handler.request(raw, response)) response.on("finish", () => busy.delete(socket));
  });
  server.on("upgrade", handler.upgrade);
  try {
    await listen(server, options);
  } catch (cause) {
    handler.close();
    throw cause;
  }
  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    kind: "node",
    address: { host: options.host, port },
    startDraining: handler.startDraining,
    stopListening() {
      // Calls `close` of the TCP server, because `close` of Node's HTTP server closes idle connections, on which a request may be on its way.
      closed ??= new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()));
    },
    async close() {
      closed ??= new Promise((resolve) => server.close(() => resolve()));
      handler.close();
      server.closeAllConnections();
      await closed;
    },
  } satisfies Transport;
};

function listen(server: Server, { host, port, sharesPort = false }: TransportOptions): Promise<void> {
  if (sharesPort && !canShareNodePorts(process.versions.node)) {
    const message =
      "Several processes can share a port over Node's own HTTP server only from Node 22.12 or 23.1 on; with an older one, uWebSockets.js has to be there";
    return Promise.reject(new ServiceError("unsupported", message));
  }
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      reject(listenErrorOf(host, port, cause));
    });
    // `reusePort` is set in a variable, because in a literal it would be a type error with older type definitions of Node.
    const options = { host, port, ...(sharesPort && { reusePort: true }) };
    server.listen(options, resolve);
  });
}

/** Whether this version of Node has the option `reusePort` of `listen`. */
function canShareNodePorts(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
}

/** Responds to a request that Node could not parse, and closes the connection. */
function refuseConnection(duplex: Duplex, code: string | undefined): void {
  if (code === "ECONNRESET" || !duplex.writable) return void duplex.destroy();
  const refusal = refusals[code ?? ""] ?? malformedRequest("it is not HTTP/1.1");
  refuseRaw(duplex, refusal.status, REFUSAL_HEADERS, refusalBody(refusal));
  // Closes the connection without waiting for the client to close its side.
  duplex.once("finish", () => duplex.destroy());
}

const refusals: { readonly [code: string]: Refusal } = {
  HPE_HEADER_OVERFLOW: requestTooLarge(`its headers are longer than ${MAX_HEAD_BYTES} bytes`),
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: "The request came too slowly" },
};
