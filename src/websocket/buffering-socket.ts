import type { Socket } from "../ports/transport.ts";
import { TOO_MANY_COMMANDS_CLOSE } from "./close-codes.ts";

type Message = Uint8Array | string;

/** The largest number of messages that are buffered for one socket before they can be handled. */
const MAX_MESSAGES = 64;
/** The largest total length of the buffered messages: bytes of binary messages plus characters of text messages. */
const MAX_LENGTH = 1024 * 1024;

/**
 * A socket whose client is still being authenticated, or whose connection to another process is still being opened. It buffers messages until
 * a listener is registered with `onMessage`.
 */
export class BufferingSocket implements Socket {
  readonly #socket: Socket;
  #buffer: Message[] = [];
  #length = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.onMessage((message) => this.#add(message));
  }

  onMessage(listener: (message: Message) => void): void {
    const buffered = this.#buffer;
    this.#buffer = [];
    this.#socket.onMessage(listener);
    for (const message of buffered) listener(message);
  }

  /** Drops the buffered messages and all further messages that would be buffered, because no listener will be registered. */
  discard(): void {
    this.#buffer = [];
    this.#length = Number.NEGATIVE_INFINITY;
  }

  #add(message: Message): void {
    if (this.#length === Number.NEGATIVE_INFINITY) return;
    this.#length += message.length;
    if (this.#buffer.length >= MAX_MESSAGES || this.#length > MAX_LENGTH) {
      this.discard();
      return this.#socket.close(...TOO_MANY_COMMANDS_CLOSE);
    }
    this.#buffer.push(message);
  }

  send(message: Message): boolean {
    return this.#socket.send(message);
  }

  together(work: () => void): boolean {
    return this.#socket.together(work);
  }

  onDrain(listener: () => void): void {
    this.#socket.onDrain(listener);
  }

  onClose(listener: () => void): void {
    this.#socket.onClose(listener);
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }
}
