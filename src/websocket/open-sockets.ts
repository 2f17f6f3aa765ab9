import type { Socket } from "../ports/transport.ts";

/** Counts the WebSockets that are open. */
export class Sockets {
  #open = 0;

  get open(): number {
    return this.#open;
  }

  /** The same socket, which counts until it is closed. */
  counted(socket: Socket): Socket {
    this.#open++;
    return new Counted(socket, () => void this.#open--);
  }
}

/** A socket tells one listener of its end: this is the one, and tells the other. */
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
