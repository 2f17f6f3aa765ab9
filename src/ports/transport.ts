import type { ServiceError } from "../model/errors.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { Scheduler } from "./scheduler.ts";

/** A request as it was received. Header names are lower-case. */
export interface HttpRequest {
  readonly method: string;
  /** The path without the query, still percent-encoded. */
  readonly path: string;
  /** The raw query without the `?`; empty when there is none. */
  readonly query: string;
  header(name: string): string | undefined;
  /**
   * All headers, in any order. A header that was sent several times either occurs once with its values joined, or occurs several times. The
   * result is valid only as long as {@link header} may be called.
   */
  headers(): Iterable<readonly [name: string, value: string]>;
  /**
   * The whole body; empty when there is none.
   * @param tenant the tenant for whom the memory of the body is counted
   * @throws ServiceError `body.too_large` above the transport's limit, `server.busy` when bodies need too
   *   much memory
   */
  body(tenant?: string): Promise<Uint8Array>;
  /**
   * Reports that the body has been parsed. Until this call, or until the response is sent, `body` of other requests with large bodies does
   * not resolve, so that only one large body is parsed at a time.
   */
  bodyRead?(): void;
}

/** A request body that is collected while it arrives. */
export interface IncomingBody {
  /** True if further pieces of the body are discarded. */
  readonly isDropped: boolean;
  push(piece: Uint8Array): void;
  finish(): void;
  /**
   * Ends the body before it is complete. `cause`: the error with which {@link read} fails; by default an error that says that the body is
   * incomplete.
   */
  cut(cause?: ServiceError): void;
  /** Discards the body, because nobody will read it. */
  drop(): void;
  /** See {@link HttpRequest.body}. */
  read(tenant: string | undefined): Promise<Uint8Array>;
  /** See {@link HttpRequest.bodyRead}. */
  done(): void;
}

export type Headers = { readonly [name: string]: string };

/** The headers of a reply. Several values of a header are joined into one line, except those of `set-cookie`. */
export type ReplyHeaders = { readonly [name: string]: string | readonly string[] };

/** A response whose body is sent piece by piece. */
export interface ByteStream {
  /**
   * Sends a piece. Returns false if the peer does not keep up: the piece was accepted, but callers MUST NOT write more before the listener
   * of `onDrain` is called. MUST do nothing if the peer has disconnected.
   */
  write(piece: Uint8Array | string): boolean;
  /** Registers the one listener. It is called each time the peer has caught up. */
  onDrain(listener: () => void): void;
  /** Ends the response normally. */
  end(piece?: Uint8Array | string): void;
  /** Closes the connection without a proper end of the response, so that the peer sees an error. */
  close(): void;
}

/** The response to one request. Exactly one of `send` and `open` MUST be called, once. */
export interface Reply {
  send(status: number, headers: ReplyHeaders, body?: Uint8Array | string): void;
  /** Sends status, headers and a first piece at once. `first` MUST NOT be empty: uWebSockets sends no headers before a body. */
  open(status: number, headers: ReplyHeaders, first: Uint8Array | string): ByteStream;
  /**
   * Registers the one listener. It is called if the exchange breaks off before the response has ended: the peer has disconnected, or the
   * server has closed.
   */
  onAbort(listener: () => void): void;
  readonly aborted: boolean;
  /**
   * True if the exchange has broken off because the connection to another process of this server has ended. The client of that process may
   * still be connected: the process then sends the request again.
   */
  readonly isPeerLost?: boolean;
}

export interface Socket {
  /**
   * Sends a message. Returns false if the peer does not keep up: the message was accepted, but callers MUST NOT send more before the
   * listener of `onDrain` is called.
   */
  send(message: Uint8Array | string): boolean;
  /**
   * Runs `work` and sends its messages in as few writes as possible. Returns false if the peer does not keep up, even if each `send`
   * returned true.
   */
  together(work: () => void): boolean;
  onDrain(listener: () => void): void;
  onMessage(listener: (message: Uint8Array | string) => void): void;
  /** Adds a listener. It is called once, no matter which side closed the socket. */
  onClose(listener: () => void): void;
  /** Closes the socket. `code`: a close code of RFC 6455 §7.4 or, for an error that has an HTTP status, 4000 plus that status. */
  close(code: number, reason: string): void;
}

/** The answer to an upgrade request: a refusal, or a function that handles the open socket. */
export type Upgrade =
  | { readonly kind: "refuse"; readonly status: number; readonly headers: Headers; readonly body: string }
  | { readonly kind: "accept"; readonly protocol?: string; open(socket: Socket): void };

export interface Handlers {
  request(request: HttpRequest, reply: Reply): void;
  upgrade(request: HttpRequest): Upgrade;
}

export interface TransportOptions {
  readonly host: string;
  /** The port; 0 for any free port. */
  readonly port: number;
  /**
   * Whether other processes of the same operating-system user may listen on the same port; each then gets a
   * part of the connections. Default: false.
   */
  readonly sharesPort?: boolean;
  /** The largest request body, in bytes. */
  readonly maxBody: number;
  /**
   * The most bytes of all request bodies that have been received but not been read yet. Default: 128 MiB. The limit is at least twice
   * `maxBody`.
   */
  readonly maxBodies?: number;
  /** A memory budget for bodies that is shared with other transports. If it is set, `maxBodies` is ignored. */
  readonly bodyMemory?: BodyMemory;
  /** The largest number of open connections. Further connections are closed immediately. Default: no limit. */
  readonly maxConnections?: number;
  /** Schedules pings and the timeouts of slow peers. */
  readonly scheduler: Scheduler;
}

/**
 * Serves HTTP/1.1 and WebSockets. MUST refuse a request with two Content-Length headers, with both Content-Length and Transfer-Encoding, or
 * without exactly one Host header, and then close its connection. MUST close a connection whose request arrives too slowly. MUST close a
 * WebSocket if more than 1 MiB waits for its peer.
 */
export interface Transport {
  /** The library that serves requests; `none`: the transport does not listen. */
  readonly kind: "uws" | "node" | "none";
  /** The address at which the transport listens, with the real port; port 0 if the kind is `none`. */
  readonly address: { readonly host: string; readonly port: number };
  /**
   * Called when the server is about to close. From then on, each complete response has `Connection: close` and ends its connection, unless
   * the request to which it responds is still arriving. New connections are accepted until `close`.
   */
  startDraining(): void;
  /** Accepts no new connections. Open connections stay open. */
  stopListening(): void;
  /** Accepts no new connections, and closes every connection. */
  close(): Promise<void>;
}

/**
 * Opens a transport.
 * @throws ServiceError `server.address` if it cannot listen at the address. The error's cause has the `code` of the operating system, if
 * there is one.
 */
export type TransportOpener = (handlers: Handlers, options: TransportOptions) => Promise<Transport>;
