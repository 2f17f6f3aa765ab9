import { createServer, STATUS_CODES, type IncomingMessage, type Server } from "node:http";
import { Server as NetServer, type AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { ServiceError } from "../model/errors.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Handlers, Headers, TransportOpener, Transport, TransportOptions } from "../ports/transport.ts";
import { createBodyLimits } from "./body-memory.ts";
import {
  malformedRequest,
  type Refusal,
  REFUSAL_HEADERS,
  refusalBody,
  requestTooLarge,
} from "./request-framing.ts";
import { HEAD_TIME, MAX_HEAD, MAX_HEADERS, MAX_MESSAGE, SOCKET_IDLE } from "./limits.ts";
import { NodeExchange, NodeHead } from "./node-exchange.ts";
import { NodeSocket } from "./node-socket.ts";
import { SlowUploadGuard } from "./slow-uploads.ts";

/** Milliseconds in which a connection must transfer at least a byte, in either direction. Heartbeats of streams are far more frequent. */
const SILENCE = 60_000;

/** The transport on Node's own servers, for platforms without a binary of uWebSockets.js. */
export const openNode: TransportOpener = async (handlers, options) => {
  const server = createServer({
    headersTimeout: HEAD_TIME,
    connectionsCheckingInterval: 2_000,
    keepAliveTimeout: HEAD_TIME,
    // No total limit: slow bodies are cut off by their rate. A large body on a slow line is legitimate.
    requestTimeout: 0,
    // Includes the first line, so that our own limit is normally met first.
    maxHeaderSize: 2 * MAX_HEAD,
    // A missing Host header is answered below, like a repeated one.
    requireHostHeader: false,
    noDelay: true,
  });
  server.timeout = SILENCE;
  if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections;
  // Node silently drops further headers. With one more than allowed, an excess is noticed and refused.
  server.maxHeadersCount = MAX_HEADERS + 1;
  // Connections with a response pending, or whose last response was a refusal.
  const busy = new WeakSet<Duplex>();
  server.on("clientError", (cause: NodeJS.ErrnoException, duplex) => {
    if (busy.has(duplex)) duplex.destroy();
    else refuseConnection(duplex, cause.code);
  });
  const limits = createBodyLimits(options);
  const uploads = new SlowUploadGuard(options.scheduler);
  server.on("request", (raw, response) => {
    const head = new NodeHead(raw);
    const { refusal } = head;
    const { socket } = raw;
    busy.add(socket);
    if (refusal !== undefined) {
      response.writeHead(refusal.status, { ...REFUSAL_HEADERS, connection: "close" });
      response.end(refusalBody(refusal));
      return;
    }
    response.on("finish", () => busy.delete(socket));
    const exchange = new NodeExchange(head, raw, response, limits, (body, incoming) =>
      uploads.add(body, () => incoming.destroy()),
    );
    handlers.request(exchange, exchange);
  });
  const sockets = serveSockets(server, handlers, options);
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  const stopListening = () => {
    // Not HTTP's own close: that would close idle connections, which must still be told that the server stops.
    closed ??= new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  };
  return {
    kind: "node",
    address: { host: options.host, port },
    stopListening,
    async close() {
      stopListening();
      uploads.stop();
      sockets.stop();
      server.closeAllConnections();
      await closed;
    },
  } satisfies Transport;
};

function listen(server: Server, { host, port }: TransportOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "the port is taken" : (cause.code ?? cause.message);
      reject(new ServiceError("server.address", `Cannot listen at ${host}:${port}: ${why}`, { cause }));
    });
    server.listen({ host, port }, resolve);
  });
}

function serveSockets(server: Server, handlers: Handlers, { scheduler }: TransportOptions) {
  const protocols = new WeakMap<IncomingMessage, string>();
  const open = new Set<NodeSocket>();
  const wss = new WebSocketServer({
    noServer: true,
    maxPayload: 2 * MAX_MESSAGE,
    perMessageDeflate: false,
    handleProtocols: (_, request) => protocols.get(request) ?? false,
  });
  server.on("upgrade", (raw, duplex, rest) => {
    duplex.on("error", () => undefined);
    const head = new NodeHead(raw);
    const refusal =
      head.refusal ??
      (raw.headers.upgrade?.toLowerCase() === "websocket"
        ? undefined
        : malformedRequest("only a WebSocket can be upgraded to"));
    if (refusal !== undefined) {
      return refuse(duplex, refusal.status, REFUSAL_HEADERS, refusalBody(refusal));
    }
    const upgrade = handlers.upgrade(head);
    if (upgrade.kind === "refuse") return refuse(duplex, upgrade.status, upgrade.headers, upgrade.body);
    if (upgrade.protocol !== undefined) protocols.set(raw, upgrade.protocol);
    wss.handleUpgrade(raw, duplex, rest, (ws) => {
      const socket = new NodeSocket(ws);
      open.add(socket);
      ws.on("close", () => open.delete(socket));
      upgrade.open(socket);
    });
  });
  let cancel: Cancel;
  const ping = () => {
    for (const socket of open) socket.ping();
    cancel = scheduler.after((SOCKET_IDLE * 1000) / 2, ping);
  };
  cancel = scheduler.after((SOCKET_IDLE * 1000) / 2, ping);
  return {
    stop() {
      cancel();
      for (const ws of wss.clients) ws.terminate();
      wss.close();
    },
  };
}

/** Responds to a request that Node could not parse. */
function refuseConnection(duplex: Duplex, code: string | undefined): void {
  if (code === "ECONNRESET" || !duplex.writable) return void duplex.destroy();
  const refusal = refusals[code ?? ""] ?? malformedRequest("it is not HTTP/1.1");
  refuse(duplex, refusal.status, REFUSAL_HEADERS, refusalBody(refusal));
  // Does not wait for the client to close its side.
  duplex.once("finish", () => duplex.destroy());
}

const refusals: { readonly [code: string]: Refusal } = {
  HPE_HEADER_OVERFLOW: requestTooLarge(`its headers are longer than ${MAX_HEAD} bytes`),
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: "The request came too slowly" },
};

function refuse(duplex: Duplex, status: number, headers: Headers, body: string): void {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: close\r\n`;
  for (const name in headers) head += `${name}: ${headers[name] as string}\r\n`;
  duplex.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
