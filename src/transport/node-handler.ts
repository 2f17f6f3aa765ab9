import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketServer } from "ws";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { Handlers, Headers, HttpRequest, TransportOptions } from "../ports/transport.ts";
import { createBodyLimits } from "../ports/body-memory.ts";
import { MAX_MESSAGE_BYTES, SOCKET_IDLE_SECONDS } from "./transport-limits.ts";
import { NodeExchange, NodeHead } from "./node-exchange.ts";
import { NodeSocket } from "./node-socket.ts";
import { malformedRequest, type Refusal, REFUSAL_HEADERS, refusalBody } from "./framing-headers.ts";
import { SlowUploadGuard } from "./slow-uploads.ts";

/** Handles the requests and upgrades of one or several of Node's HTTP servers. */
export interface NodeHandler {
  /** Handles a request. Returns false if the request was refused as malformed and its connection will be closed. */
  request(raw: IncomingMessage, response: ServerResponse): boolean;
  /** Opens a WebSocket, or refuses the upgrade. `rest`: bytes that arrived after the handshake. */
  upgrade(raw: IncomingMessage, duplex: Duplex, rest: Buffer): void;
  /** Refuses an upgrade with a response, and closes its connection. */
  refuse(duplex: Duplex, status: number, headers: Headers, body: string): void;
  /** Called when the server is about to stop. From then on, a connection is closed after the response to a complete request. */
  startDraining(): void;
  /** Breaks off the responses that have not ended, and closes all WebSockets. */
  close(): void;
}

/** A request listener that can be used as a middleware. `next` is called for a request that this listener does not handle. */
export type NodeListener = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void;

/** A listener for upgrades. Returns false for an upgrade that this listener does not handle. */
export type NodeUpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;

type Options = Pick<TransportOptions, "maxBody" | "maxBodies" | "bodyMemory" | "scheduler">;

export function createNodeHandler(handlers: Handlers, options: Options): NodeHandler {
  const limits = createBodyLimits(options);
  const uploads = new SlowUploadGuard(options.scheduler);
  const open = new Set<ServerResponse>();
  const sockets = serveSockets(handlers, options.scheduler);
  let isDraining = false;
  return {
    request(raw, response) {
      const head = new NodeHead(raw);
      const { refusal } = head;
      if (refusal !== undefined) {
        response.writeHead(refusal.status, { ...REFUSAL_HEADERS, connection: "close" });
        response.end(refusalBody(refusal));
        return false;
      }
      open.add(response);
      response.on("close", () => open.delete(response));
      const exchange = new NodeExchange(
        head,
        raw,
        response,
        limits,
        () => isDraining,
        (body, incoming) => uploads.add(body, () => incoming.destroy()),
      );
      handlers.request(exchange, exchange);
      return true;
    },
    upgrade: sockets.upgrade,
    refuse(duplex, ...answer) {
      duplex.on("error", () => undefined);
      refuseRaw(duplex, ...answer);
    },
    startDraining() {
      isDraining = true;
    },
    close() {
      uploads.stop();
      sockets.stop();
      for (const response of open) response.destroy();
    },
  };
}

function serveSockets(handlers: Handlers, scheduler: Scheduler) {
  const protocols = new WeakMap<IncomingMessage, string>();
  const open = new Set<NodeSocket>();
  let wss: WebSocketServer | undefined;
  let isStopped = false;
  // Loaded when the first WebSocket is opened: loading `ws` takes 40 ms (2026-11-25), and a server over uWebSockets.js does not need it.
  const load = async (): Promise<WebSocketServer> => {
    const library = await import("ws");
    return (wss ??= new library.WebSocketServer({
      noServer: true,
      maxPayload: 2 * MAX_MESSAGE_BYTES,
      perMessageDeflate: false,
      handleProtocols: (_, request) => protocols.get(request) ?? false,
    }));
  };
  let cancel: Cancel;
  const ping = () => {
    for (const socket of open) socket.ping();
    cancel = scheduler.after((SOCKET_IDLE_SECONDS * 1000) / 2, ping);
  };
  cancel = scheduler.after((SOCKET_IDLE_SECONDS * 1000) / 2, ping);
  return {
    upgrade(raw: IncomingMessage, duplex: Duplex, rest: Buffer): void {
      duplex.on("error", () => undefined);
      const head = new NodeHead(raw);
      const refusal = head.refusal ?? upgradeRefusal(head);
      if (refusal !== undefined) {
        return refuseRaw(duplex, refusal.status, REFUSAL_HEADERS, refusalBody(refusal));
      }
      const upgrade = handlers.upgrade(head);
      if (upgrade.kind === "refuse") return refuseRaw(duplex, upgrade.status, upgrade.headers, upgrade.body);
      if (upgrade.protocol !== undefined) protocols.set(raw, upgrade.protocol);
      const accept = (server: WebSocketServer) =>
        server.handleUpgrade(raw, duplex, rest, (ws) => {
          const socket = new NodeSocket(ws);
          open.add(socket);
          ws.on("close", () => open.delete(socket));
          upgrade.open(socket);
        });
      if (wss !== undefined) return accept(wss);
      duplex.pause();
      load().then(
        (server) => {
          if (isStopped) return duplex.destroy();
          accept(server);
          duplex.resume();
        },
        () => duplex.destroy(),
      );
    },
    stop() {
      isStopped = true;
      cancel();
      for (const ws of wss?.clients ?? []) ws.terminate();
      wss?.close();
    },
  };
}

const upgradeRefusal = (request: HttpRequest): Refusal | undefined =>
  request.header("upgrade")?.toLowerCase() === "websocket"
    ? undefined
    : malformedRequest("only a WebSocket can be upgraded to");

/** Sends a response on a connection for which Node has made no response object, and closes the connection. */
export function refuseRaw(duplex: Duplex, status: number, headers: Headers, body: string): void {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: close\r\n`;
  for (const name in headers) head += `${name}: ${headers[name] as string}\r\n`;
  duplex.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
