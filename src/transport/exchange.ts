import type { ByteStream, HttpRequest, Reply, ReplyHeaders } from "../ports/transport.ts";
import type { RequestBody } from "./request-body.ts";

/** A request and its response. Base class of the exchanges over uWebSockets.js and over Node's HTTP server. */
export abstract class Exchange implements HttpRequest, Reply {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  aborted = false;
  protected readonly incoming: RequestBody;
  readonly #head: HttpRequest;
  #answered = false;
  #onAbort: (() => void) | undefined;

  constructor(head: HttpRequest, incoming: RequestBody) {
    this.method = head.method;
    this.path = head.path;
    this.query = head.query;
    this.incoming = incoming;
    this.#head = head;
  }

  abstract send(status: number, headers: ReplyHeaders, body?: Uint8Array | string): void;
  abstract open(status: number, headers: ReplyHeaders, first: Uint8Array | string): ByteStream;

  header(name: string): string | undefined {
    return this.#head.header(name);
  }

  headers(): Iterable<readonly [name: string, value: string]> {
    return this.#head.headers();
  }

  body(tenant?: string): Promise<Uint8Array> {
    return this.incoming.read(tenant);
  }

  bodyRead(): void {
    this.incoming.done();
  }

  onAbort(listener: () => void): void {
    this.#onAbort = listener;
  }

  /**
   * Marks the request as answered and discards its body. Returns false if the client has disconnected.
   * @throws TypeError at the second call
   */
  protected answer(): boolean {
    if (this.#answered) throw new TypeError("the request has been answered already");
    this.#answered = true;
    this.incoming.drop();
    return !this.aborted;
  }

  /**
   * Called when the connection has ended before the response was complete. `over`: this side has already ended or closed the response; the
   * abort listener is then not called.
   */
  protected gone(over: boolean): void {
    this.aborted = true;
    this.incoming.cut();
    this.incoming.drop();
    if (!over) this.#onAbort?.();
  }
}
