import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import { isLoopback } from "../access/hosts.ts";
import { isLocalOrigin } from "../access/origins.ts";

export interface InspectorRelayOptions {
  /** The WebSocket URL of the inspector's feed. */
  readonly feed: string;
  readonly key: string | undefined;
  /** The URL of the inspector's page. */
  readonly page: string;
  /** The port on which to listen. 0: any free port. */
  readonly port: number;
}

export interface InspectorRelay {
  readonly port: number;
  close(): Promise<void>;
}

/** If more bytes than this wait to be sent to a client, the client is disconnected at the next message. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

/**
 * Serves the inspector's feed where tools of `@statelyai/inspect` look for it by default: as a WebSocket on any path of a local port, like
 * Stately's relay. Each client gets its own connection to the feed, so a client that connects late is also sent the actors that exist
 * already.
 */
export async function openInspectorRelay({
  feed,
  key,
  page,
  port,
}: InspectorRelayOptions): Promise<InspectorRelay> {
  const server = createServer((_, response) => {
    const text = `This is a relay of Heddle's inspection feed, for WebSockets. To look at it: ${page}\n`;
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(text);
  });
  const sockets = new WebSocketServer({
    server,
    maxPayload: 1024,
    verifyClient: ({ req }: { readonly req: IncomingMessage }) => isOurs(req),
  });
  sockets.on("connection", (client) => {
    const upstream = new WebSocket(feed, key === undefined ? {} : { headers: { "x-api-key": key } });
    upstream.on("message", (bytes) => {
      if (client.bufferedAmount > MAX_BUFFERED_BYTES)
        client.close(1013, "Messages were not taken fast enough");
      else client.send(String(bytes));
    });
    upstream.on("error", () => client.close(1011, "The server cannot be reached"));
    upstream.on("close", (code, reason) => client.close(sendable(code), reason));
    client.on("error", () => upstream.close());
    client.on("close", () => upstream.close());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // The WebSocket server emits the error of `server` again. Without a listener, that would end the process.
    sockets.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        for (const client of sockets.clients) client.terminate();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Whether the relay accepts a request. Refuses requests of pages from other origins, and requests with a host name that was made to resolve
 * to this machine (DNS rebinding).
 */
function isOurs({ headers }: IncomingMessage): boolean {
  const { host = "", origin } = headers;
  const name = host.replace(/:\d*$/, "").replaceAll(/^\[|\]$/g, "");
  return isLoopback(name) && (origin === undefined || isLocalOrigin(origin));
}

/** Replaces the close codes 1005 and 1006, which may not be sent, by 1011. */
const sendable = (code: number): number => (code === 1005 || code === 1006 ? 1011 : code);
