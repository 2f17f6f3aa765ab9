import { requestUrlOf, webHeadersOf } from "../access/web-request.ts";
import { ServiceError } from "../model/errors.ts";
import type {
  ByteStream,
  Handlers,
  HttpRequest,
  IncomingBody,
  Reply,
  ReplyHeaders,
} from "../ports/transport.ts";

/** The number of bytes that are buffered for the reader of a response body before the writer must wait. */
const HIGH_WATER_MARK = 64 * 1024;

/**
 * Responds to a web `Request` by calling `handle`. `openBody` opens a buffer for the request's body. The request is in `open` until its
 * response is complete. Rejects with the signal's reason if the request is aborted before its response.
 */
export function respondToWebRequest(
  handle: Handlers["request"],
  request: Request,
  openBody: () => IncomingBody,
  open?: PendingWebRequests,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    if (open?.isClosed) return resolve(stopped());
    const exchange = new WebExchange(request, openBody, { resolve, reject }, open);
    if (!exchange.aborted) handle(exchange, exchange);
  });
}

const stopped = (): Response => Response.json({ detail: "The server has stopped" }, { status: 503 });

/** The web requests whose responses are not complete yet. */
export class PendingWebRequests {
  readonly #open = new Set<{ close(): void }>();
  #isClosed = false;

  /** Whether the server has closed: further requests get 503. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  add(request: { close(): void }): void {
    this.#open.add(request);
  }

  delete(request: { close(): void }): void {
    this.#open.delete(request);
  }

  /** Called when the server closes: requests without a response get 503, and response streams are broken off. */
  close(): void {
    this.#isClosed = true;
    for (const request of this.#open) request.close();
  }
}

/** A web `Request`, and the `Response` to it. */
class WebExchange implements HttpRequest, Reply {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #request: Request;
  readonly #openBody: () => IncomingBody;
  #incoming: IncomingBody | undefined;
  readonly #promise: { resolve(response: Response): void; reject(reason: unknown): void };
  readonly #open: PendingWebRequests | undefined;
  #stream: WebStream | undefined;
  #isAnswered = false;
  #isAborted = false;
  #onAbort: (() => void) | undefined;

  constructor(
    request: Request,
    openBody: () => IncomingBody,
    promise: { resolve(response: Response): void; reject(reason: unknown): void },
    open: PendingWebRequests | undefined,
  ) {
    const { pathname, search } = new URL(request.url);
    this.method = request.method;
    this.path = pathname;
    this.query = search.slice(1);
    this.#request = request;
    this.#openBody = openBody;
    this.#promise = promise;
    this.#open = open;
    open?.add(this);
    if (request.signal.aborted) this.#abort();
    else request.signal.addEventListener("abort", this.#abort, { once: true });
  }

  get aborted(): boolean {
    return this.#isAborted;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers.get(name) ?? undefined;
    // A web request may lack the header `host`; its URL always has the host.
    return name === "host" ? (value ?? new URL(this.#request.url).host) : value;
  }

  headers(): Iterable<readonly [name: string, value: string]> {
    return this.#request.headers;
  }

  async body(tenant?: string): Promise<Uint8Array> {
    const { body, bodyUsed } = this.#request;
    if (body === null) return new Uint8Array(0);
    if (bodyUsed || body.locked)
      throw new ServiceError("body.malformed", "The body was read already before the request came to Heddle");
    this.#incoming = this.#openBody();
    void receive(body, this.#incoming);
    return this.#incoming.read(tenant);
  }

  bodyRead(): void {
    this.#incoming?.done();
  }

  #dropBody(): void {
    this.#incoming?.cut();
    this.#incoming?.drop();
  }

  onAbort(listener: () => void): void {
    this.#onAbort = listener;
  }

  readonly #abort = (): void => {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#open?.delete(this);
    this.#dropBody();
    const { reason } = this.#request.signal as { readonly reason: unknown };
    if (!this.#isAnswered) this.#promise.reject(reason);
    this.#stream?.close(reason);
    this.#onAbort?.();
  };

  /** Ends the exchange because the server has closed. If there is no response yet, the response is a 503. */
  close(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#dropBody();
    if (!this.#isAnswered) this.#promise.resolve(stopped());
    this.#stream?.close();
    this.#complete();
    this.#onAbort?.();
  }

  send(status: number, headers: ReplyHeaders, body?: Uint8Array | string): void {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    this.#answer(status, { ...headers, ...length }, body === undefined || body === "" ? null : body);
    this.#complete();
  }

  open(status: number, headers: ReplyHeaders, first: Uint8Array | string): ByteStream {
    const stream = new WebStream(this.#abort, () => this.#complete());
    this.#stream = stream;
    stream.write(first);
    this.#answer(status, headers, stream.readable);
    if (this.method === "HEAD") stream.end();
    return stream;
  }

  #answer(status: number, headers: ReplyHeaders, body: ReadableStream | Uint8Array | string | null): void {
    if (this.#isAnswered) throw new TypeError("the request has been answered already");
    this.#isAnswered = true;
    this.#incoming?.drop();
    const hasNoBody = this.method === "HEAD" || status === 204 || status === 304;
    this.#promise.resolve(new Response(hasNoBody ? null : body, { status, headers: webHeaders(headers) }));
  }

  /** Stops listening for a disconnect and leaves the set of pending requests. Called when the response is complete. */
  #complete(): void {
    this.#request.signal.removeEventListener("abort", this.#abort);
    this.#open?.delete(this);
  }
}

/** Passes the body of a web request to `into` until the body ends or `into` is dropped. */
async function receive(from: ReadableStream<unknown>, into: IncomingBody): Promise<void> {
  try {
    for await (const piece of from) {
      if (!(piece instanceof Uint8Array))
        throw new ServiceError(
          "body.malformed",
          `The body has a chunk of the type ${typeof piece}, not bytes`,
        );
      into.push(piece);
      if (into.isDropped) return;
    }
    into.finish();
  } catch (cause) {
    into.cut(cause instanceof ServiceError ? cause : undefined);
  }
}

/** The error with which a response body fails if the server cuts it off, for example because the server stops. */
class ConnectionClosedError extends Error {}

/** A response body, as a web `ReadableStream` with backpressure. */
class WebStream implements ByteStream {
  readonly readable: ReadableStream<Uint8Array>;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  readonly #onEnd: () => void;
  #onDrain: (() => void) | undefined;
  #isFull = false;

  /** `onCancel` is called when the reader cancels the stream, `onEnd` when the server ends or closes it. */
  constructor(onCancel: () => void, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.readable = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          if (!this.#isFull) return;
          this.#isFull = false;
          this.#onDrain?.();
        },
        cancel: () => {
          this.#controller = undefined;
          onCancel();
        },
      },
      { highWaterMark: HIGH_WATER_MARK, size: (piece) => piece?.length ?? 0 },
    );
  }

  write(piece: Uint8Array | string): boolean {
    const controller = this.#controller;
    if (controller === undefined) return true;
    controller.enqueue(typeof piece === "string" ? Buffer.from(piece) : piece);
    this.#isFull = (controller.desiredSize ?? 0) <= 0;
    return !this.#isFull;
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  end(piece?: Uint8Array | string): void {
    if (piece !== undefined) this.write(piece);
    const controller = this.#controller;
    this.#controller = undefined;
    if (controller === undefined) return;
    controller.close();
    this.#onEnd();
  }

  /** Makes the reader's next read fail with `cause`. */
  close(cause: unknown = new ConnectionClosedError("the connection was closed")): void {
    const controller = this.#controller;
    this.#controller = undefined;
    if (controller === undefined) return;
    controller.error(cause);
    this.#onEnd();
  }
}

function webHeaders(headers: ReplyHeaders): Headers {
  const made = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string") made.set(name, value);
    else for (const one of value) made.append(name, one);
  }
  return made;
}

/**
 * Converts a request that a transport received to a web `Request`. `body` is called when the application reads the body.
 * @throws ServiceError `route.not_found` if no web request can represent it, for example because of the method TRACE
 */
export function webRequestOf(
  request: HttpRequest,
  body: () => Promise<Uint8Array>,
  signal: AbortSignal,
): Request {
  const url = requestUrlOf(request);
  const headers = webHeadersOf(request);
  if (url === undefined || headers === undefined) throw new ServiceError("route.not_found", "Not Found");
  const { method } = request;
  const hasBody = method !== "GET" && method !== "HEAD";
  const init = { method, headers, signal, ...(hasBody && { body: streamOf(body), duplex: "half" }) };
  return new Request(url, init as RequestInit);
}

function streamOf(body: () => Promise<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = await body();
        if (bytes.length > 0) controller.enqueue(bytes);
        controller.close();
      },
    },
    // With the value 0, `body` is called only when the application reads the request's body.
    { highWaterMark: 0 },
  );
}

const EXPOSE_HEADERS = "access-control-expose-headers";

/** Joins two lists of header names, each name once. */
function joinNames(first: string, second: string | readonly string[] | undefined): string {
  const names = new Map<string, string>();
  for (const name of [first, second ?? []].flat().join().split(",")) {
    const trimmed = name.trim();
    const key = trimmed.toLowerCase();
    if (key !== "" && !names.has(key)) names.set(key, trimmed);
  }
  return [...names.values()].join(", ");
}

/** A response body of at most this many bytes is sent in one write with its length. */
const MAX_WHOLE_BYTES = 1024 * 1024;

/**
 * Sends a web `Response` as the reply to a request. If the body fails before its first byte is sent, the promise rejects. A later failure
 * cuts the connection.
 */
export async function sendWebResponse(
  response: Response,
  reply: Reply,
  options: {
    /** Headers to add, unless the response has headers of the same names. Of the headers that pages may read, those of both are named. */
    readonly headers: ReplyHeaders;
    readonly isHead: boolean;
    /** Called if the client disconnects before the end of the response. */
    onAbort(): void;
    /** Called with an error of the body after its first byte was sent. */
    onLateError(cause: unknown): void;
  },
): Promise<void> {
  const headers: { [name: string]: string | readonly string[] } = { ...options.headers };
  for (const [name, value] of response.headers) if (!TRANSPORT_HEADERS.has(name)) headers[name] = value;
  const exposed = response.headers.get(EXPOSE_HEADERS);
  if (exposed !== null) headers[EXPOSE_HEADERS] = joinNames(exposed, options.headers[EXPOSE_HEADERS]);
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) headers["set-cookie"] = cookies;
  const { body, status } = response;
  const length = response.headers.get("content-length");
  if (body === null) {
    // The response to HEAD has the length of the response to GET.
    if (options.isHead && length !== null) headers["content-length"] = length;
    return reply.send(status, headers);
  }
  // A body whose `content-length` is at most {@link MAX_WHOLE_BYTES} is collected and sent in one write. A body that turns out to be longer
  // than its `content-length` is streamed.
  const most = length !== null && Number(length) <= MAX_WHOLE_BYTES ? Number(length) : 0;
  let gathered: Uint8Array[] = [];
  let size = 0;
  const reader = body.getReader();
  let hasLeft = reply.aborted;
  /** Resolves the promise of the last call of `drained`. Called when the client has read what was sent, or has disconnected. */
  let proceed = (): void => undefined;
  const drained = (full: ByteStream) => new Promise<void>((resolve) => full.onDrain((proceed = resolve)));
  const leave = () => {
    hasLeft = true;
    options.onAbort();
    reader.cancel().catch(() => undefined);
    proceed();
  };
  if (hasLeft) return leave();
  reply.onAbort(leave);
  let stream: ByteStream | undefined;
  try {
    for (;;) {
      const read = await reader.read();
      if (hasLeft) return;
      if (read.done) break;
      const value = bytesOfChunk(read.value);
      if (value.length === 0) continue;
      size += value.length;
      if (stream !== undefined) {
        if (!stream.write(value)) await drained(stream);
      } else if (size <= most) {
        gathered.push(value);
      } else {
        const first = gathered.length === 0 ? value : Buffer.concat([...gathered, value]);
        stream = reply.open(status, headers, first);
        gathered = [];
      }
    }
  } catch (cause) {
    if (hasLeft) return;
    reader.cancel().catch(() => undefined);
    if (stream === undefined) throw cause;
    stream.close();
    if (!(cause instanceof ConnectionClosedError)) options.onLateError(cause);
    return;
  }
  if (stream !== undefined) stream.end();
  else reply.send(status, headers, size === 0 ? undefined : Buffer.concat(gathered));
}

/**
 * The bytes of a chunk of a response body. A string is encoded as UTF-8, as other servers do.
 * @throws TypeError if the chunk is neither bytes nor a string
 */
function bytesOfChunk(chunk: unknown): Uint8Array {
  if (typeof chunk === "string") return Buffer.from(chunk);
  if (chunk instanceof Uint8Array) return chunk;
  throw new TypeError(`the HTTP application's body has a chunk of the type ${typeof chunk}, not bytes`);
}

/** @throws TypeError if the value is not a response, or has a status that cannot be sent, such as `Response.error()` with its status 0 */
export function assertSendable(response: unknown): asserts response is Response {
  const { status, headers } = (typeof response === "object" && response !== null ? response : {}) as {
    readonly status?: unknown;
    readonly headers?: unknown;
  };
  if (typeof status !== "number" || headers === undefined)
    throw new TypeError(`the HTTP application's answer is no Response but of the type ${typeof response}`);
  if (status < 200 || status > 599)
    throw new TypeError(`the HTTP application's answer has the status ${status}, which cannot be sent`);
}

/** Headers that are not copied to the reply. The transport writes the first three itself; `set-cookie` is added separately, as a list. */
const TRANSPORT_HEADERS: ReadonlySet<string> = new Set([
  "content-length",
  "transfer-encoding",
  "connection",
  "set-cookie",
]);
