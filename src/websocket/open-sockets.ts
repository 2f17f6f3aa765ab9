import type { Socket } from "../ports/transport.ts";

/** Counts the open WebSockets. */
export class OpenSockets {
  #open = 0;

  get open(): number {
    return this.#open;
  }

  /** Wraps a socket, and counts it until it is closed. */
  counted(socket: Socket): Socket {
    this.#open++;
    return new Counted(socket, () => void this.#open--);
  }
}

/** A socket has one close listener: the wrapper registers it, and calls the one that is set on the wrapper. */
class Counted implements Socket {
  readonly #socket: Socket;
  #onClose: () => void = () => undefined;

  constructor(socket: Socket, closed: () => void) {
    this.#socket = socket;
    socket.onClose(() => {
      closed();
      this.#onClose();
    });
  }

  send(message: Uint8Array | string): boolean {
    return this.#socket.send(message);
  }

  together(work: () => void): boolean {
    return this.#socket.together(work);
  }

  onDrain(listener: () => void): void {
    this.#socket.onDrain(listener);
  }

  onMessage(listener: (message: Uint8Array | string) => void): void {
    this.#socket.onMessage(listener);
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }
}
