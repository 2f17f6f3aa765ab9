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

/** Thrown when another process of this server did not answer. */
export class PeerLost extends Error {
  override readonly name = "PeerLost";
  /** Whether the process may have got the request. */
  readonly wasSent: boolean;

  constructor(wasSent: boolean, cause: unknown) {
    super("a process of this server does not answer", { cause });
    this.wasSent = wasSent;
  }
}

/** The processes of a server that share its port, each with a shard. */
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

/** Says which shard has to answer a request: the shard of a name, such as a thread's id, or the home shard. */
export type ShardName = string | typeof HOME_SHARD;
export const HOME_SHARD: unique symbol = Symbol("home shard");

export interface ForwardedRequest {
  readonly client: KnownClient & { readonly id: string; readonly headers: Headers };
  /** True if the request starts a run. Then it gets an idempotency key if it has none, so that it can be sent again. */
  readonly startsRun: boolean;
  /** Called with the status of the response. */
  count(status: number): void;
}

/** Forwards requests and sockets to the process of this server that has their shard. */
export interface Forwarding {
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
