import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { ServiceError } from "../model/errors.ts";
import type { ByteStream, HttpRequest, ReplyHeaders } from "../ports/transport.ts";
import { RequestBody } from "./request-body.ts";
import type { BodyLimits } from "../ports/body-memory.ts";
import { Exchange } from "./exchange.ts";
import { RequestFraming, malformedRequest, type Refusal } from "./framing-headers.ts";
import { MAX_UNSENT_BYTES } from "./transport-limits.ts";

const READ_ALREADY =
  "The body was read already before the request came to Heddle, and `request.body` does not have it";

/** The request line and the headers of a request. A WebSocket handshake consists of nothing else. */
export class NodeHead implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly framing = new RequestFraming();
  readonly #raw: IncomingMessage;

  constructor(raw: IncomingMessage) {
    this.#raw = raw;
    this.method = raw.method ?? "";
    const url = raw.url ?? "";
    const mark = url.indexOf("?");
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = mark < 0 ? "" : url.slice(mark + 1);
    const { rawHeaders } = raw;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      this.framing.note((rawHeaders[i] as string).toLowerCase(), rawHeaders[i + 1] as string);
    }
  }

  /** The reason to refuse the request and to close its connection; undefined if the request is valid. */
  get refusal(): Refusal | undefined {
    return (
      this.framing.refusal ??
      (this.path.startsWith("/") ? undefined : malformedRequest("the target is not a path"))
    );
  }

  header(name: string): string | undefined {
    const value = this.#raw.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  *headers(): Iterable<readonly [name: string, value: string]> {
    const { rawHeaders } = this.#raw;
    for (let i = 0; i < rawHeaders.length; i += 2)
      yield [(rawHeaders[i] as string).toLowerCase(), rawHeaders[i + 1] as string];
  }

  body(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(0));
  }
}

/** A request and its response, over Node's HTTP server. */
export class NodeExchange extends Exchange {
  readonly #response: ServerResponse;
  readonly #isDraining: () => boolean;
  #stream: NodeStream | undefined;

  /** `onBody` is called at once if the request has a body that has not been read yet. */
  constructor(
    head: NodeHead,
    raw: IncomingMessage,
    response: ServerResponse,
    { maxBody, memory }: BodyLimits,
    isDraining: () => boolean,
    onBody: (body: RequestBody, raw: IncomingMessage) => void,
  ) {
    const { framing } = head;
    // A middleware that ran before Heddle, such as a body parser of Express, may have read the body.
    const isRead = framing.hasBody && raw.readableEnded;
    const parsed = isRead ? bytesOf((raw as { body?: unknown }).body) : undefined;
    const body = new RequestBody(maxBody, memory, parsed?.length ?? framing.length, framing.hasBody);
    super(head, body);
    this.#response = response;
    this.#isDraining = isDraining;
    response.on("close", () => this.#closed());
    // Ignores write errors: they only mean that the client has disconnected, and the event `close` follows.
    response.on("error", () => undefined);
    if (!framing.hasBody) return;
    if (isRead) {
      if (parsed === undefined) {
        body.cut(new ServiceError("body.malformed", READ_ALREADY));
      } else {
        body.push(parsed);
        body.finish();
      }
      return;
    }
    raw.on("error", () => undefined);
    // A body that was refused is received to its end and discarded. If the connection were closed instead, the client would not see the
    // response.
    raw.on("data", (piece: Buffer) => body.push(piece));
    raw.on("end", () => body.finish());
    onBody(body, raw);
  }

  send(status: number, headers: ReplyHeaders, body?: Uint8Array | string): void {
    if (!this.answer()) return;
    const response = this.#response;
    response.statusCode = status;
    for (const name in headers) response.setHeader(name, headers[name] as string | readonly string[]);
    if (this.method === "HEAD" && body !== undefined) {
      response.setHeader("content-length", Buffer.byteLength(body));
    }
    // Asks for the end of the connection only if the request body is complete. If the connection ended while the body still arrives, the
    // response could be lost.
    if (this.#isDraining() && this.incoming.complete) response.setHeader("connection", "close");
    response.end(body);
  }

  open(status: number, headers: ReplyHeaders, first: Uint8Array | string): ByteStream {
    const stream = new NodeStream(this.#response);
    if (!this.answer()) {
      stream.over = true;
      return stream;
    }
    this.#response.writeHead(status, headers as OutgoingHttpHeaders);
    if (this.method === "HEAD") {
      stream.end();
      return stream;
    }
    this.#stream = stream;
    stream.write(first);
    return stream;
  }

  #closed(): void {
    const over = this.#stream?.over ?? false;
    if (this.#response.writableFinished) return;
    if (this.#stream !== undefined) this.#stream.over = true;
    this.gone(over);
  }
}

/**
 * Converts a body that a middleware has read to bytes; undefined if the middleware has not stored it in `request.body`. A parsed body is
 * converted back to JSON.
 */
function bytesOf(read: unknown): Uint8Array | undefined {
  if (read === undefined) return undefined;
  if (read instanceof Uint8Array) return read;
  return Buffer.from(typeof read === "string" ? read : JSON.stringify(read));
}

class NodeStream implements ByteStream {
  over = false;
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  write(piece: Uint8Array | string): boolean {
    if (this.over) return false;
    if (piece.length === 0) return !this.#response.writableNeedDrain;
    const taken = this.#response.write(piece);
    if (!taken && this.#response.writableLength > MAX_UNSENT_BYTES + piece.length) this.close();
    return taken;
  }

  onDrain(listener: () => void): void {
    this.#response.removeAllListeners("drain");
    this.#response.on("drain", () => {
      if (!this.over) listener();
    });
  }

  end(piece?: Uint8Array | string): void {
    if (this.over) return;
    this.over = true;
    this.#response.end(piece);
  }

  close(): void {
    if (this.over) return;
    this.over = true;
    this.#response.destroy();
  }
}
