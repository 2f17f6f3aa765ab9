import type { Duplex } from "node:stream";

/**
 * The protocol between two processes of a server. All requests to a process share one connection, as in HTTP/2, so that the requests of one
 * turn of the event loop are sent in one write: with a connection for each request, system calls and encryption took a third of the CPU of a
 * forwarding process (2026-11-28). A connection becomes one of this protocol by an HTTP upgrade.
 *
 * A frame is the length of its payload (4 bytes), its type (1 byte), the id of its request (4 bytes) and the payload.
 */
export const PEER_PROTOCOL = "heddle-peer";

/** The types of frames. */
export const FRAME = {
  /** A request: the length of its head (4 bytes), its head as JSON ({@link RequestHead}), and the first part of its body. */
  request: 1,
  /** A response, in the same form ({@link ResponseHead}). */
  response: 2,
  /** A further part of a body. */
  data: 3,
  /** Permits the other side to send as many more bytes of a body as the payload says (4 bytes). */
  credit: 4,
  /** From the client: the request is cancelled. From the server: the response is broken off. */
  abort: 5,
  /** The server accepts no more requests. The id is that of the last request that it has accepted. */
  goAway: 6,
  ping: 7,
  pong: 8,
} as const;

/** Added to the type of a frame that ends the body of its request or its response. */
const LAST = 0x80;
const HEADER_BYTES = 9;
const CREDIT_BYTES = 4;

export type RequestHead = readonly [
  method: string,
  path: string,
  headers: { readonly [name: string]: string | readonly string[] },
  /** The length of the body in bytes. */
  length: number,
];

/** `length`: the length of the body in bytes; -1 if it is not known yet. */
export type ResponseHead = readonly [
  status: number,
  headers: { readonly [name: string]: string | readonly string[] },
  length: number,
];

/** Bytes. A body longer than this is sent in several frames, between which other frames can be sent. */
const MAX_DATA_BYTES = 64 * 1024;
/** The number of bytes of one body that may be on their way, sent and not yet taken by the receiver. */
export const WINDOW_BYTES = 128 * 1024;
/** The most bytes of a frame. A longer frame means that the other side does not speak this protocol. */
const MAX_FRAME_BYTES = 1024 * 1024;
/** Frames are collected until they have so many bytes, if they are not sent earlier. */
const MAX_COLLECTED_BYTES = 32 * 1024;
/** If more bytes than this are unsent, no further parts of bodies are sent until the other process has caught up. */
const MAX_UNSENT_FRAME_BYTES = 2 * WINDOW_BYTES;
/** A part of a body of at least so many bytes is sent without being copied. */
const MIN_UNCOPIED_BYTES = 8 * 1024;

/** The bytes of one frame. `head` is only for a request or a response. */
interface Frame {
  readonly type: number;
  readonly id: number;
  readonly head?: string | undefined;
  readonly body?: Uint8Array | undefined;
  readonly isLast?: boolean;
}

/** Collects frames, and sends them in one write. */
export class FrameWriter {
  readonly #socket: Duplex;
  readonly #defer: (send: () => void) => void;
  /** Frames are encoded from {@link #from} to {@link #to}. What was written before may still be on its way, and is not overwritten. */
  #buffer = Buffer.allocUnsafeSlow(2 * MAX_COLLECTED_BYTES);
  #from = 0;
  #to = 0;
  #isScheduled = false;
  #isReady = true;
  readonly #blocked = new Set<() => void>();

  /** `defer`: calls `send` later. Frames that are written in the meantime are sent together. */
  constructor(socket: Duplex, defer: (send: () => void) => void) {
    this.#socket = socket;
    this.#defer = defer;
    socket.on("drain", () => {
      this.#isReady = true;
      const blocked = [...this.#blocked];
      this.#blocked.clear();
      for (const listener of blocked) listener();
    });
  }

  /** False while the other process does not keep up with all that is sent. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Calls `listener` once, when the other process has caught up. */
  onReady(listener: () => void): void {
    this.#blocked.add(listener);
  }

  offReady(listener: () => void): void {
    this.#blocked.delete(listener);
  }

  write({ type, id, head, body, isLast = false }: Frame): void {
    const headBytes = head === undefined ? 0 : 4 + Buffer.byteLength(head);
    const bodyBytes = body?.length ?? 0;
    const isCopied = bodyBytes < MIN_UNCOPIED_BYTES;
    const needed = HEADER_BYTES + headBytes + (isCopied ? bodyBytes : 0);
    if (this.#to + needed > this.#buffer.length) {
      this.flush();
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(needed, 2 * MAX_COLLECTED_BYTES));
      this.#from = this.#to = 0;
    }
    const buffer = this.#buffer;
    let at = buffer.writeUInt32BE(headBytes + bodyBytes, this.#to);
    at = buffer.writeUInt8(isLast ? type | LAST : type, at);
    at = buffer.writeUInt32BE(id, at);
    if (head !== undefined) {
      at = buffer.writeUInt32BE(headBytes - 4, at);
      at += buffer.write(head, at);
    }
    if (isCopied && body !== undefined) {
      buffer.set(body, at);
      at += bodyBytes;
    }
    this.#to = at;
    if (!isCopied) {
      this.flush();
      this.#send(body as Uint8Array);
    } else if (this.#to - this.#from >= MAX_COLLECTED_BYTES) this.flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      this.#defer(this.#flushDeferred);
    }
  }

  /** Permits the other side to send `bytes` more bytes of the body of a request or a response. */
  credit(id: number, bytes: number): void {
    const body = Buffer.allocUnsafe(CREDIT_BYTES);
    body.writeUInt32BE(bytes);
    this.write({ type: FRAME.credit, id, body });
  }

  readonly #flushDeferred = (): void => {
    this.#isScheduled = false;
    this.flush();
  };

  /** Sends the frames that have been collected. */
  flush(): void {
    if (this.#from === this.#to) return;
    const bytes = this.#buffer.subarray(this.#from, this.#to);
    this.#from = this.#to;
    this.#send(bytes);
  }

  #send(bytes: Uint8Array): void {
    const socket = this.#socket;
    if (!socket.writable) return;
    socket.write(bytes);
    if (socket.writableLength > MAX_UNSENT_FRAME_BYTES) this.#isReady = false;
  }
}

/** Splits what arrives on a connection into frames. */
export class FrameReader {
  /** The bytes of a frame that has not arrived completely. */
  #parts: Buffer[] = [];
  #size = 0;
  /** The number of bytes that the incomplete frame has, if that is known; otherwise those of its header. */
  #needed = HEADER_BYTES;

  /**
   * Calls `take` for each complete frame. `body` is a part of `bytes` unless the frame arrived in several pieces. Returns false if the bytes
   * are no frames.
   */
  read(bytes: Buffer, take: (type: number, id: number, body: Buffer, isLast: boolean) => void): boolean {
    let input = bytes;
    if (this.#size > 0) {
      this.#parts.push(bytes);
      this.#size += bytes.length;
      if (this.#size < this.#needed) return true;
      input = Buffer.concat(this.#parts, this.#size);
      this.#parts = [];
      this.#size = 0;
    }
    let at = 0;
    while (input.length - at >= HEADER_BYTES) {
      const length = input.readUInt32BE(at);
      if (length > MAX_FRAME_BYTES) return false;
      const end = at + HEADER_BYTES + length;
      if (end > input.length) {
        this.#keep(input.subarray(at), HEADER_BYTES + length);
        return true;
      }
      const type = input[at + 4] as number;
      take(type & ~LAST, input.readUInt32BE(at + 5), input.subarray(at + HEADER_BYTES, end), type >= LAST);
      at = end;
    }
    if (at < input.length) this.#keep(input.subarray(at), HEADER_BYTES);
    return true;
  }

  #keep(rest: Buffer, needed: number): void {
    this.#parts = [rest];
    this.#size = rest.length;
    this.#needed = needed;
  }
}

/** The head of a request or a response, and the first part of its body. */
export function splitHead(payload: Buffer): readonly [head: unknown, body: Buffer] {
  const end = 4 + payload.readUInt32BE(0);
  return [JSON.parse(payload.toString("utf8", 4, end)), payload.subarray(end)];
}

/** Sends the body of one request or response, as fast as the other side takes it. */
export class OutgoingBody {
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #onDone: () => void;
  #window = WINDOW_BYTES;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #hasEnded = false;
  #isDone = false;
  /** True from when a caller was told to wait until {@link onDrain} is called. */
  #isBlocked = false;
  readonly #continue = (): void => this.#sendPending();
  /** Called when all is sent that was written, if {@link write} has returned false before. */
  onDrain: (() => void) | undefined;

  /** `onDone`: called when the body has been sent completely. */
  constructor(writer: FrameWriter, id: number, onDone: () => void) {
    this.#writer = writer;
    this.#id = id;
    this.#onDone = onDone;
  }

  /** The number of bytes that were written and could not be sent yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Sends the frame with the head, and the first part of the body. `isLast`: `first` is the whole body. */
  start(type: number, head: string, first: Uint8Array | undefined, isLast: boolean): boolean {
    const isWhole = first === undefined || (first.length <= MAX_DATA_BYTES && this.#writer.isReady);
    const frame = { type, id: this.#id, head };
    if (isWhole) {
      this.#window -= first?.length ?? 0;
      this.#writer.write({ ...frame, body: first, isLast });
      if (isLast) this.#done();
      return this.#isSending();
    }
    this.#writer.write(frame);
    this.#hasEnded = isLast;
    return this.write(first);
  }

  /** Sends a part of the body. Returns false if no more should be written until {@link onDrain} is called. */
  write(piece: Uint8Array): boolean {
    if (this.#isDone) return false;
    if (piece.length > 0) {
      this.#pending.push(piece);
      this.#pendingBytes += piece.length;
    }
    this.#sendPending();
    return this.#isSending();
  }

  end(piece?: Uint8Array): void {
    if (this.#isDone) return;
    this.#hasEnded = true;
    if (piece !== undefined && piece.length > 0) {
      this.#pending.push(piece);
      this.#pendingBytes += piece.length;
    }
    this.#sendPending();
  }

  /** Called when the other side has taken `bytes` bytes. */
  credit(bytes: number): void {
    this.#window += bytes;
    this.#sendPending();
  }

  /** Sends nothing more. */
  stop(): void {
    this.#isDone = true;
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#writer.offReady(this.#continue);
  }

  #isSending(): boolean {
    const isSending = this.#pending.length === 0 && this.#window > 0 && this.#writer.isReady;
    this.#isBlocked = !isSending;
    if (!this.#writer.isReady && !this.#isDone) this.#writer.onReady(this.#continue);
    return isSending;
  }

  #sendPending(): void {
    if (this.#isDone) return;
    const pending = this.#pending;
    while (pending.length > 0 && this.#window > 0 && this.#writer.isReady) {
      const next = pending[0] as Uint8Array;
      const length = Math.min(next.length, this.#window, MAX_DATA_BYTES);
      const isPiece = length === next.length;
      if (isPiece) pending.shift();
      else pending[0] = next.subarray(length);
      this.#pendingBytes -= length;
      this.#window -= length;
      const isLast = this.#hasEnded && pending.length === 0;
      const body = isPiece ? next : next.subarray(0, length);
      this.#writer.write({ type: FRAME.data, id: this.#id, body, isLast });
      if (isLast) return this.#done();
    }
    if (pending.length > 0) {
      if (!this.#writer.isReady) this.#writer.onReady(this.#continue);
      return;
    }
    if (this.#hasEnded) {
      this.#writer.write({ type: FRAME.data, id: this.#id, isLast: true });
      return this.#done();
    }
    if (!this.#isBlocked || this.#window <= 0) return;
    if (!this.#writer.isReady) return this.#writer.onReady(this.#continue);
    this.#isBlocked = false;
    this.onDrain?.();
  }

  #done(): void {
    this.stop();
    this.#onDone();
  }
}

/** Tells the sender of a body how much of it has been taken. */
export class TakenBytes {
  readonly #writer: FrameWriter;
  readonly #id: number;
  #bytes = 0;

  constructor(writer: FrameWriter, id: number) {
    this.#writer = writer;
    this.#id = id;
  }

  /** Adds bytes that were taken. `isBlocked`: no more can be taken at the moment. */
  add(bytes: number, isBlocked = false): void {
    this.#bytes += bytes;
    if (isBlocked || this.#bytes < WINDOW_BYTES / 2) return;
    this.#writer.credit(this.#id, this.#bytes);
    this.#bytes = 0;
  }
}
