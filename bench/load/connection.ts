import { connect, type Socket } from "node:net";

/**
 * Receives one response. The `buffer` of `body` is reused for the next read, so an implementation copies the bytes
 * that it keeps.
 */
export interface Receiver {
  head(status: number, head: string): void;
  body(buffer: Buffer, from: number, to: number): void;
  end(): void;
  fail(reason: string): void;
}

const HEAD = 0;
const LENGTH = 1;
const CHUNK_SIZE = 2;
const CHUNK_DATA = 3;
const CHUNK_END = 4;
const TRAILER = 5;

const LF = 10;
const READ = 64 * 1024;
/** The longest response head that is accepted. Heads are far shorter, so a longer one means a broken server. */
const MAX_HEAD_BYTES = 64 * 1024;

/**
 * A keep-alive HTTP/1.1 connection that carries one request at a time. To use little CPU, it reads into a reused
 * buffer and parses only the framing.
 */
export class Connection {
  readonly #socket: Socket;
  #receiver: Receiver | undefined;
  #state = HEAD;
  /** Bytes of the body, or of the current chunk, that have not arrived yet. */
  #left = 0;
  /** The bytes received so far of a response head or of a line with a chunk size that is still incomplete. */
  #partial: Buffer | undefined;
  closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /**
   * Allocates a read buffer. Many connections may share it, because each read is processed before the next one begins.
   */
  static buffer(): Buffer {
    return Buffer.alloc(READ);
  }

  static open(host: string, port: number, buffer: Buffer): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({
        host,
        port,
        noDelay: true,
        onread: {
          buffer,
          callback: (count, filled) => {
            made.#read(filled as Buffer, count);
            return true;
          },
        },
      });
      const made: Connection = new Connection(socket);
      socket.once("connect", () => resolve(made));
      socket.on("error", (error) => {
        reject(error);
        made.#fail(error.message);
      });
      socket.on("close", () => made.#fail("closed"));
    });
  }

  /** Sends a request, head and body in one buffer. MUST NOT be called before the previous response has ended. */
  send(request: Buffer, receiver: Receiver): void {
    if (this.closed) {
      receiver.fail("closed");
      return;
    }
    this.#receiver = receiver;
    this.#state = HEAD;
    this.#socket.write(request);
  }

  close(): void {
    this.closed = true;
    this.#receiver = undefined;
    this.#socket.destroy();
  }

  #fail(reason: string): void {
    this.closed = true;
    const receiver = this.#receiver;
    this.#receiver = undefined;
    receiver?.fail(reason);
  }

  #read(filled: Buffer, count: number): void {
    let buffer = filled;
    let end = count;
    if (this.#partial !== undefined) {
      buffer = Buffer.concat([this.#partial, filled.subarray(0, count)]);
      end = buffer.length;
      this.#partial = undefined;
    }
    let at = 0;
    while (at < end && this.#receiver !== undefined) {
      const next = this.#step(buffer, at, end);
      if (next < 0) {
        if (end - at > MAX_HEAD_BYTES) {
          this.#socket.destroy();
          this.#fail("endless head");
          return;
        }
        // Copied, because the next read overwrites the buffer.
        this.#partial = Buffer.from(buffer.subarray(at, end));
        return;
      }
      at = next;
    }
  }

  /**
   * Processes the next element of the framing: a head, a chunk size, or bytes of a body. Returns the position after
   * it, or -1 if more bytes are needed.
   */
  #step(buffer: Buffer, at: number, end: number): number {
    switch (this.#state) {
      case HEAD:
        return this.#head(buffer, at, end);
      case LENGTH: {
        const to = Math.min(end, at + this.#left);
        this.#left -= to - at;
        this.#receiver?.body(buffer, at, to);
        if (this.#left === 0) this.#done();
        return to;
      }
      case CHUNK_SIZE: {
        const line = buffer.indexOf(LF, at);
        if (line < 0 || line >= end) return -1;
        this.#left = chunkSize(buffer, at, line);
        if (Number.isNaN(this.#left)) {
          this.#socket.destroy();
          this.#fail("bad chunk size");
          return end;
        }
        this.#state = this.#left === 0 ? TRAILER : CHUNK_DATA;
        return line + 1;
      }
      case CHUNK_DATA: {
        const to = Math.min(end, at + this.#left);
        this.#left -= to - at;
        this.#receiver?.body(buffer, at, to);
        if (this.#left === 0) {
          this.#left = 2;
          this.#state = CHUNK_END;
        }
        return to;
      }
      case CHUNK_END: {
        const to = Math.min(end, at + this.#left);
        this.#left -= to - at;
        if (this.#left === 0) this.#state = CHUNK_SIZE;
        return to;
      }
      default: {
        const line = buffer.indexOf(LF, at);
        if (line < 0 || line >= end) return -1;
        if (line - at <= 1) this.#done();
        return line + 1;
      }
    }
  }

  #head(buffer: Buffer, at: number, end: number): number {
    const close = buffer.indexOf("\r\n\r\n", at, "latin1");
    if (close < 0 || close + 4 > end) return -1;
    const head = buffer.toString("latin1", at, close);
    const status = Number(head.slice(9, 12));
    this.#receiver?.head(status, head);
    const framing = framingOf(head);
    if (framing === "chunked") {
      this.#state = CHUNK_SIZE;
    } else {
      this.#left = framing;
      this.#state = LENGTH;
      if (framing === 0 || status === 204) this.#done();
    }
    return close + 4;
  }

  #done(): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.#state = HEAD;
    receiver?.end();
  }
}

/**
 * The length of the body in bytes, or `chunked`. A response with neither header has no body: on keep-alive
 * connections, the end of the connection cannot mark the end of a body.
 */
function framingOf(head: string): number | "chunked" {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head);
  if (length !== null) return Number(length[1]);
  return /\r\ntransfer-encoding: *chunked/i.test(head) ? "chunked" : 0;
}

function chunkSize(buffer: Buffer, from: number, to: number): number {
  let size = 0;
  let digits = 0;
  for (let i = from; i < to; i++) {
    const byte = buffer[i] as number;
    const digit =
      byte >= 48 && byte <= 57
        ? byte - 48
        : byte >= 97 && byte <= 102
          ? byte - 87
          : byte >= 65 && byte <= 70
            ? byte - 55
            : -1;
    if (digit < 0) break;
    size = size * 16 + digit;
    digits++;
  }
  return digits === 0 ? Number.NaN : size;
}
