import { rmSync } from "node:fs";
import { createServer } from "node:http";
import type { Handlers, TransportOptions } from "../ports/transport.ts";
import { MAX_HEAD_BYTES } from "./limits.ts";
import { createNodeHandler } from "./node-handler.ts";
import { decodeHeaders } from "./node-peers.ts";

export interface PeerServer {
  startDraining(): void;
  close(): Promise<void>;
}

/** Serves the other processes of this server on a Unix socket. Who may reach it is up to the directory of `path`. */
export async function openPeerServer(
  handlers: Handlers,
  path: string,
  options: Pick<TransportOptions, "maxBody" | "bodyMemory" | "scheduler">,
): Promise<PeerServer> {
  const server = createServer({
    // Idle connections are never closed: their clients are processes of this server.
    keepAliveTimeout: 0,
    requestTimeout: 0,
    headersTimeout: 0,
    maxHeaderSize: 4 * MAX_HEAD_BYTES,
    noDelay: true,
  });
  const handler = createNodeHandler(handlers, options);
  server.on("request", (raw, response) => {
    decodeHeaders(raw);
    handler.request(raw, response);
  });
  server.on("upgrade", (raw, ...rest) => {
    decodeHeaders(raw);
    handler.upgrade(raw, ...rest);
  });
  // A process that was killed has left its socket.
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path, exclusive: true }, resolve);
  });
  return {
    startDraining: handler.startDraining,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      handler.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
