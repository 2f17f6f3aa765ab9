import { Agent, type IncomingMessage, request as openRequest } from "node:http";
import { Agent as SecureAgent, request as openSecureRequest } from "node:https";
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import { type PeerAddress, PeerLost, type PeerRequest, type Peers, type PeerSocket } from "../ports/peers.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ReplyHeaders } from "../ports/transport.ts";
import { PEER_PROTOCOL } from "./peer-frames.ts";
import { PeerLink } from "./peer-link.ts";
import { PeerProcessLiveness } from "./peer-process-liveness.ts";

/** The maximum number of unsent bytes of a WebSocket. If there are more, the connection is terminated at the next message. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;

/** Milliseconds without data after which the operating system checks whether a connection still exists. */
const KEEP_ALIVE_MS = 1_000;

/**
 * TLS options for connections on which both sides prove that they have the same pre-shared key, without certificates. TLS 1.2 is used
 * because Node does not support pre-shared keys in TLS 1.3.
 */
export const SHARED_KEY_TLS = {
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
} as const;

/** The connections to one process of the server. `isUnresponsive`: they were ended because the process hangs. */
interface PeerConnections {
  readonly address: PeerAddress;
  readonly agent: Agent;
  readonly sockets: Set<WebSocket>;
  /** The TLS options; undefined for a Unix socket. */
  readonly secured: object | undefined;
  readonly liveness: PeerProcessLiveness;
  isUnresponsive: boolean;
  isDropped: boolean;
  /** The connection for further requests. */
  link: PeerLink | undefined;
  opening: Promise<PeerLink> | undefined;
  /** All connections with requests: besides {@link link}, those whose process accepts no further requests. */
  readonly links: Set<PeerLink>;
}

/**
 * Connects to the other processes of a server. `addressOf` returns the address of the process that has a shard; undefined while no process
 * has it. `key`: the pre-shared key; required for network addresses.
 */
export function createNodePeers(
  addressOf: (shard: number) => PeerAddress | undefined,
  scheduler: Scheduler,
  key?: Uint8Array,
): Peers & { /** Breaks the connections to addresses that no shard has any more. */ dropUnused(): void } {
  const opened = new Map<number, PeerConnections>();
  const drop = (shard: number, connections: PeerConnections): void => {
    const { agent, sockets, liveness, links } = connections;
    connections.isDropped = true;
    if (opened.get(shard) === connections) opened.delete(shard);
    liveness.stop();
    for (const raw of sockets) raw.terminate();
    // Waits two turns of the event loop, in which Node reads a response that has arrived already.
    scheduler.soon(() =>
      scheduler.soon(() => {
        agent.destroy();
        for (const link of links) link.destroy();
      }),
    );
  };
  const dropUnused = (): void => {
    for (const [shard, connections] of opened) {
      if (!isSameAddress(connections.address, addressOf(shard))) drop(shard, connections);
    }
  };
  const connectionsTo = (shard: number): PeerConnections => {
    const address = addressOf(shard);
    if (address === undefined) throw new PeerLost(false, undefined);
    const known = opened.get(shard);
    if (known !== undefined && isSameAddress(known.address, address)) return known;
    if (known !== undefined) drop(shard, known);
    const secured = "port" in address ? securedBy(key, shard) : undefined;
    const agent =
      secured === undefined
        ? new Agent({ keepAlive: true })
        : new SecureAgent({ keepAlive: true, ...secured });
    const connections: PeerConnections = {
      address,
      agent,
      sockets: new Set<WebSocket>(),
      secured,
      liveness: new PeerProcessLiveness({
        scheduler,
        ping: async () => (await linkOf(connections)).ping(),
        onUnresponsive: () => {
          connections.isUnresponsive = true;
          drop(shard, connections);
        },
      }),
      isUnresponsive: false,
      isDropped: false,
      link: undefined,
      opening: undefined,
      links: new Set(),
    };
    opened.set(shard, connections);
    return connections;
  };
  const linkOf = (connections: PeerConnections): Promise<PeerLink> =>
    connections.link === undefined
      ? (connections.opening ??= openLink(connections, scheduler))
      : Promise.resolve(connections.link);
  return {
    request: async (shard, request, cancellation) => {
      const connections = connectionsTo(shard);
      const link = connections.link ?? (await linkOf(connections));
      return link.request(request, cancellation);
    },
    open: async (shard, request, protocol) => openSocket(connectionsTo(shard), request, protocol),
    dropUnused,
    close() {
      for (const [shard, connections] of opened) drop(shard, connections);
    },
  };
}

/**
 * TLS options for a connection to the process that has a shard. The handshake contains the number of the shard, so that a process that does
 * not have this shard refuses the connection.
 */
function securedBy(key: Uint8Array | undefined, shard: number): object {
  if (key === undefined) throw new TypeError("processes connect in a network only with a key");
  return {
    ...SHARED_KEY_TLS,
    pskCallback: () => ({ psk: key, identity: String(shard) }),
    // There is no certificate to check. The pre-shared key replaces it: without the key, the handshake fails.
    checkServerIdentity: () => undefined,
  };
}

function isSameAddress(a: PeerAddress, b: PeerAddress | undefined): boolean {
  if (b === undefined) return false;
  if ("path" in a) return "path" in b && a.path === b.path;
  return "port" in b && a.host === b.host && a.port === b.port;
}

function openSocket(
  connections: PeerConnections,
  { path, headers }: Pick<PeerRequest, "path" | "headers">,
  protocol: string | undefined,
): Promise<PeerSocket> {
  const { address, sockets, secured, liveness } = connections;
  return new Promise((resolve, reject) => {
    const url = "path" in address ? `ws+unix://${address.path}:${path}` : `wss://${hostOf(address)}${path}`;
    const options = { headers: headersOf(headers), perMessageDeflate: false, ...secured };
    const raw = new WebSocket(url, protocol === undefined ? [] : [protocol], options);
    raw.once("error", (cause: NodeJS.ErrnoException) =>
      reject(new PeerLost(false, cause, connections.isUnresponsive)),
    );
    sockets.add(raw);
    const end = liveness.begin();
    raw.once("close", () => {
      sockets.delete(raw);
      end();
    });
    const early: Message[] = [];
    const keep = (...message: Message) => void early.push(message);
    raw.on("message", keep);
    raw.once("open", () => resolve(new NodePeerSocket(raw, early, keep)));
  });
}

const hostOf = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** Encodes header values as UTF-8, because Node can send only the characters of ISO 8859-1. {@link decodeHeaders} decodes them. */
const headersOf = (headers: ReplyHeaders): { [name: string]: string | string[] } =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === "string" ? encodeHeader(value) : value.map(encodeHeader),
    ]),
  );

const encodeHeader = (value: string): string =>
  isAscii(value) ? value : Buffer.from(value, "utf8").toString("latin1");

// oxlint-disable-next-line no-control-regex -- all of ASCII
const isAscii = (value: string): boolean => /^[\x00-\x7f]*$/.test(value);

export function decodeHeaders({ headers, rawHeaders }: IncomingMessage): void {
  const decoded = (value: string): string =>
    isAscii(value) ? value : Buffer.from(value, "latin1").toString("utf8");
  for (const [name, value] of Object.entries(headers))
    if (typeof value === "string") headers[name] = decoded(value);
  for (const [i, value] of rawHeaders.entries()) rawHeaders[i] = decoded(value);
}

/** Opens a connection over which requests are sent side by side. */
function openLink(connections: PeerConnections, scheduler: Scheduler): Promise<PeerLink> {
  const { address, agent, secured, liveness } = connections;
  const end = liveness.begin();
  return new Promise<PeerLink>((resolve, reject) => {
    // No request has been sent before the connection is open.
    const fail = (cause: unknown) => reject(new PeerLost(false, cause, connections.isUnresponsive));
    const where = "path" in address ? { socketPath: address.path } : address;
    const headers = { connection: "upgrade", upgrade: PEER_PROTOCOL };
    const open = secured === undefined ? openRequest : openSecureRequest;
    const out = open({ agent, ...where, path: "/", headers });
    out.on("error", fail);
    out.on("response", (response) => {
      response.resume();
      fail(undefined);
    });
    out.on("upgrade", (_, socket: Socket, first) => {
      if (connections.isDropped) {
        socket.destroy();
        return fail(undefined);
      }
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
      const link = new PeerLink(socket, first, {
        scheduler,
        begin: () => liveness.begin(),
        isUnresponsive: () => connections.isUnresponsive,
        onEnd: () => {
          if (connections.link === link) connections.link = undefined;
        },
      });
      connections.link = link;
      connections.links.add(link);
      socket.once("close", () => connections.links.delete(link));
      resolve(link);
    });
    out.end();
  }).finally(() => {
    end();
    connections.opening = undefined;
  });
}

type Message = readonly [data: Buffer, isBinary: boolean];

class NodePeerSocket implements PeerSocket {
  readonly #raw: WebSocket;
  readonly #early: readonly Message[];
  readonly #keep: (...message: Message) => void;

  /** `early`: messages that arrived before {@link onMessage} was called. `keep`: the temporary listener that has collected them. */
  constructor(raw: WebSocket, early: readonly Message[], keep: (...message: Message) => void) {
    this.#raw = raw;
    this.#early = early;
    this.#keep = keep;
    raw.on("error", () => undefined);
  }

  send(message: Uint8Array | string): boolean {
    if (this.#raw.bufferedAmount > MAX_BUFFERED_BYTES) this.#raw.terminate();
    else if (this.#raw.readyState === WebSocket.OPEN) this.#raw.send(message);
    return true;
  }

  onMessage(listener: (message: Uint8Array | string) => void): void {
    const take = (...[data, isBinary]: Message) => listener(isBinary ? data : data.toString());
    this.#raw.off("message", this.#keep);
    this.#raw.on("message", take);
    for (const message of this.#early) take(...message);
  }

  onClose(listener: (code: number, reason: string) => void): void {
    if (this.#raw.readyState === WebSocket.CLOSED) return listener(1006, "");
    this.#raw.on("close", (code, reason) => listener(code, reason.toString()));
  }

  pause(): void {
    this.#raw.pause();
  }

  resume(): void {
    this.#raw.resume();
  }

  close(code: number, reason: string): void {
    // A paused connection would not read the answer to the close frame.
    this.#raw.resume();
    this.#raw.close(code, reason);
  }
}
