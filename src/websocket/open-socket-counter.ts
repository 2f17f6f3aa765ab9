import type { Socket } from "../ports/transport.ts";

export class OpenSocketCounter {
  #open = 0;

  get open(): number {
    return this.#open;
  }

  /** Counts a socket as open until it is closed. */
  add(socket: Socket): void {
    this.#open++;
    socket.onClose(() => void this.#open--);
  }
}
