import type { ByteStream, HttpRequest, ReplyHeaders } from "../ports/transport.ts";
import { RequestBody } from "./request-body.ts";
import type { BodyLimits } from "../ports/body-memory.ts";
import { Exchange } from "./exchange.ts";
import { RequestFraming } from "./framing-headers.ts";
import { writeHead, type RawRequest, type RawResponse } from "./uws-raw.ts";
import { UwsStream } from "./uws-stream.ts";

/**
 * A request without its body, copied at once: uWebSockets.js invalidates its own object when the handler returns. A
 * WebSocket handshake has no body.
 */
export class UwsHead implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly framing = new RequestFraming();
  /** Alternating names and values. Requests rarely need a header, so no map is built. */
  readonly #headers: string[] = [];

  constructor(raw: RawRequest) {
    this.method = raw.getCaseSensitiveMethod();
    this.path = raw.getUrl();
    this.query = raw.getQuery() ?? "";
    // Reads all headers, since that is the only way to notice a repeated one.
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
  readonly #raw: RawResponse;
  readonly #isDraining: () => boolean;
  #stream: UwsStream | undefined;

  constructor(head: UwsHead, raw: RawResponse, { maxBody, memory }: BodyLimits, isDraining: () => boolean) {
    const { framing } = head;
    const body = new RequestBody(maxBody, memory, framing.length, framing.hasBody);
    super(head, body);
    this.#raw = raw;
    this.#isDraining = isDraining;
    raw.onAborted(() => this.#abort());
    if (!framing.hasBody) return;
    raw.onData((piece, last) => {
      // The piece is only valid during this call. A body that is not needed is received and discarded: if the connection were closed
      // instead, the client would not see the response.
      if (body.isDropped) body.skip(piece.byteLength);
      else body.push(new Uint8Array(piece), true);
      if (last) body.finish();
    });
  }

  send(status: number, headers: ReplyHeaders, body?: Uint8Array | string): void {
    if (!this.answer()) return;
    const raw = this.#raw;
    const isEmpty = this.method === "HEAD" || (body === undefined && (status === 204 || status === 304));
    // The connection is closed only if the body is complete: closing it while a body arrives could lose the response.
    const isLast = this.#isDraining() && this.incoming.complete;
    raw.cork(() => {
      writeHead(raw, status, headers);
      if (!isEmpty) return raw.end(body, isLast);
      // The length is set explicitly: with a length argument (even `undefined`), `endWithoutBody` waits for that many
      // bytes.
      if (body !== undefined) raw.writeHeader("content-length", String(Buffer.byteLength(body)));
      // `endWithoutBody` cannot close the connection, so the client is asked to do it.
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
