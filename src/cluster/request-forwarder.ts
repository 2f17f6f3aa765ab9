import { sseError } from "../codec/sse.ts";
import { type ErrorCode, ServiceError, toPlainError } from "../model/errors.ts";
import { shardOf } from "../model/shard-of.ts";
import type { Clock } from "../ports/clock.ts";
import {
  ANY_SHARD,
  Cancellation,
  type ForwardedRequest,
  type RequestForwarder,
  HOME_SHARD,
  PeerLost,
  type PeerRequest,
  type PeerResponse,
  type Peers,
  type PeerSocket,
  STREAM_START_HEADER,
  type ShardSelector,
} from "../ports/peers.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ByteStream, Reply, ReplyHeaders, Socket } from "../ports/transport.ts";
import { startKeyOf } from "../service/idempotency.ts";
import { EventStreamRelay } from "./event-stream-relay.ts";
import { clientHeaders, endToEndHeaders } from "./forwarded-headers.ts";
import { callWithRetry, PeerRetry } from "./peer-retry.ts";
import { readAllBytes } from "./read-all-bytes.ts";

export interface ForwardingDeps {
  /** The number of this process's shard. Undefined for a process without a shard. */
  readonly own: number | undefined;
  readonly count: number;
  /** Returns whether this process may respond for its shard. In a cluster: only while it has a valid lease. */
  readonly isOwner: () => boolean;
  readonly peers: Peers;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

/** The WebSocket close code for "going away", after which clients connect again. */
const GOING_AWAY = 1001;
/** A response of at most this many bytes is collected and sent in one write. A longer response is passed on as it arrives. */
const MAX_WHOLE_BYTES = 256 * 1024;
const LAST_EVENT_ID = "last-event-id";
/** The HTTP status of a process that does not accept requests yet, or no longer does. */
const UNAVAILABLE = 503;
/** The WebSocket close code that reports a broken connection. It may not be sent. */
const LOST = 1006;

const isSendable = (code: number): boolean => code >= 1000 && (code <= 1003 || code >= 1007);

export function createRequestForwarder(deps: ForwardingDeps): RequestForwarder {
  const { own, count, peers } = deps;
  let next = 0;
  const open = new PendingCount();
  const numberOf = (name: ShardSelector): number => {
    if (name === HOME_SHARD) return 0;
    return name === ANY_SHARD ? (own ?? next++ % count) : shardOf(name, count);
  };
  /** Creates an idempotency key that belongs to a shard, because a run without a thread is stored in the shard of its key. */
  const keyIn = (shard: number): string => {
    for (;;) {
      const key = deps.newId();
      if (shardOf(startKeyOf(key), count) === shard) return key;
    }
  };
  return {
    request(name, request, reply, more) {
      const shard = numberOf(name);
      // Without a valid lease, the request is forwarded to the current owner of the shard, which may be this process again.
      if (shard === own && deps.isOwner()) return undefined;
      // The headers are read now, because the request is invalid once this call has returned.
      const headers = endToEndHeaders(request.headers());
      const isKeyed = (request.header("idempotency-key") ?? "") !== "";
      if (more.startsRun && !isKeyed)
        headers["idempotency-key"] = name === ANY_SHARD ? keyIn(shard) : deps.newId();
      headers["x-request-id"] = more.client.id;
      Object.assign(headers, clientHeaders(more.client));
      const asked = {
        method: request.method,
        path: request.query === "" ? request.path : `${request.path}?${request.query}`,
        headers,
      };
      const isRead = request.method === "GET" || request.method === "HEAD";
      const send = async (): Promise<void> => {
        const body = isRead ? undefined : await request.body(more.client.tenant);
        // This process does not parse the body, so the next large body need not wait. If it waited until the response, the two requests
        // could wait for each other.
        request.bodyRead?.();
        // Only starts of runs heed an idempotency key: any other request would be carried out twice.
        const isRepeatable = isRead || more.startsRun;
        await new Exchange(reply, more).run(
          deps,
          shard,
          body === undefined ? asked : { ...asked, body },
          isRepeatable,
        );
      };
      const end = open.begin();
      return send().finally(end);
    },

    socket(name, socket, client, request) {
      const shard = name === undefined ? undefined : numberOf(name);
      if (shard !== undefined && shard === own && deps.isOwner()) return undefined;
      const headers = { ...endToEndHeaders(Object.entries(request.headers)), ...clientHeaders(client) };
      const opened = shard === undefined ? Array.from({ length: count }, (_, one) => one) : [shard];
      const connect = (one: number): Promise<PeerSocket> =>
        callWithRetry(deps, true, () => peers.open(one, { path: request.path, headers }, request.protocol));
      socket.onClose(open.begin());
      return join(socket, opened, connect);
    },

    idle: () => open.none(),
  };
}

/** Counts what has begun and not ended. */
class PendingCount {
  #count = 0;
  #waiting: (() => void)[] = [];

  /** Returns the function that MUST be called once at the end. */
  begin(): () => void {
    this.#count++;
    return () => {
      if (--this.#count > 0) return;
      for (const resolve of this.#waiting.splice(0)) resolve();
    };
  }

  none(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#count === 0) resolve();
      else this.#waiting.push(resolve);
    });
  }
}

/** Passes the messages of a client's socket to sockets of other processes, and back. */
async function join(
  socket: Socket,
  shards: readonly number[],
  connect: (shard: number) => Promise<PeerSocket>,
): Promise<void> {
  let isClosed = false;
  socket.onClose(() => (isClosed = true));
  const opened = await Promise.all(shards.map(connect));
  const end = () => {
    for (const peer of opened) peer.close(GOING_AWAY, "");
  };
  if (isClosed) return end();
  socket.onClose(end);
  const client = new PacedSocket(socket, opened);
  let left = opened.length;
  for (const peer of opened) {
    peer.onMessage((message) => client.send(message));
    peer.onClose((code, reason) => {
      left--;
      // A feed of all shards is incomplete without one of the processes. The client's socket is closed, so that the client connects again,
      // to all processes.
      if (code === LOST) client.close(GOING_AWAY, "");
      // RFC 6455 reserves some codes, such as 1006. They may not be sent, so GOING_AWAY replaces them.
      else if (left === 0) client.close(isSendable(code) ? code : GOING_AWAY, reason);
    });
  }
  socket.onMessage((message) => {
    for (const peer of opened) peer.send(message);
  });
}

/**
 * Passes messages of other processes on to a client at the speed of the client. While the client does not keep up, the connections to the
 * processes are paused, so that they send no more, as to a client of their own.
 */
class PacedSocket {
  readonly #socket: Socket;
  readonly #peers: readonly PeerSocket[];
  #isBlocked = false;
  /** Messages that came while the client did not keep up: few, because the connections are paused meanwhile. */
  #held: (Uint8Array | string)[] = [];
  /** The close code and reason for the client, if the last connection has ended while messages were held. */
  #end: readonly [code: number, reason: string] | undefined;

  constructor(socket: Socket, peers: readonly PeerSocket[]) {
    this.#socket = socket;
    this.#peers = peers;
    socket.onDrain(() => this.#drained());
  }

  send(message: Uint8Array | string): void {
    if (this.#isBlocked) return void this.#held.push(message);
    if (this.#socket.send(message)) return;
    this.#isBlocked = true;
    for (const peer of this.#peers) peer.pause();
  }

  close(code: number, reason: string): void {
    if (this.#held.length > 0) this.#end ??= [code, reason];
    else this.#socket.close(code, reason);
  }

  #drained(): void {
    this.#isBlocked = false;
    const held = this.#held;
    this.#held = [];
    for (const message of held) this.send(message);
    if (this.#end !== undefined) this.close(...this.#end);
    if (this.#isBlocked) return;
    for (const peer of this.#peers) peer.resume();
  }
}

/** Sends one request to another process, and passes the response on to the client. */
class Exchange {
  readonly #reply: Reply;
  readonly #more: ForwardedRequest;
  readonly #gone = new Cancellation();
  #stream: ByteStream | undefined;
  #resume: (() => void) | undefined;
  /**
   * True while the client has received nothing but white space, which keeps the connection alive before a JSON body. Until then, the
   * request can be sent again: the new response follows the white space.
   */
  #isBlank = true;
  /** Set while the response is a stream of server-sent events, which a further request can continue if the connection breaks. */
  #events: EventStreamRelay | undefined;

  constructor(reply: Reply, more: ForwardedRequest) {
    this.#reply = reply;
    this.#more = more;
    reply.onAbort(() => this.#gone.cancel());
    if (reply.aborted) this.#gone.cancel();
  }

  async run(deps: ForwardingDeps, shard: number, request: PeerRequest, isRepeatable: boolean): Promise<void> {
    const retry = new PeerRetry(deps);
    for (;;) {
      try {
        const response = await deps.peers.request(shard, this.#continued(request), this.#gone);
        // The new owner of the shard does not accept requests yet. The request is sent again, while the client's response stays open.
        if ((this.#events ?? this.#stream) !== undefined && response.status === UNAVAILABLE)
          throw new PeerLost(false, await readAllBytes(response));
        retry.renew();
        await this.#pass(response, request);
        return;
      } catch (cause) {
        if (this.#gone.isCancelled) return;
        if (!this.#isBlank && this.#events === undefined) return this.#stream?.close();
        try {
          await retry.wait(cause, isRepeatable || this.#events !== undefined);
        } catch (error) {
          if (this.#stream === undefined) throw error;
          return this.#stream.close();
        }
      }
    }
  }

  /** The request to send. If a stream of events has broken off, the request asks for the rest of the stream. */
  #continued(request: PeerRequest): PeerRequest {
    const after = this.#events?.after;
    return after === undefined
      ? request
      : { ...request, headers: { ...request.headers, [LAST_EVENT_ID]: after } };
  }

  /** Passes a response on to the client. @throws PeerLost if the response breaks off */
  async #pass(response: PeerResponse, request: PeerRequest): Promise<void> {
    const { status, headers: given } = response;
    const isEvents = status === 200 && String(given["content-type"]).startsWith("text/event-stream");
    // If the client has received nothing yet, this response is passed on like a first response.
    if (this.#stream === undefined) this.#events = undefined;
    else if (status !== 200) return this.#endWith(this.#stream, await readAllBytes(response));
    if (this.#events === undefined) {
      const after = given[STREAM_START_HEADER] ?? request.headers[LAST_EVENT_ID];
      if (isEvents) this.#events = new EventStreamRelay(typeof after === "string" ? after : undefined);
    } else this.#events.resume();
    const headers = Object.assign(endToEndHeaders(Object.entries(given)), this.#more.client.headers);
    const { whole, length = Infinity } = response;
    if (whole !== undefined && this.#stream === undefined && !isEvents) {
      if (this.#gone.isCancelled) return;
      this.#more.count(status);
      this.#reply.send(status, headers, whole);
      return;
    }
    const isWhole = length <= MAX_WHOLE_BYTES && this.#stream === undefined;
    const pieces: Uint8Array[] = [];
    this.#resume = () => response.resume();
    return new Promise((resolve, reject) => {
      response.read({
        piece: (bytes) => {
          if (isWhole) {
            pieces.push(bytes);
            return true;
          }
          const piece = this.#events?.take(bytes) ?? bytes;
          return piece.length === 0 || this.#write(status, headers, piece);
        },
        end: () => {
          const rest = this.#events?.rest();
          if (this.#stream !== undefined) this.#stream.end(rest);
          else if (!this.#gone.isCancelled) {
            this.#more.count(status);
            this.#reply.send(status, headers, pieces.length > 0 ? Buffer.concat(pieces) : rest);
          }
          resolve();
        },
        broken: () => reject(new PeerLost(true, undefined)),
      });
    });
  }

  /**
   * Ends a response that cannot be continued, for example because its thread has been deleted, with the error of the refusal. A JSON response
   * consists of white space so far; its body becomes that of a run whose result cannot be read.
   */
  #endWith(stream: ByteStream, refusal: Buffer): void {
    const { code, detail } = JSON.parse(refusal.toString()) as {
      readonly code: ErrorCode;
      readonly detail: string;
    };
    const error = toPlainError(new ServiceError(code, detail));
    stream.end(this.#events === undefined ? JSON.stringify({ __error__: error }) : sseError(error));
  }

  #write(status: number, headers: ReplyHeaders, bytes: Uint8Array): boolean {
    if (this.#isBlank) this.#isBlank = bytes.every((byte) => byte === 0x0a || byte === 0x20);
    const stream = this.#stream;
    if (stream !== undefined) return stream.write(bytes);
    this.#more.count(status);
    this.#stream = this.#reply.open(status, headers, bytes);
    this.#stream.onDrain(() => this.#resume?.());
    return true;
  }
}
