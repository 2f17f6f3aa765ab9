import type { AuthUser } from "../model/auth-user.ts";
import type { Headers, HttpRequest, Reply, ReplyHeaders, Socket } from "./transport.ts";

/** A request to another process of this server. */
export interface PeerRequest {
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly headers: ReplyHeaders;
  readonly body?: Uint8Array;
}

/** Reads the body of a response. */
export interface PeerReader {
  /**
   * Takes a piece of the body. Returns false if the reader must get no more pieces before
   * {@link PeerResponse.resume} is called.
   */
  piece(bytes: Uint8Array): boolean;
  end(): void;
  /** Called if the connection ends before the body has ended. */
  broken(): void;
}

export interface PeerResponse {
  readonly status: number;
  readonly headers: ReplyHeaders;
  /** The length of the body in bytes; undefined if it is not known yet, as for a stream. */
  readonly length?: number | undefined;
  /** The body, if it has arrived together with the headers. {@link read} need not be called then. */
  readonly whole?: Uint8Array | undefined;
  /** Registers the reader of the body. MUST be called at most once. */
  read(reader: PeerReader): void;
  resume(): void;
}

/** Cancels a request to another process. It costs less than an `AbortController`, and has one listener at a time. */
export class Cancellation {
  #isCancelled = false;
  #listener: (() => void) | undefined;

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#listener?.();
  }

  /** Replaces the listener. */
  onCancel(listener: () => void): void {
    this.#listener = listener;
  }
}

/** A WebSocket to another process. */
export type PeerSocket = Pick<Socket, "send" | "onMessage" | "close"> & {
  onClose(listener: (code: number, reason: string) => void): void;
  /** Stops reading from the connection, so that the other process sends no more. A few messages that were read already may still come. */
  pause(): void;
  resume(): void;
};

/**
 * The HTTP status of a process that no longer has the shard of a request. The process that sent the request then looks up the shard's new
 * owner.
 */
export const MISDIRECTED_STATUS = 421;

/**
 * A response header: the id of the event after which a stream of a thread's events begins. The process that forwarded the request continues
 * the stream after this id if the connection breaks before the first event.
 */
export const STREAM_START_HEADER = "x-heddle-stream-start";

/** The time in milliseconds after which a process that responds to nothing is taken to hang. */
export const UNRESPONSIVE_MS = 8_000;

/**
 * The longest time in milliseconds that a request waits for an unreachable process, for example until it has been started again, or until
 * another node of the cluster has taken its shard over.
 */
export const MAX_PEER_RETRY_MS = 10_000;

/** The error for a request to another process that did not answer it. */
export class PeerLost extends Error {
  override readonly name = "PeerLost";
  /** True if the process may have received the request. Then it may also have executed it. */
  readonly wasSent: boolean;
  /** True if the process hangs: it has responded to nothing for {@link UNRESPONSIVE_MS}. */
  readonly isUnresponsive: boolean;

  constructor(wasSent: boolean, cause: unknown, isUnresponsive = false) {
    super("a process of this server does not answer", { cause });
    this.wasSent = wasSent;
    this.isUnresponsive = isUnresponsive;
  }
}

/** The address at which a process accepts requests of the other processes of this server: a Unix socket, or a host and port. */
export type PeerAddress = { readonly path: string } | { readonly host: string; readonly port: number };

/**
 * The connections to the other processes of this server that have a shard: a part of the threads and their data. A
 * process that responds to nothing for {@link UNRESPONSIVE_MS} is lost: its pending requests fail, and its sockets are closed.
 */
export interface Peers {
  /**
   * Sends a request to the process that has the shard. When it is cancelled, a reader of its response is told that the response is broken.
   * @throws PeerLost if that process does not answer, or if the request is cancelled before it does
   */
  request(shard: number, request: PeerRequest, cancellation?: Cancellation): Promise<PeerResponse>;
  /** Opens a WebSocket to the process that has the shard. @throws PeerLost if that process does not answer */
  open(shard: number, request: Pick<PeerRequest, "path" | "headers">, protocol?: string): Promise<PeerSocket>;
  close(): void;
}

/**
 * The authenticated client of a request. The process that receives a request authenticates the client, and sends this result along when it
 * forwards the request.
 */
export interface AuthenticatedClient {
  readonly tenant: string;
  /** Undefined if the client has authenticated with an API key, or if the server needs no credentials. */
  readonly user: AuthUser | undefined;
}

/**
 * Selects the shard that serves a request:
 * - a string, such as the id of a thread: the shard that the string's hash selects;
 * - `HOME_SHARD`: the shard with the data that is not divided among the shards, such as assistants;
 * - `ANY_SHARD`: any shard.
 */
export type ShardSelector = string | typeof HOME_SHARD | typeof ANY_SHARD;
export const HOME_SHARD: unique symbol = Symbol("home shard");
export const ANY_SHARD: unique symbol = Symbol("any shard");

export interface ForwardedRequest {
  readonly client: AuthenticatedClient & { readonly id: string; readonly headers: Headers };
  /**
   * True if the request starts a run. If such a request has no idempotency key, the forwarder adds one, so that it can send the request
   * again without starting a second run.
   */
  readonly startsRun: boolean;
  /** Counts the response in the metrics. `status`: its HTTP status. */
  count(status: number): void;
}

/** Forwards requests and sockets to the process of this server that has their shard. */
export interface RequestForwarder {
  /**
   * Forwards a request to the process that has the shard. Returns undefined, and does nothing, if this process has the shard itself.
   * @throws ServiceError if the other process does not answer. If a part of the response was already sent, the connection is closed
   *   instead.
   */
  request(
    name: ShardSelector,
    request: HttpRequest,
    reply: Reply,
    more: ForwardedRequest,
  ): Promise<void> | undefined;
  /**
   * Forwards a client's WebSocket to the process that has the shard `name`; without `name`, to the processes of all shards. Returns
   * undefined, and does nothing, if this process has the shard itself. The socket's messages are read once all these processes are connected,
   * so `socket` MUST keep earlier ones. `request`: the parts of the handshake that are still available after the upgrade.
   */
  socket(
    name: ShardSelector | undefined,
    socket: Socket,
    client: AuthenticatedClient,
    request: { readonly path: string; readonly headers: ReplyHeaders; readonly protocol?: string },
  ): Promise<void> | undefined;
  /** Resolves when no forwarded request is without a complete response, and no forwarded socket is open. */
  idle(): Promise<void>;
}
