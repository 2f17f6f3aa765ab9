import { ServiceError } from "../model/errors.ts";
import type { BodyLimits, BodyMemory } from "../ports/body-memory.ts";
import type { IncomingBody } from "../ports/transport.ts";

/**
 * Bytes. The memory of a body up to this size is not counted, so that small requests are served even while large bodies use up the memory
 * for bodies.
 */
const MAX_UNCOUNTED_BYTES = 64 * 1024;

/** A large body is moved to one buffer of its announced length when one eighth of it has arrived. */
const ALLOCATION_FRACTION = 8;

const EMPTY = new Uint8Array(0);

/** Collects a request's body up to a limit. The body can be read only once. The read may begin before all of the body has arrived. */
export class RequestBody implements IncomingBody {
  readonly #limit: number;
  readonly #memory: BodyMemory;
  #parts: Uint8Array[] = [];
  /** The value of the header `content-length`; -1 if there is none. */
  readonly #announced: number;
  /** For a large body with a known length: a buffer of that length, filled with the bytes that have arrived. Otherwise undefined. */
  #whole: Uint8Array | undefined;
  /** True from when the reader gets a large body, to parse it, until {@link done} is called. */
  #isHandedOver = false;
  #size = 0;
  #complete: boolean;
  #error: ServiceError | undefined;
  #isDropped = false;
  /** The tenant to whom the body's memory is charged; undefined until the body is read. */
  #tenant: string | undefined;
  /** The number of bytes charged to the memory for bodies. */
  #counted = 0;
  #waiter:
    | { readonly resolve: (bytes: Uint8Array) => void; readonly reject: (cause: ServiceError) => void }
    | undefined;

  constructor(limit: number, memory: BodyMemory, announced: number, expected: boolean) {
    this.#limit = limit;
    this.#memory = memory;
    this.#announced = announced;
    this.#complete = !expected;
    if (announced > limit) this.#fail(this.#tooLarge());
  }

  /** True once the body was refused or its request has got a response. Further pieces of the body are then discarded. */
  get isDropped(): boolean {
    return this.#isDropped;
  }

  get complete(): boolean {
    return this.#complete;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a piece. `isLent`: the piece is only valid during this call, and is copied. */
  push(piece: Uint8Array, isLent = false): void {
    this.#size += piece.length;
    if (this.#isDropped || piece.length === 0) return;
    if (this.#size > this.#limit) this.#fail(this.#tooLarge());
    else if (this.#count()) this.#keep(piece, isLent);
  }

  #keep(piece: Uint8Array, isLent: boolean): void {
    const announced = this.#announced;
    // The buffer is allocated only after a part of the body has arrived, because announcing a large length costs a sender nothing.
    if (
      this.#whole === undefined &&
      announced > MAX_UNCOUNTED_BYTES &&
      this.#size * ALLOCATION_FRACTION >= announced
    ) {
      this.#whole = Buffer.allocUnsafeSlow(announced);
      let at = 0;
      for (const part of this.#parts) {
        this.#whole.set(part, at);
        at += part.length;
      }
      this.#parts = [];
    }
    if (this.#whole !== undefined) this.#whole.set(piece, this.#size - piece.length);
    else this.#parts.push(isLent ? Buffer.from(piece) : piece);
  }

  /** Adds `bytes` to the number of received bytes, for a piece that the caller discards. */
  skip(bytes: number): void {
    this.#size += bytes;
  }

  finish(): void {
    this.#complete = true;
    if (this.#error === undefined && this.#waiter !== undefined) {
      const { resolve, reject } = this.#waiter;
      this.#waiter = undefined;
      if (this.#size <= MAX_UNCOUNTED_BYTES) return resolve(this.#take());
      this.#memory.inTurn(this.#tenant, () => {
        this.#isHandedOver = true;
        if (!this.#isDropped) return resolve(this.#take());
        this.done();
        reject(brokenOff());
      });
    }
  }

  /** Allows the next large body to be parsed. Called when this body has been parsed or is not needed any more. */
  done(): void {
    if (!this.#isHandedOver) return;
    this.#isHandedOver = false;
    this.#memory.done();
  }

  /** Fails the body with an error if it has not arrived completely: the client has disconnected, or the body is invalid. */
  cut(cause = brokenOff()): void {
    if (!this.#complete && this.#error === undefined) {
      this.#fail(cause);
    }
  }

  /**
   * Discards the body. Called when nobody will read it any more: the request has got its response, the client has disconnected, or the body
   * was refused.
   */
  drop(): void {
    this.#isDropped = true;
    this.#parts = [];
    this.#whole = undefined;
    this.#release();
    this.done();
  }

  read(tenant: string | undefined): Promise<Uint8Array> {
    if (tenant !== undefined && this.#error === undefined) {
      this.#release();
      this.#tenant = tenant;
      this.#count();
    }
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#complete && this.#size <= MAX_UNCOUNTED_BYTES) return Promise.resolve(this.#take());
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      if (this.#complete) this.finish();
    });
  }

  #take(): Uint8Array {
    const [parts, whole] = [this.#parts, this.#whole];
    this.#parts = [];
    this.#whole = undefined;
    this.#release();
    if (whole !== undefined) return whole.subarray(0, this.#size);
    if (parts.length === 0) return EMPTY;
    return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  }

  /** Charges the body's memory. Refuses the body and returns false if there is not enough memory. */
  #count(): boolean {
    if (this.#size <= MAX_UNCOUNTED_BYTES) return true;
    // As soon as the tenant is known, the announced length is charged. If only the received bytes were charged, a tenant could start so
    // many uploads that none of them could be completed.
    const size = this.#tenant === undefined ? this.#size : Math.max(this.#size, this.#announced);
    if (size === this.#counted) return true;
    if (!this.#memory.take(size - this.#counted, this.#tenant)) {
      this.#fail(
        new ServiceError("server.busy", "Too many large requests arrive at the moment; try again later"),
      );
      return false;
    }
    this.#counted = size;
    return true;
  }

  #release(): void {
    if (this.#counted === 0) return;
    this.#memory.release(this.#counted, this.#tenant);
    this.#counted = 0;
  }

  #tooLarge(): ServiceError {
    return new ServiceError("body.too_large", `The body is larger than ${this.#limit} bytes`);
  }

  #fail(error: ServiceError): void {
    this.#error = error;
    this.drop();
    this.#waiter?.reject(error);
    this.#waiter = undefined;
  }
}

const brokenOff = () => new ServiceError("body.malformed", "The body was broken off");

/**
 * Returns a function that creates buffers for the bodies of requests that do not come from one of Heddle's transports, such as a `Request`
 * of the Fetch API. The announced length of these bodies is ignored, because it cannot be trusted.
 */
export const createBodyOpener =
  ({ maxBody, memory }: BodyLimits): (() => IncomingBody) =>
  () =>
    new RequestBody(maxBody, memory, -1, true);
