import type { Socket } from "../ports/transport.ts";
import { SERVER_STOPPING_CLOSE } from "./close-codes.ts";

/** The open sockets of a server. */
export class OpenSockets {
  readonly #all = new Set<Socket>();
  readonly #forwarded = new Set<Socket>();
  #counted = 0;

  /** The number of open sockets, except those of the inspector. */
  get open(): number {
    return this.#counted;
  }

  /** Adds a socket until it is closed. `isCounted`: whether it is part of {@link open}. */
  add(socket: Socket, isCounted: boolean): void {
    this.#all.add(socket);
    if (isCounted) this.#counted++;
    socket.onClose(() => {
      this.#all.delete(socket);
      this.#forwarded.delete(socket);
      if (isCounted) this.#counted--;
    });
  }

  /** Notes that another process serves this open socket. */
  setForwarded(socket: Socket): void {
    this.#forwarded.add(socket);
  }

  /** Closes the sockets that this process serves itself, because it gives its shard up. */
  closeOwn(): void {
    for (const socket of this.#all) if (!this.#forwarded.has(socket)) socket.close(...SERVER_STOPPING_CLOSE);
  }

  /**
   * Closes all sockets because the server stops, such as those whose events come from another process. Their connections would break
   * otherwise, and clients could not tell that from a failure.
   */
  closeAll(): void {
    for (const socket of this.#all) socket.close(...SERVER_STOPPING_CLOSE);
  }
}
