import type * as Uws from "uWebSockets.js";
import type { Handlers, TransportOpener, Transport, Upgrade } from "../ports/transport.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { createBodyLimits } from "../ports/body-memory.ts";
import { malformedRequest, type Refusal, REFUSAL_HEADERS, refusalBody } from "./framing-headers.ts";
import { listenErrorOf } from "./listen-error.ts";
import { probePort } from "./probe-port.ts";
import { MAX_HEAD_BYTES, MAX_MESSAGE_BYTES, SOCKET_IDLE_SECONDS } from "./transport-limits.ts";
import { UwsExchange, UwsHead } from "./uws-exchange.ts";
import { writeHead, type UwsResponse } from "./uws-raw.ts";
import { UwsSocket } from "./uws-socket.ts";

/**
 * The largest number of attempts to listen. An attempt can fail because another process took the port just before. The next attempt may
 * find the port free again or, for port 0, choose another port.
 */
const MAX_TRIES = 10;

/** The listen option `LIBUS_LISTEN_EXCLUSIVE_PORT` of uSockets: no other socket may listen on the same port. */
const EXCLUSIVE_PORT = 1;
const SHARED_PORT = 0;

/**
 * The method of a uWebSockets.js application that listens with options on a host. The library has this overload, but its types do not
 * include it.
 */
interface ListensWith {
  listen(
    host: string,
    port: number,
    options: number,
    onListen: (listening: Uws.us_listen_socket | false) => void,
  ): unknown;
}

type Accept = Extract<Upgrade, { kind: "accept" }>;

interface SocketData {
  readonly accept: Accept;
  socket?: UwsSocket;
}

export interface LoadedUws {
  readonly open: TransportOpener;
  readonly name: string;
}

/**
 * The environment variable that limits the bytes of the request line and headers that uWebSockets.js accepts. The library reads it when it
 * is loaded, and responds to a larger request with an HTML page. The value is larger than Heddle's own limit, so that normally Heddle
 * itself refuses a request that is too large.
 */
const HEAD_VARIABLE = "UWS_HTTP_MAX_HEADERS_SIZE";
const UWS_MAX_HEAD_BYTES = 4 * MAX_HEAD_BYTES;

/**
 * Loads the first build of uWebSockets.js that has a binary for this version of Node and this platform.
 * @throws AggregateError if there is none
 */
export async function loadUws(): Promise<LoadedUws> {
  const causes: unknown[] = [];
  process.env[HEAD_VARIABLE] ??= String(UWS_MAX_HEAD_BYTES);
  const builds = [
    ["uWebSockets.js", () => import("uWebSockets.js")],
    ["uWebSockets.js-next", () => import("uWebSockets.js-next")],
  ] as const;
  for (const [name, load] of builds) {
    try {
      const uws = (await load()) as typeof Uws;
      return { name, open: (handlers, options) => openUws(uws, handlers, options) };
    } catch (cause) {
      causes.push(cause);
    }
  }
  throw new AggregateError(causes, "uWebSockets has no binary for this version of Node and this platform");
}

const openUws = async (
  uws: typeof Uws,
  handlers: Handlers,
  {
    host,
    port,
    sharesPort = false,
    maxConnections = Infinity,
    scheduler,
    ...options
  }: Parameters<TransportOpener>[1],
): Promise<Transport> => {
  const app = uws.App();
  let isDraining = false;
  const limits = createBodyLimits({ ...options, scheduler });
  let connections = 0;
  app.filter((connection, by) => {
    connections += by as number;
    if (connections > maxConnections && (by as number) > 0) connection.close();
  });
  app.ws<SocketData>("/*", {
    // uWebSockets.js closes the connection without a reason when a message is longer than this. The value is twice Heddle's own limit, so
    // that Heddle itself refuses a message that is only a little too long, with a reason.
    maxPayloadLength: 2 * MAX_MESSAGE_BYTES,
    maxBackpressure: MAX_MESSAGE_BYTES,
    closeOnBackpressureLimit: true,
    idleTimeout: SOCKET_IDLE_SECONDS,
    sendPingsAutomatically: true,
    compression: uws.DISABLED,
    upgrade(raw, request, context) {
      const head = new UwsHead(request);
      const { refusal } = head.framing;
      if (refusal !== undefined) return refuse(raw, refusal, scheduler);
      const key = head.header("sec-websocket-key") ?? "";
      const version = head.header("sec-websocket-version");
      if (head.header("upgrade")?.toLowerCase() !== "websocket" || version !== "13") {
        return refuse(raw, malformedRequest("this is no WebSocket handshake of version 13"), scheduler);
      }
      const upgrade = handlers.upgrade(head);
      if (upgrade.kind === "refuse") {
        raw.cork(() => {
          writeHead(raw, upgrade.status, upgrade.headers);
          raw.end(upgrade.body, true);
        });
        return;
      }
      raw.upgrade<SocketData>({ accept: upgrade }, key, upgrade.protocol ?? "", "", context);
    },
    open(ws) {
      const data = ws.getUserData();
      data.socket = new UwsSocket(ws, scheduler);
      data.accept.open(data.socket);
    },
    message: (ws, message, isBinary) => ws.getUserData().socket?.received(message, isBinary),
    drain: (ws) => ws.getUserData().socket?.drained(),
    close: (ws) => {
      // uWebSockets.js calls its connection filter when a WebSocket connects but not when it ends, so the end is counted here.
      connections--;
      ws.getUserData().socket?.closed();
    },
  });
  app.any("/*", (raw, request) => {
    const head = new UwsHead(request);
    const { refusal } = head.framing;
    if (refusal !== undefined) return refuse(raw, refusal, scheduler);
    const exchange = new UwsExchange(head, raw, limits, () => isDraining);
    handlers.request(exchange, exchange);
  });

  const listening = await listen(
    app as unknown as ListensWith,
    host,
    port,
    sharesPort ? SHARED_PORT : EXCLUSIVE_PORT,
  );
  let open = true;
  const stopListening = (): void => {
    if (open) uws.us_listen_socket_close(listening);
    open = false;
  };
  return {
    kind: "uws",
    address: { host, port: uws.us_socket_local_port(listening) },
    startDraining() {
      isDraining = true;
    },
    stopListening,
    async close() {
      stopListening();
      app.close();
    },
  };
};

/**
 * Listens on a port, exclusively unless `options` is {@link SHARED_PORT}. By default, uWebSockets.js shares a port, and two servers on one
 * port would each get half of the connections. For port 0, a free port is chosen with {@link probePort}: if uWebSockets.js chose it, the
 * port would stay taken for a minute after its connections were closed.
 * @throws ServiceError `server.address`
 */
async function listen(
  app: ListensWith,
  host: string,
  port: number,
  options: number,
): Promise<Uws.us_listen_socket> {
  for (let tries = MAX_TRIES; tries > 0; tries--) {
    const wanted = port === 0 ? await probePort(host, 0) : port;
    const listening = await new Promise<Uws.us_listen_socket | false>((resolve) => {
      app.listen(host, wanted, options, resolve);
    });
    if (listening !== false) return listening;
    // uWebSockets.js does not report why it cannot listen. An attempt with Node's server throws an error with the reason.
    if (port !== 0) await probePort(host, port);
  }
  throw listenErrorOf(host, port);
}

/**
 * Refuses a request whose end is not certain, and closes its connection. The response is sent in a later turn of the event loop: if the
 * same packet contains further data, uWebSockets.js then closes the connection when it finds them. If the response were sent at once,
 * uWebSockets.js would process these data as the next request.
 */
function refuse(raw: UwsResponse, refusal: Refusal, scheduler: Scheduler): void {
  let gone = false;
  raw.onAborted(() => (gone = true));
  scheduler.soon(() => {
    if (gone) return;
    raw.cork(() => {
      writeHead(raw, refusal.status, REFUSAL_HEADERS);
      raw.end(refusalBody(refusal), true);
    });
  });
}
