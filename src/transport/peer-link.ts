import type { Duplex } from "node:stream";
import {
  type Cancellation,
  MISDIRECTED_STATUS,
  PeerLost,
  type PeerReader,
  type PeerRequest,
  type PeerResponse,
} from "../ports/peers.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ReplyHeaders } from "../ports/transport.ts";
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

interface Deps {
  readonly scheduler: Scheduler;
  /** Called when a request begins. Returns the function to call once it has ended. */
  readonly begin: () => () => void;
  /** Whether the connection was ended because the process hangs. */
  readonly isUnresponsive: () => boolean;
  /** Called once, when no further request can be sent. */
  readonly onEnd: () => void;
}

/** A connection to another process, over which requests are sent side by side. */
export class PeerLink {
  readonly #deps: Deps;
  readonly #socket: Duplex & { ref?(): unknown; unref?(): unknown };
  readonly #writer: FrameWriter;
  readonly #reader = new FrameReader();
  readonly #exchanges = new Map<number, PeerExchange>();
  #lastId = 0;
  #pings: { readonly resolve: () => void; readonly reject: (cause: unknown) => void }[] = [];
  #cause: unknown;
  /** True once the process accepts no further request over this connection. */
  #isEnding = false;

  constructor(socket: Duplex, first: Buffer, deps: Deps) {
    this.#deps = deps;
    this.#socket = socket;
    // The requests of one turn of the event loop are sent together.
    this.#writer = new FrameWriter(socket, (send) => deps.scheduler.soon(send));
    // Without a listener, these bytes are not read before the caller has the link.
    if (first.length > 0) socket.unshift(first);
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("error", (cause) => (this.#cause ??= cause));
    socket.on("end", () => socket.end());
    socket.on("close", () => this.#close());
    this.#unrefIfIdle();
  }

  /** Sends a request. @throws PeerLost if the process does not answer */
  request(request: PeerRequest, cancellation?: Cancellation): Promise<PeerResponse> {
    if (this.#isEnding || cancellation?.isCancelled === true)
      return Promise.reject(new PeerLost(false, this.#cause, this.#deps.isUnresponsive()));
    const { method, path, headers, body } = request;
    const id = ++this.#lastId;
    const end = this.#deps.begin();
    if (this.#exchanges.size === 0) this.#socket.ref?.();
    return new Promise((resolve, reject) => {
      const exchange = new PeerExchange(this.#writer, id, {
        resolve,
        reject,
        lost: (wasSent) => new PeerLost(wasSent, this.#cause, this.#deps.isUnresponsive()),
        onEnd: () => {
          this.#exchanges.delete(id);
          end();
          this.#unrefIfIdle();
        },
      });
      this.#exchanges.set(id, exchange);
      cancellation?.onCancel(() => exchange.cancel());
      const head: RequestHead = [method, path, headers, body?.length ?? 0];
      exchange.body.start(FRAME.request, JSON.stringify(head), body, true);
    });
  }

  /** Resolves when the process has answered. */
  ping(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#isEnding) return reject(new PeerLost(false, this.#cause));
      this.#pings.push({ resolve, reject });
      this.#socket.ref?.();
      this.#writer.write({ type: FRAME.ping, id: 0 });
    });
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #receive(bytes: Buffer): void {
    if (this.#reader.read(bytes, this.#take)) return;
    this.#cause = new Error("the process does not speak the protocol of this server's processes");
    this.#socket.destroy();
  }

  readonly #take = (type: number, id: number, body: Buffer, isLast: boolean): void => {
    if (type === FRAME.pong) {
      this.#pings.shift()?.resolve();
      return this.#unrefIfIdle();
    }
    if (type === FRAME.goAway) {
      this.#isEnding = true;
      this.#deps.onEnd();
      for (const [later, exchange] of this.#exchanges) if (later > id) exchange.lose(false);
      return;
    }
    // The frames of a request that has been cancelled are ignored.
    const exchange = this.#exchanges.get(id);
    if (exchange === undefined) return;
    if (type === FRAME.response) exchange.respond(body, isLast);
    else if (type === FRAME.data) exchange.take(body, isLast);
    else if (type === FRAME.credit) exchange.body.credit(body.readUInt32BE(0));
    else if (type === FRAME.abort) exchange.lose(true);
  };

  /** A connection without a request does not keep the process alive. */
  #unrefIfIdle(): void {
    if (this.#exchanges.size === 0 && this.#pings.length === 0) this.#socket.unref?.();
  }

  #close(): void {
    this.#isEnding = true;
    this.#deps.onEnd();
    for (const exchange of this.#exchanges.values()) exchange.lose(true);
    for (const { reject } of this.#pings.splice(0)) reject(new PeerLost(true, this.#cause));
  }
}

interface PeerExchangeDeps {
  readonly resolve: (response: PeerResponse) => void;
  readonly reject: (lost: PeerLost) => void;
  readonly lost: (wasSent: boolean) => PeerLost;
  /** Called once, when nothing more is received. */
  readonly onEnd: () => void;
}

/** One request to another process, and its response. */
class PeerExchange implements PeerResponse {
  readonly body: OutgoingBody;
  status = 0;
  headers: ReplyHeaders = {};
  length: number | undefined;
  readonly #deps: PeerExchangeDeps;
  readonly #taken: TakenBytes;
  #reader: PeerReader | undefined;
  /** Pieces of the body that the reader has not taken yet, at most as many bytes as the other process may send without a credit. */
  #held: Buffer[] = [];
  #isPaused = false;
  #hasResponse = false;
  /** Set when nothing more arrives: the response is complete, or it was broken off. */
  #end: "complete" | "broken" | undefined;

  constructor(writer: FrameWriter, id: number, deps: PeerExchangeDeps) {
    this.#deps = deps;
    this.body = new OutgoingBody(writer, id, () => undefined);
    this.#taken = new TakenBytes(writer, id);
    this.cancel = () => {
      if (this.#end !== undefined && this.#held.length === 0) return;
      if (this.#end === undefined) writer.write({ type: FRAME.abort, id });
      this.#held = [];
      this.#isPaused = false;
      this.lose(true);
    };
  }

  /** Sends the request no further, and takes no more of its response. */
  readonly cancel: () => void;

  respond(payload: Buffer, isLast: boolean): void {
    const [head, body] = splitHead(payload);
    const [status, headers, length] = head as ResponseHead;
    if (status === MISDIRECTED_STATUS) return this.lose(false);
    this.#hasResponse = true;
    this.status = status;
    this.headers = headers;
    if (length >= 0) this.length = length;
    if (body.length > 0) this.#held.push(body);
    if (isLast) this.#finish("complete");
    this.#deps.resolve(this);
  }

  take(piece: Buffer, isLast: boolean): void {
    if (piece.length > 0) this.#held.push(piece);
    if (isLast) this.#finish("complete");
    this.#deliver();
  }

  /** Called if no (further) part of the response will come. `wasSent`: whether the process may have carried the request out. */
  lose(wasSent: boolean): void {
    if (this.#end === undefined) this.#finish("broken");
    if (this.#hasResponse) return this.#deliver();
    this.#deps.reject(this.#deps.lost(wasSent));
  }

  get whole(): Buffer | undefined {
    return this.#end === "complete" && this.#held.length === 1 ? this.#held[0] : undefined;
  }

  read(reader: PeerReader): void {
    this.#reader = reader;
    this.#deliver();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#taken.add(0);
    this.#deliver();
  }

  #finish(end: "complete" | "broken"): void {
    this.#end = end;
    this.body.stop();
    this.#deps.onEnd();
  }

  #deliver(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    while (!this.#isPaused && this.#held.length > 0) {
      const piece = this.#held.shift() as Buffer;
      // Set first, because the reader may call `resume` at once.
      this.#isPaused = true;
      if (reader.piece(piece)) this.#isPaused = false;
      if (this.#end === undefined) this.#taken.add(piece.length, this.#isPaused);
    }
    if (this.#isPaused || this.#end === undefined) return;
    this.#reader = undefined;
    if (this.#end === "complete") reader.end();
    else reader.broken();
  }
}
