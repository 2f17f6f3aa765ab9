import type { Scheduler } from "../ports/scheduler.ts";
import type { Socket } from "../ports/transport.ts";
import { SocketListeners } from "./socket-listeners.ts";
import { MAX_MESSAGE_BYTES, MESSAGE_TOO_LONG } from "./transport-limits.ts";

/**
 * The methods of a uWebSockets.js WebSocket that Heddle uses. They MUST NOT be called after the socket was closed: each call then throws.
 */
export interface RawSocket {
  send(message: Uint8Array | string, isBinary?: boolean): number;
  /** Combines all messages that the callback sends into one write. Outside the callback, each message takes a separate system call. */
  cork(work: () => void): unknown;
  getBufferedAmount(): number;
  end(code?: number, reason?: string): void;
}

/** The value that `send` of uWebSockets.js returns for a message that was sent completely. */
const SENT = 1;

export class UwsSocket extends SocketListeners implements Socket {
  readonly #raw: RawSocket;
  readonly #scheduler: Scheduler;
  #open = true;
  #blocked = false;
  #due = false;

  constructor(raw: RawSocket, scheduler: Scheduler) {
    super();
    this.#raw = raw;
    this.#scheduler = scheduler;
  }

  send(message: Uint8Array | string): boolean {
    if (!this.#open) return false;
    const sent = this.#raw.send(message, typeof message !== "string") === SENT;
    if (!sent) this.#blocked = true;
    return sent;
  }

  together(work: () => void): boolean {
    if (!this.#open) return false;
    this.#raw.cork(work);
    // uWebSockets.js sends the messages when the callback has returned, so `send` never reports backpressure in the callback. Backpressure
    // is checked here, unless the socket was closed.
    if (this.#open && this.#raw.getBufferedAmount() > 0) this.#blocked = true;
    return this.#open && !this.#blocked;
  }

  close(code: number, reason: string): void {
    if (this.#open) this.#raw.end(code, reason);
  }

  // --- callbacks of uWebSockets ---

  received(message: ArrayBuffer, isBinary: boolean): void {
    if (message.byteLength > MAX_MESSAGE_BYTES) return this.close(...MESSAGE_TOO_LONG);
    // Copied, because the message is only valid during this call.
    const copy = Buffer.from(new Uint8Array(message));
    this.messageListener(isBinary ? copy : copy.toString());
  }

  /**
   * Calls the drain listener in a later turn of the event loop. If the listener were called within the callback of uWebSockets.js and sent
   * messages that cause backpressure again, uWebSockets.js would not report the next drain.
   */
  drained(): void {
    if (!this.#blocked || this.#due) return;
    this.#due = true;
    this.#scheduler.soon(this.#notify);
  }

  closed(): void {
    this.#open = false;
    this.closeListener();
  }

  readonly #notify = (): void => {
    this.#due = false;
    if (!this.#open || this.#raw.getBufferedAmount() > 0) return;
    this.#blocked = false;
    this.drainListener();
  };
}
