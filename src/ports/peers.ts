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
   * Takes a piece of the body. Returns false if it must get no more pieces before {@link PeerResponse.resume} is
   * called.
   */
  piece(bytes: Uint8Array): boolean;
  end(): void;
  /** Called if the connection ends before the body has ended. */
  broken(): void;
}

export interface PeerResponse {
  readonly status: number;
  readonly headers: ReplyHeaders;
  /**
   * Registers the reader of the body. MUST be called exactly once, in the same turn of the event loop in which the
   * response was received.
   */
  read(reader: PeerReader): void;
  resume(): void;
}

/** A socket to another process. */
export type PeerSocket = Pick<Socket, "send" | "onMessage" | "close"> & {
  onClose(listener: (code: number, reason: string) => void): void;
};

/** The status with which a process answers that has the shard no longer: the sender looks again for the one that has it. */
export const MISDIRECTED = 421;

/** The process did not answer. */
export class PeerLost extends Error {
  override readonly name = "PeerLost";
  /** Whether the process may have got the request. */
  readonly wasSent: boolean;

  constructor(wasSent: boolean, cause: unknown) {
    super("a process of this server does not answer", { cause });
    this.wasSent = wasSent;
  }
}

/** Where a process listens for others: on a Unix socket, or in a network. */
export type PeerAddress = { readonly path: string } | { readonly host: string; readonly port: number };

/** The processes of a server, each with a shard. */
export interface Peers {
  /** @throws PeerLost */
  request(shard: number, request: PeerRequest, signal: AbortSignal): Promise<PeerResponse>;
  /** @throws PeerLost */
  open(shard: number, request: Pick<PeerRequest, "path" | "headers">, protocol?: string): Promise<PeerSocket>;
  close(): void;
}

/** The client of a request, as the process that took the request has found out. */
export interface KnownClient {
  readonly tenant: string;
  /** Undefined for the holder of a key, and if no credentials are needed. */
  readonly user: AuthUser | undefined;
}

/** What says in which shard a request is served: a name, as of a thread; that it is the home shard; or that any shard can serve it. */
export type ShardName = string | typeof HOME_SHARD | typeof ANY_SHARD;
export const HOME_SHARD: unique symbol = Symbol("home shard");
export const ANY_SHARD: unique symbol = Symbol("any shard");

export interface ForwardedRequest {
  readonly client: KnownClient & { readonly id: string; readonly headers: Headers };
  /** True if the request starts a run. Then it gets an idempotency key if it has none, so that it can be sent again. */
  readonly startsRun: boolean;
  /** Called with the status of the response. */
  count(status: number): void;
}

/** Forwards requests and sockets to the process of this server that has their shard. */
export interface RequestForwarder {
  /**
   * Forwards a request. Returns undefined if this process has the shard itself. @throws ServiceError if the process
   * that has it does not answer, unless a response was begun
   */
  request(
    name: ShardName,
    request: HttpRequest,
    reply: Reply,
    more: ForwardedRequest,
  ): Promise<void> | undefined;
  /**
   * Connects a client's socket with the process that has the shard; without a name, with the processes of all shards.
   * Returns undefined if this process has everything that is needed. `request`: the parts of the handshake that are
   * still known.
   */
  socket(
    name: ShardName | undefined,
    socket: Socket,
    client: KnownClient,
    request: { readonly path: string; readonly headers: ReplyHeaders; readonly protocol?: string },
  ): Promise<void> | undefined;
}
