import type { Duplex } from "node:stream";
import type { BodyLimits } from "../ports/body-memory.ts";
import type { ByteStream, Handlers, HttpRequest, ReplyHeaders } from "../ports/transport.ts";
import { Exchange } from "./exchange.ts";
import {
  FRAME,
  FrameReader,
  FrameWriter,
  OutgoingBody,
  type RequestHead,
  type ResponseHead,
  splitHead,
  TakenBytes,
} from "./peer-frames.ts";
import { RequestBody } from "./request-body.ts";
import { MAX_UNSENT_BYTES } from "./transport-limits.ts";

interface Deps {
  readonly handlers: Pick<Handlers, "request">;
  readonly limits: BodyLimits;
}

/** Serves the requests that arrive over a connection from another process: see {@link FRAME}. */
export class PeerSession {
  readonly #deps: Deps;
  readonly #socket: Duplex;
  readonly #writer: FrameWriter;
  readonly #reader = new FrameReader();
  readonly #exchanges = new Map<number, ServedExchange>();
  #lastId = 0;
  #isEnding = false;

  constructor(socket: Duplex, first: Buffer, deps: Deps) {
    this.#deps = deps;
    this.#socket = socket;
    // Responses are sent in the turn of the event loop in which they are made: in the next one, a node may block the process, and its run
    // would not be acknowledged before the node ends.
    this.#writer = new FrameWriter(socket, (send) => void Promise.resolve().then(send));
    if (first.length > 0) socket.unshift(first);
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("error", () => undefined);
    socket.on("end", () => socket.end());
    socket.on("close", () => {
      for (const exchange of this.#exchanges.values()) exchange.lose();
    });
  }

  /** Accepts no more requests, and ends the connection when those that have been accepted are answered. */
  end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#writer.write({ type: FRAME.goAway, id: this.#lastId });
    this.#endIfIdle();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #endIfIdle(): void {
    if (!this.#isEnding || this.#exchanges.size > 0) return;
    this.#writer.flush();
    this.#socket.end();
  }

  #receive(bytes: Buffer): void {
    if (!this.#reader.read(bytes, this.#take)) this.#socket.destroy();
  }

  readonly #take = (type: number, id: number, body: Buffer, isLast: boolean): void => {
    if (type === FRAME.ping) return this.#writer.write({ type: FRAME.pong, id });
    // The sender is told that a request that comes after `goAway` was not accepted.
    if (type === FRAME.request) return this.#isEnding ? undefined : this.#accept(id, body, isLast);
    // The frames of a request that has been answered or cancelled are ignored.
    const exchange = this.#exchanges.get(id);
    if (type === FRAME.data) exchange?.take(body, isLast);
    else if (type === FRAME.credit) exchange?.credit(body.readUInt32BE(0));
    else if (type === FRAME.abort) exchange?.abort();
  };

  #accept(id: number, payload: Buffer, isLast: boolean): void {
    this.#lastId = id;
    const [head, first] = splitHead(payload);
    const exchange = new ServedExchange(head as RequestHead, this.#deps.limits, this.#writer, id, () => {
      this.#exchanges.delete(id);
      this.#endIfIdle();
    });
    this.#exchanges.set(id, exchange);
    exchange.take(first, isLast);
    this.#deps.handlers.request(exchange, exchange);
  }
}

/** The request line and the headers of a forwarded request. */
class ForwardedHead implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #headers: ReplyHeaders;

  constructor([method, url, headers]: RequestHead) {
    this.method = method;
    const mark = url.indexOf("?");
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = mark < 0 ? "" : url.slice(mark + 1);
    this.#headers = headers;
  }

  header(name: string): string | undefined {
    if (!Object.hasOwn(this.#headers, name)) return undefined;
    const value = this.#headers[name];
    return typeof value === "string" ? value : value?.join(", ");
  }

  *headers(): Iterable<readonly [name: string, value: string]> {
    for (const [name, value] of Object.entries(this.#headers)) {
      if (typeof value === "string") yield [name, value];
      else for (const one of value) yield [name, one];
    }
  }

  body(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(0));
  }
}

/** A request of another process, and the response to it. */
class ServedExchange extends Exchange {
  isPeerLost = false;
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #onEnd: () => void;
  readonly #taken: TakenBytes;
  readonly #response: OutgoingBody;
  #stream: ServedStream | undefined;
  #hasResponse = false;
  #hasEnded = false;

  /** `onEnd`: called once, when the response has been sent or the request was cancelled. */
  constructor(
    head: RequestHead,
    { maxBody, memory }: BodyLimits,
    writer: FrameWriter,
    id: number,
    onEnd: () => void,
  ) {
    const length = head[3];
    super(new ForwardedHead(head), new RequestBody(maxBody, memory, length, length > 0));
    this.#writer = writer;
    this.#id = id;
    this.#onEnd = onEnd;
    this.#taken = new TakenBytes(writer, id);
    this.#response = new OutgoingBody(writer, id, () => this.#end());
  }

  /** Takes a part of the request's body. */
  take(piece: Buffer, isLast: boolean): void {
    this.incoming.push(piece);
    if (isLast) this.incoming.finish();
    else this.#taken.add(piece.length);
  }

  credit(bytes: number): void {
    this.#response.credit(bytes);
  }

  /** Called when the connection has ended. */
  lose(): void {
    this.isPeerLost = true;
    this.abort();
  }

  /** Called when the request is cancelled. */
  abort(): void {
    if (this.#hasEnded) return;
    this.#response.stop();
    const over = this.#stream === undefined ? this.#hasResponse : this.#stream.over;
    if (this.#stream !== undefined) this.#stream.over = true;
    this.#end();
    this.gone(over);
  }

  send(status: number, headers: ReplyHeaders, body?: Uint8Array | string): void {
    if (!this.answer()) return;
    this.#hasResponse = true;
    const bytes = this.method === "HEAD" || body === undefined ? undefined : bytesOf(body);
    this.#response.start(FRAME.response, headText(status, headers, bytes?.length ?? 0), bytes, true);
  }

  open(status: number, headers: ReplyHeaders, first: Uint8Array | string): ByteStream {
    const stream = new ServedStream(this.#response, () => {
      this.#writer.write({ type: FRAME.abort, id: this.#id });
      this.#end();
    });
    if (!this.answer()) {
      stream.over = true;
      return stream;
    }
    if (this.method === "HEAD") {
      stream.over = true;
      this.#response.start(FRAME.response, headText(status, headers, 0), undefined, true);
      return stream;
    }
    this.#stream = stream;
    this.#response.start(FRAME.response, headText(status, headers, -1), bytesOf(first), false);
    return stream;
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd();
  }
}

const bytesOf = (body: Uint8Array | string): Uint8Array =>
  typeof body === "string" ? Buffer.from(body) : body;

const headText = (status: number, headers: ReplyHeaders, length: number): string =>
  JSON.stringify([status, headers, length] satisfies ResponseHead);

class ServedStream implements ByteStream {
  over = false;
  readonly #body: OutgoingBody;
  readonly #breakOff: () => void;

  constructor(body: OutgoingBody, breakOff: () => void) {
    this.#body = body;
    this.#breakOff = breakOff;
  }

  write(piece: Uint8Array | string): boolean {
    if (this.over) return false;
    const isTaken = this.#body.write(bytesOf(piece));
    if (!isTaken && this.#body.pendingBytes > MAX_UNSENT_BYTES + piece.length) this.close();
    return isTaken;
  }

  onDrain(listener: () => void): void {
    this.#body.onDrain = () => {
      if (!this.over) listener();
    };
  }

  end(piece?: Uint8Array | string): void {
    if (this.over) return;
    this.over = true;
    this.#body.end(piece === undefined ? undefined : bytesOf(piece));
  }

  close(): void {
    if (this.over) return;
    this.over = true;
    this.#body.stop();
    this.#breakOff();
  }
}
