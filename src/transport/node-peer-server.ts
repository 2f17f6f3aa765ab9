import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, Server as NetServer } from "node:net";
import type { PeerAddress } from "../ports/peers.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Handlers, TransportOptions } from "../ports/transport.ts";
import { MAX_HEAD_BYTES } from "./limits.ts";
import { createNodeHandler } from "./node-handler.ts";
import { decodeHeaders, SHARED_KEY_TLS } from "./node-peers.ts";

export interface PeerServer {
  readonly address: PeerAddress;
  startDraining(): void;
  /** Answers the requests that have arrived, if that takes no more than {@link GRACE_MS}, and closes all connections. */
  close(): Promise<void>;
}

/** Milliseconds in which requests that have been sent arrive. */
const ARRIVAL_MS = 50;
/** Milliseconds for the answers of requests that have arrived. */
const GRACE_MS = 250;

/**
 * Opens a server for requests from the other processes of this server. For a Unix socket, the permissions of its directory decide who may
 * connect. For a network address, a client must have the key.
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
  const handler = createNodeHandler(handlers, options);
  server.on("request", (raw, response) => {
    decodeHeaders(raw);
    handler.request(raw, response);
  });
  server.on("upgrade", (raw, ...rest) => {
    decodeHeaders(raw);
    handler.upgrade(raw, ...rest);
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
      // A request may be on its way on a connection that looks idle. If that connection were closed, its sender could not know whether the
      // request was carried out. So idle connections are not closed at once, as the method `close` of HTTP servers does.
      const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
      const closedWithin = async (ms: number): Promise<void> => {
        let cancel: Cancel = () => undefined;
        const passed = new Promise<void>((resolve) => (cancel = options.scheduler.after(ms, resolve, true)));
        await Promise.race([closed, passed]);
        cancel();
      };
      await closedWithin(ARRIVAL_MS);
      server.closeIdleConnections();
      await closedWithin(GRACE_MS);
      handler.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
