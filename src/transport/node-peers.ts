import { Agent, type IncomingMessage, request as openRequest } from "node:http";
import { WebSocket } from "ws";
import {
  PeerLost,
  type PeerReader,
  type PeerRequest,
  type PeerResponse,
  type Peers,
  type PeerSocket,
} from "../ports/peers.ts";
import type { ReplyHeaders } from "../ports/transport.ts";

/** Errors of a connection that was never made. */
const UNSENT: ReadonlySet<string | undefined> = new Set(["ENOENT", "ECONNREFUSED", "EAGAIN"]);
/** Bytes that wait in a socket before it counts as lost. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;

const lost = (cause: NodeJS.ErrnoException): PeerLost => new PeerLost(!UNSENT.has(cause.code), cause);

/**
 * Connects with the other processes of a server over Unix sockets. `pathOf` returns the path of the socket of a shard's
 * process.
 */
export function createNodePeers(pathOf: (shard: number) => string): Peers {
  const agent = new Agent({ keepAlive: true });
  const sockets = new Set<WebSocket>();
  return {
    request: (shard, request, signal) => send(agent, pathOf(shard), request, signal),

    open: (shard, { path, headers }, protocol) =>
      new Promise((resolve, reject) => {
        const url = `ws+unix://${pathOf(shard)}:${path}`;
        const options = { headers: headersOf(headers), perMessageDeflate: false };
        const raw = new WebSocket(url, protocol === undefined ? [] : [protocol], options);
        raw.once("error", (cause: NodeJS.ErrnoException) => reject(new PeerLost(false, cause)));
        sockets.add(raw);
        raw.once("close", () => sockets.delete(raw));
        const early: Message[] = [];
        const keep = (...message: Message) => void early.push(message);
        raw.on("message", keep);
        raw.once("open", () => resolve(new NodePeerSocket(raw, early, keep)));
      }),

    close() {
      for (const raw of sockets) raw.terminate();
      agent.destroy();
    },
  };
}

/** Header values are sent as UTF-8, which {@link decodeHeaders} undoes: Node itself sends the characters of ISO 8859-1 only. */
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

function send(
  agent: Agent,
  socketPath: string,
  { method, path, headers, body }: PeerRequest,
  signal: AbortSignal,
): Promise<PeerResponse> {
  return new Promise((resolve, reject) => {
    const out = openRequest({ agent, socketPath, method, path, headers: headersOf(headers), signal });
    out.on("error", (cause) => reject(lost(cause)));
    out.on("response", (response) => resolve(responseOf(response)));
    if (body === undefined) out.end();
    else {
      out.setHeader("content-length", body.length);
      out.end(body);
    }
  });
}

function responseOf(response: IncomingMessage): PeerResponse {
  const headers: { [name: string]: string | readonly string[] } = {};
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers[name] = value;
  return {
    status: response.statusCode ?? 500,
    headers,
    read(reader: PeerReader) {
      response.on("data", (piece: Buffer) => {
        if (!reader.piece(piece)) response.pause();
      });
      response.on("end", () => reader.end());
      response.on("error", () => undefined);
      response.on("close", () => {
        if (!response.complete) reader.broken();
      });
    },
    resume: () => void response.resume(),
  };
}

type Message = readonly [data: Buffer, isBinary: boolean];

class NodePeerSocket implements PeerSocket {
  readonly #raw: WebSocket;
  readonly #early: readonly Message[];
  readonly #keep: (...message: Message) => void;

  /** `early`: the messages that came before anybody listened; `keep`: the listener that collects them. */
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

  close(code: number, reason: string): void {
    this.#raw.close(code, reason);
  }
}
