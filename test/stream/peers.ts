import type { ByteStream, Socket } from "../../src/ports/transport.ts";

/** A client of a stream that takes `room` bytes, and then nothing until it drains. */
export class Peer implements ByteStream {
  readonly writes: string[] = [];
  /** Bytes of all writes: cheaper to ask for, again and again, than the text. */
  received = 0;
  room: number;
  state: "open" | "ended" | "closed" = "open";
  #drain: () => void = () => undefined;

  constructor(room = Number.POSITIVE_INFINITY) {
    this.room = room;
  }

  get text(): string {
    return this.writes.join("");
  }

  write(piece: Uint8Array | string): boolean {
    if (this.state !== "open") return true;
    if (this.room <= 0) throw new TypeError("written to while the peer does not keep up");
    this.writes.push(typeof piece === "string" ? piece : Buffer.from(piece).toString());
    this.room -= piece.length;
    this.received += piece.length;
    return this.room > 0;
  }

  onDrain(listener: () => void): void {
    this.#drain = listener;
  }

  drain(room: number): void {
    this.room = room;
    this.#drain();
  }

  end(): void {
    if (this.state === "open") this.state = "ended";
  }

  close(): void {
    if (this.state === "open") this.state = "closed";
  }
}

/** The client of a WebSocket that takes `room` messages, and then nothing until it drains. */
export class FakeSocket implements Socket {
  readonly messages: string[] = [];
  closed: readonly [code: number, reason: string] | undefined;
  #room: number;
  #drain: () => void = () => undefined;
  #close: () => void = () => undefined;

  constructor(room = Number.POSITIVE_INFINITY) {
    this.#room = room;
  }

  send(message: Uint8Array | string): boolean {
    if (this.closed !== undefined) return true;
    if (this.#room <= 0) throw new TypeError("sent to while the peer does not keep up");
    this.messages.push(String(message));
    return --this.#room > 0;
  }

  /** Counts batches with at least one message. */
  batches = 0;

  together(work: () => void): boolean {
    const before = this.messages.length;
    work();
    if (this.messages.length > before) this.batches++;
    return this.#room > 0;
  }

  onDrain(listener: () => void): void {
    this.#drain = listener;
  }

  drain(room: number): void {
    this.#room = room;
    this.#drain();
  }

  onMessage(listener: (message: string) => void): void {
    this.receive = listener;
  }

  /** Passes a message of the client to the server. */
  receive: (message: string) => void = () => undefined;

  onClose(listener: () => void): void {
    const earlier = this.#close;
    this.#close = () => {
      earlier();
      listener();
    };
  }

  close(code: number, reason: string): void {
    if (this.closed !== undefined) return;
    this.closed = [code, reason];
    this.#close();
  }
}
