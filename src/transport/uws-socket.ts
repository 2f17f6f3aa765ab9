import type { Scheduler } from "../ports/scheduler.ts";
import type { Socket } from "../ports/transport.ts";
import { MAX_MESSAGE, TOO_LONG } from "./limits.ts";

/** What is used here of uWebSockets' WebSocket. It MUST NOT be touched after its close: it throws. */
export interface RawSocket {
  send(message: Uint8Array | string, isBinary?: boolean): number;
  /** Each send outside of it is a system call of its own. */
  cork(work: () => void): unknown;
  getBufferedAmount(): number;
  end(code?: number, reason?: string): void;
}

/** uWebSockets' answer to a message that went out whole. */
const SENT = 1;

const nothing = () => undefined;

export class UwsSocket implements Socket {
  readonly #raw: RawSocket;
  readonly #scheduler: Scheduler;
  #open = true;
  #blocked = false;
  #due = false;
  #onDrain: () => void = nothing;
  #onMessage: (message: Uint8Array | string) => void = nothing;
  #onClose: () => void = nothing;

  constructor(raw: RawSocket, scheduler: Scheduler) {
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
    // What was gathered goes out at the end, and no send tells of that. The peer may have been cut off meanwhile.
    if (this.#open && this.#raw.getBufferedAmount() > 0) this.#blocked = true;
    return this.#open && !this.#blocked;
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  onMessage(listener: (message: Uint8Array | string) => void): void {
    this.#onMessage = listener;
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  close(code: number, reason: string): void {
    if (this.#open) this.#raw.end(code, reason);
  }

  // --- what uWebSockets tells ---

  received(message: ArrayBuffer, isBinary: boolean): void {
    if (message.byteLength > MAX_MESSAGE) return this.close(...TOO_LONG);
    // It is emptied when this returns.
    const copy = Buffer.from(new Uint8Array(message));
    this.#onMessage(isBinary ? copy : copy.toString());
  }

  /** The listener is told in a later turn: after a send that fails within its own call, uWebSockets tells of no drain more. */
  drained(): void {
    if (!this.#blocked || this.#due) return;
    this.#due = true;
    this.#scheduler.soon(this.#tell);
  }

  closed(): void {
    this.#open = false;
    this.#onClose();
  }

  readonly #tell = (): void => {
    this.#due = false;
    if (!this.#open || this.#raw.getBufferedAmount() > 0) return;
    this.#blocked = false;
    this.#onDrain();
  };
}
