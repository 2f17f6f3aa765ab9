import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { MISDIRECTED_STATUS, type PeerAddress } from "../ports/peers.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Handlers, TransportOptions } from "../ports/transport.ts";
import { createBodyLimits } from "../ports/body-memory.ts";
import { MAX_HEAD_BYTES } from "./transport-limits.ts";
import { createNodeHandler } from "./node-handler.ts";
import { PEER_PROTOCOL } from "./peer-frames.ts";
import { PeerSession } from "./peer-session.ts";
import { decodeHeaders, SHARED_KEY_TLS } from "./peer-connections.ts";

export interface PeerServer {
  readonly address: PeerAddress;
  startDraining(): void;
  /**
   * Closes the server. Waits up to {@link GRACE_MS} for the responses to requests that have been read. The sender of a request that arrives
   * afterwards learns that it was not carried out: a connection with many requests names the last one that was read, and on any other idle
   * connection, the request gets the status {@link MISDIRECTED_STATUS}.
   */
  close(): Promise<void>;
}

/** Milliseconds for the responses to requests that have been read, and for the other processes to close their connections. */
const GRACE_MS = 1_000;
/** Sent on an idle connection when the server closes. If a request is on its way, its sender takes this for the response. */
const LAST_RESPONSE = `HTTP/1.1 ${MISDIRECTED_STATUS} Misdirected Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;

/**
 * Opens a server for requests from the other processes of this server. At a Unix socket, the permissions of its directory decide who may
 * connect. At a network address, a client must prove that it has the pre-shared key.
 * @param secured the key, and the shard that this process has; required for a network address
 */
export async function openPeerServer(
  handlers: Handlers,
  address: PeerAddress,
  options: Pick<TransportOptions, "maxBody" | "bodyMemory" | "scheduler">,
  secured?: { readonly shard: number; readonly key: Uint8Array },
): Promise<PeerServer> {
  const settings = {
    // Connections never time out, because their clients are the other processes of this server.
    keepAliveTimeout: 0,
    requestTimeout: 0,
    headersTimeout: 0,
    maxHeaderSize: 4 * MAX_HEAD_BYTES,
    noDelay: true,
  };
  if ("port" in address && secured === undefined)
    throw new TypeError("a process serves a network only with a key");
  const server =
    secured === undefined
      ? createServer(settings)
      : createSecureServer({
          ...settings,
          ...SHARED_KEY_TLS,
          pskCallback: (_, identity) => (identity === String(secured.shard) ? secured.key : null),
        });
  const limits = createBodyLimits(options);
  const handler = createNodeHandler(handlers, options);
  const sessions = new Set<PeerSession>();
  /** Each connection, and whether it has a request without a complete response. */
  const connections = new Map<Socket, boolean>();
  /** The idle connections on which {@link LAST_RESPONSE} was sent. */
  const ended = new WeakSet<Socket>();
  let isClosing = false;
  const endIdle = (socket: Socket): void => {
    ended.add(socket);
    if (!socket.writableEnded) socket.end(LAST_RESPONSE);
  };
  server.on(secured === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    connections.set(socket, false);
    socket.once("close", () => connections.delete(socket));
    if (isClosing) endIdle(socket);
  });
  server.on("request", (raw, response) => {
    const { socket } = raw;
    // This request was sent before its sender knew that the connection ends. The sender takes {@link LAST_RESPONSE} for the response to it.
    if (ended.has(socket)) return void raw.resume();
    connections.set(socket, true);
    response.once("close", () => {
      if (!connections.has(socket)) return;
      connections.set(socket, false);
      if (isClosing) endIdle(socket);
    });
    decodeHeaders(raw);
    handler.request(raw, response);
  });
  server.on("upgrade", (raw, socket, first) => {
    if (ended.has(raw.socket)) return;
    connections.set(raw.socket, true);
    if (raw.headers.upgrade === PEER_PROTOCOL) {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${PEER_PROTOCOL}\r\n\r\n`,
      );
      const session = new PeerSession(socket, first, { handlers, limits });
      sessions.add(session);
      socket.once("close", () => sessions.delete(session));
      return;
    }
    decodeHeaders(raw);
    handler.upgrade(raw, socket, first);
  });
  // Removes the socket file of an earlier process that was killed before it could remove the file itself.
  if ("path" in address) rmSync(address.path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ ...address, exclusive: true }, resolve);
  });
  const bound = server.address() as AddressInfo;
  return {
    address: "port" in address ? { ...address, port: bound.port } : address,
    startDraining: handler.startDraining,
    async close() {
      handler.startDraining();
      isClosing = true;
      // Calls `close` of the TCP server, because `close` of Node's HTTP server closes idle connections at once. A request may be on its way
      // on such a connection, and its sender could not know whether the request was carried out.
      const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
      for (const [socket, isBusy] of connections) if (!isBusy) endIdle(socket);
      for (const session of sessions) session.end();
      let cancel: Cancel = () => undefined;
      const passed = new Promise<void>(
        (resolve) => (cancel = options.scheduler.after(GRACE_MS, resolve, true)),
      );
      await Promise.race([closed, passed]);
      cancel();
      handler.close();
      for (const session of sessions) session.destroy();
      server.closeAllConnections();
      await closed;
    },
  };
}
