import type { ByteStream, HttpRequest, ReplyHeaders } from "../ports/transport.ts";
import { RequestBody } from "./request-body.ts";
import type { BodyLimits } from "../ports/body-memory.ts";
import { Exchange } from "./exchange.ts";
import { RequestFraming } from "./framing-headers.ts";
import { writeHead, type UwsRequest, type UwsResponse } from "./uws-raw.ts";
import { UwsStream } from "./uws-stream.ts";

/**
 * The request line and the headers of a request, copied because uWebSockets.js makes its own object invalid when the handler returns. A
 * WebSocket handshake consists of nothing else.
 */
export class UwsHead implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly framing = new RequestFraming();
  /** The names and values of the headers, alternating. No map is built, because most requests read few headers. */
  readonly #headers: string[] = [];

  constructor(raw: UwsRequest) {
    this.method = raw.getCaseSensitiveMethod();
    this.path = raw.getUrl();
    this.query = raw.getQuery() ?? "";
    // Reads every header, because that is the only way to notice a repeated header.
    raw.forEach((name, value) => {
      this.#headers.push(name, value);
      this.framing.note(name, value);
    });
  }

  header(name: string): string | undefined {
    const headers = this.#headers;
    for (let i = 0; i < headers.length; i += 2) {
      if (headers[i] === name) return headers[i + 1];
    }
    return undefined;
  }

  *headers(): Iterable<readonly [name: string, value: string]> {
    const headers = this.#headers;
    for (let i = 0; i < headers.length; i += 2) yield [headers[i] as string, headers[i + 1] as string];
  }

  body(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(0));
  }
}

/** A request and its response, over uWebSockets.js. */
export class UwsExchange extends Exchange {
  readonly #raw: UwsResponse;
  readonly #isDraining: () => boolean;
  #stream: UwsStream | undefined;

  constructor(head: UwsHead, raw: UwsResponse, { maxBody, memory }: BodyLimits, isDraining: () => boolean) {
    const { framing } = head;
    const body = new RequestBody(maxBody, memory, framing.length, framing.hasBody);
    super(head, body);
    this.#raw = raw;
    this.#isDraining = isDraining;
    raw.onAborted(() => this.#abort());
    if (!framing.hasBody) return;
    raw.onData((piece, last) => {
      // The piece is copied (`true`), because it is only valid during this call. A body that is not needed is still received to its end. If
      // the connection were closed instead, the client would not see the response.
      if (body.isDropped) body.skip(piece.byteLength);
      else body.push(new Uint8Array(piece), true);
      if (last) body.finish();
    });
  }

  send(status: number, headers: ReplyHeaders, body?: Uint8Array | string): void {
    if (!this.answer()) return;
    const raw = this.#raw;
    const isEmpty = this.method === "HEAD" || (body === undefined && (status === 204 || status === 304));
    // Closes the connection only if the request body is complete. If the connection ended while the body still arrives, the response could
    // be lost.
    const isLast = this.#isDraining() && this.incoming.complete;
    raw.cork(() => {
      writeHead(raw, status, headers);
      if (!isEmpty) return raw.end(body, isLast);
      // The length is written as a header. If it were an argument of `endWithoutBody`, that function would wait for as many bytes; even the
      // argument `undefined` has this effect.
      if (body !== undefined) raw.writeHeader("content-length", String(Buffer.byteLength(body)));
      // Asks the client to close the connection, because `endWithoutBody` cannot close it.
      if (isLast) raw.writeHeader("connection", "close");
      return raw.endWithoutBody();
    });
  }

  open(status: number, headers: ReplyHeaders, first: Uint8Array | string): ByteStream {
    const stream = new UwsStream(this.#raw);
    if (!this.answer()) {
      stream.gone();
      return stream;
    }
    if (this.method === "HEAD") {
      stream.gone();
      this.#raw.cork(() => {
        writeHead(this.#raw, status, headers);
        this.#raw.endWithoutBody();
      });
      return stream;
    }
    this.#stream = stream;
    stream.start(() => writeHead(this.#raw, status, headers), first);
    return stream;
  }

  #abort(): void {
    const over = this.#stream?.over ?? false;
    this.#stream?.gone();
    this.gone(over);
  }
}
