import type { WebSocket } from "ws";
import type { Socket } from "../ports/transport.ts";
import { SocketListeners } from "./socket-listeners.ts";
import { MAX_MESSAGE_BYTES, MESSAGE_TOO_LONG } from "./transport-limits.ts";

/** The number of unsent bytes above which `send` reports backpressure. */
const BACKPRESSURE_BYTES = 64 * 1024;

const nothing = () => undefined;

export class NodeSocket extends SocketListeners implements Socket {
  /** Whether the client has sent anything since the last ping. */
  alive = true;
  readonly #raw: WebSocket;
  #blocked = false;

  constructor(raw: WebSocket) {
    super();
    this.#raw = raw;
    raw.on("message", (data: Buffer, isBinary) => {
      this.alive = true;
      if (data.length > MAX_MESSAGE_BYTES) return this.close(...MESSAGE_TOO_LONG);
      this.messageListener(isBinary ? data : data.toString());
    });
    raw.on("pong", () => (this.alive = true));
    // The error needs no handling here, because the event `close` always follows.
    raw.on("error", nothing);
    raw.on("close", () => this.closeListener());
  }

  send(message: Uint8Array | string): boolean {
    const raw = this.#raw;
    if (raw.readyState !== raw.OPEN) return false;
    if (raw.bufferedAmount > MAX_MESSAGE_BYTES) {
      raw.terminate();
      return false;
    }
    raw.send(message, this.#sent);
    if (raw.bufferedAmount <= BACKPRESSURE_BYTES) return true;
    this.#blocked = true;
    return false;
  }

  together(work: () => void): boolean {
    work();
    return this.#raw.readyState === this.#raw.OPEN && !this.#blocked;
  }

  close(code: number, reason: string): void {
    this.#raw.close(code, reason);
  }

  /** Pings the client. Closes the connection if the client has sent nothing since the last ping. */
  ping(): void {
    if (!this.alive) return this.#raw.terminate();
    this.alive = false;
    this.#raw.ping();
  }

  readonly #sent = (): void => {
    if (!this.#blocked || this.#raw.bufferedAmount > 0) return;
    this.#blocked = false;
    this.drainListener();
  };
}
