import type { ByteStream } from "../ports/transport.ts";
import { MAX_UNSENT_BYTES } from "./transport-limits.ts";
import type { UwsResponse } from "./uws-raw.ts";

/** Bytes. The size of the first write that tests whether the client has caught up. */
const PROBE_BYTES = 512;

const nothing = () => undefined;

/**
 * A response that is sent in chunks. This class works around three properties of uWebSockets.js:
 * - uWebSockets.js buffers data that the kernel does not accept. Once a listener is set with `onWritable`, the buffer is sent only when
 *   more data is written or the response is uncorked.
 * - The listener is called when the kernel can accept data, not when the buffer is empty. Only the result of the next write shows whether
 *   the buffer is empty.
 * - Without the listener, a timer closes a stream that was slow once, even if it was fast afterwards.
 */
export class UwsStream implements ByteStream {
  over = false;
  readonly #raw: UwsResponse;
  #onDrain: () => void = nothing;
  /** True from when backpressure was reported until the client has caught up. */
  #blocked = false;
  /** True if the kernel can accept data, but uWebSockets.js may still have buffered data. */
  #unsure = false;
  /** Data that was accepted but not yet passed to uWebSockets.js. */
  #buffered: Uint8Array | undefined;
  #piece: Uint8Array | string = "";
  #taken = true;

  constructor(raw: UwsResponse) {
    this.#raw = raw;
  }

  start(head: () => void, first: Uint8Array | string): void {
    this.#raw.onWritable(() => this.#writable());
    this.#raw.cork(() => {
      head();
      this.#taken = this.#raw.write(first);
    });
    this.#blocked = !this.#taken;
  }

  write(piece: Uint8Array | string): boolean {
    if (this.over) return false;
    if (piece.length === 0) return !this.#blocked;
    if (this.#blocked) {
      this.#hold(piece);
      return false;
    }
    const taken = this.#unsure ? this.#probe(bytes(piece)) : this.#put(piece);
    this.#blocked = !taken;
    return taken;
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  end(piece?: Uint8Array | string): void {
    if (this.over) return;
    if (this.#buffered !== undefined && piece !== undefined) this.#hold(piece);
    if (this.over) return;
    this.over = true;
    const last = this.#buffered ?? piece;
    this.#raw.cork(() => this.#raw.end(last));
  }

  close(): void {
    if (this.over) return;
    this.over = true;
    this.#raw.close();
  }

  /** Ends the stream without a call to uWebSockets.js, because the response has ended or the client has disconnected. */
  gone(): void {
    this.over = true;
    this.#buffered = undefined;
  }

  #writable(): true {
    if (this.over) return true;
    const buffered = this.#buffered;
    if (buffered !== undefined) {
      this.#buffered = undefined;
      if (!this.#probe(buffered)) return true;
    } else {
      // An empty cork makes uWebSockets.js send its buffer, but does not report whether all of the buffer was sent.
      this.#raw.cork(nothing);
      this.#unsure = true;
    }
    if (this.#blocked) {
      this.#blocked = false;
      this.#onDrain();
    }
    return true;
  }

  /**
   * Writes the first {@link PROBE_BYTES} of a piece as a test. If uWebSockets.js still has buffered data, the rest is kept in this class,
   * because writing it would only make that buffer larger.
   */
  #probe(piece: Uint8Array): boolean {
    this.#unsure = false;
    if (piece.length <= PROBE_BYTES) return this.#put(piece);
    const taken = this.#put(piece.subarray(0, PROBE_BYTES));
    const rest = piece.subarray(PROBE_BYTES);
    if (taken) return this.#put(rest);
    this.#buffered = rest;
    return false;
  }

  #put(piece: Uint8Array | string): boolean {
    this.#piece = piece;
    this.#raw.cork(this.#write);
    this.#piece = "";
    return this.#taken;
  }

  readonly #write = (): void => {
    this.#taken = this.#raw.write(this.#piece);
  };

  #hold(piece: Uint8Array | string): void {
    const more = bytes(piece);
    const buffered = this.#buffered === undefined ? more : Buffer.concat([this.#buffered, more]);
    this.#buffered = buffered;
    if (buffered.length > MAX_UNSENT_BYTES) this.close();
  }
}

const bytes = (piece: Uint8Array | string): Uint8Array =>
  typeof piece === "string" ? Buffer.from(piece) : piece;
