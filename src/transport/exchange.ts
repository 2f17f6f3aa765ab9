import type { Scheduler } from "../ports/scheduler.ts";
import type { ByteStream, HttpRequest, Reply, ReplyHeaders } from "../ports/transport.ts";
import type { RequestBody } from "./request-body.ts";

/** Whether the transport is about to close: then each complete response is the last of its connection. */
export interface Draining {
  isDraining(): boolean;
  readonly scheduler: Pick<Scheduler, "soon">;
}

/** A request and its response: the common part of both transports. */
export abstract class Exchange implements HttpRequest, Reply {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  aborted = false;
  protected readonly incoming: RequestBody;
  readonly #head: HttpRequest;
  readonly #draining: Draining;
  #answered = false;
  #onAbort: (() => void) | undefined;

  constructor(head: HttpRequest, incoming: RequestBody, draining: Draining) {
    this.method = head.method;
    this.path = head.path;
    this.query = head.query;
    this.incoming = incoming;
    this.#head = head;
    this.#draining = draining;
  }

  send(status: number, headers: ReplyHeaders, body?: Uint8Array | string): void {
    if (!this.answer()) return;
    const { scheduler, isDraining } = this.#draining;
    // While a body arrives, the connection stays open: closing it could lose the response.
    const reply = () => this.reply(status, headers, body, isDraining() && this.incoming.complete);
    if (!isDraining() || this.incoming.complete) return reply();
    // A body that came together with its head has been received by the next turn.
    scheduler.soon(() => {
      if (!this.aborted) reply();
    });
  }

  /** Writes a whole response. `isLast`: no other follows on its connection, and it says so. */
  protected abstract reply(
    status: number,
    headers: ReplyHeaders,
    body: Uint8Array | string | undefined,
    isLast: boolean,
  ): void;
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

  /** Marks the request as answered. Returns false if the client has disconnected. */
  protected answer(): boolean {
    if (this.#answered) throw new TypeError("the request has been answered already");
    this.#answered = true;
    this.incoming.drop();
    return !this.aborted;
  }

  /** Called when the connection is closed. `over`: this side has closed it, so no listener is called. */
  protected gone(over: boolean): void {
    this.aborted = true;
    this.incoming.cut();
    this.incoming.drop();
    if (!over) this.#onAbort?.();
  }
}
