import type { Scheduler } from "./scheduler.ts";

/** A request as the wire gave it. Header names are lower-case. */
export interface HttpRequest {
  readonly method: string;
  /** Without the query, still percent-encoded. */
  readonly path: string;
  /** Raw, without the `?`; empty where there is none. */
  readonly query: string;
  header(name: string): string | undefined;
  /**
   * The whole body; empty where there is none.
   * @param tenant whom its memory is counted for
   * @throws ServiceError `body.too_large` above the transport's limit, `server.busy` where bodies need too much memory
   */
  body(tenant?: string): Promise<Uint8Array>;
  /** Tells that the body has been parsed. Until then, or until the answer, no other large one is handed over. */
  bodyRead?(): void;
}

export type Headers = { readonly [name: string]: string };

/** A response whose body is sent piece by piece, with chunked encoding. */
export interface ByteStream {
  /**
   * Sends a piece. False: the peer does not keep up; the piece was taken, but nothing more MUST be written until
   * `onDrain` fires. MUST do nothing once the peer is gone.
   */
  write(piece: Uint8Array | string): boolean;
  /** Registers the one listener that is told each time the peer has caught up. */
  onDrain(listener: () => void): void;
  /** Ends the response in good order. */
  end(piece?: Uint8Array | string): void;
  /** Cuts the connection: the peer sees a broken stream, not an end. */
  close(): void;
}

/** The answer to one request: exactly one of `send` and `open` MUST be called, once. */
export interface Reply {
  send(status: number, headers: Headers, body?: Uint8Array | string): void;
  /** Sends status, headers and a first piece at once. `first` MUST NOT be empty: uWebSockets sends no headers before a body. */
  open(status: number, headers: Headers, first: Uint8Array | string): ByteStream;
  /** Registers the one listener that is told when the peer goes away before the answer has ended. */
  onAbort(listener: () => void): void;
  readonly aborted: boolean;
}

/** One WebSocket. */
export interface Socket {
  /** False: the peer does not keep up; the message was taken, nothing more MUST be sent until `onDrain`. */
  send(message: Uint8Array | string): boolean;
  /** Runs `work`, what it sends goes out in as few pieces as can be. False as with `send`, also where each in it said true. */
  together(work: () => void): boolean;
  onDrain(listener: () => void): void;
  onMessage(listener: (message: Uint8Array | string) => void): void;
  /** Told once, whoever closed. */
  onClose(listener: () => void): void;
  /** `code` as in RFC 6455 §7.4; 4000 + an HTTP status where one fits. */
  close(code: number, reason: string): void;
}

/** Either a refusal, or what takes the socket once it is open. */
export type Upgrade =
  | { readonly kind: "refuse"; readonly status: number; readonly headers: Headers; readonly body: string }
  | { readonly kind: "accept"; readonly protocol?: string; open(socket: Socket): void };

export interface Handlers {
  request(request: HttpRequest, reply: Reply): void;
  upgrade(request: HttpRequest): Upgrade;
}

export interface TransportOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Bytes a request body may have. */
  readonly maxBody: number;
  /** Bytes that have come of all bodies and are not read yet; default 128 MiB, at least two of the largest. */
  readonly maxBodies?: number;
  /** Connections that may be open; a further one is closed at once. Default: any number. */
  readonly maxConnections?: number;
  /** For pings, and for peers that are too slow. */
  readonly scheduler: Scheduler;
}

/**
 * Serves HTTP/1.1 and WebSockets. MUST refuse, and close the connection after, a request with two Content-Lengths, with
 * Content-Length and Transfer-Encoding, or without exactly one Host. MUST close a connection that sends its request
 * slower than is reasonable, and a WebSocket whose peer takes none of 1 MiB.
 */
export interface Transport {
  readonly kind: "uws" | "node";
  /** Where it listens: the real port. */
  readonly address: { readonly host: string; readonly port: number };
  /** Takes no new connection; lets answers in progress end until `close`. */
  stopListening(): void;
  /** Cuts every connection. */
  close(): Promise<void>;
}

export type OpenTransport = (handlers: Handlers, options: TransportOptions) => Promise<Transport>;
