import { ServiceError } from "../model/errors.ts";
import type { BodyLimits, BodyMemory } from "../ports/body-memory.ts";
import type { IncomingBody } from "../ports/transport.ts";

/**
 * The largest size of a body, in bytes, that is not counted in the memory for bodies. So small requests are served even while large bodies
 * use up that memory.
 */
const SMALL = 64 * 1024;

/** A large body is moved to one buffer of its announced length when this fraction of it (one eighth) has arrived. */
const ALLOCATION_FRACTION = 8;

const EMPTY = new Uint8Array(0);

/** Collects a request's body up to a limit. It is read once, before or after all of it has arrived. */
export class RequestBody implements IncomingBody {
  readonly #limit: number;
  readonly #memory: BodyMemory;
  #parts: Uint8Array[] = [];
  /** The length in the header `Content-Length`; -1 when there is none. */
  readonly #announced: number;
  /** The received part of a large body of known length, in a buffer of that length. */
  #whole: Uint8Array | undefined;
  /** True from the time when the body is returned for parsing until {@link done} is called. */
  #isHandedOver = false;
  #size = 0;
  #complete: boolean;
  #error: ServiceError | undefined;
  #isDropped = false;
  /** The tenant for whom the body's memory is counted; undefined until the body is read. */
  #tenant: string | undefined;
  /** The number of bytes that are counted in the memory for bodies. */
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

  /** Whether the body was refused or its request answered: further pieces are discarded. */
  get isDropped(): boolean {
    return this.#isDropped;
  }

  get complete(): boolean {
    return this.#complete;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a piece. `isLent`: true if the piece is only valid during this call, so that it has to be copied. */
  push(piece: Uint8Array, isLent = false): void {
    this.#size += piece.length;
    if (this.#isDropped || piece.length === 0) return;
    if (this.#size > this.#limit) this.#fail(this.#tooLarge());
    else if (this.#count()) this.#keep(piece, isLent);
  }

  #keep(piece: Uint8Array, isLent: boolean): void {
    const announced = this.#announced;
    // Allocates the buffer only after a part of the body has arrived, because a sender could announce a large length at no cost.
    if (this.#whole === undefined && announced > SMALL && this.#size * ALLOCATION_FRACTION >= announced) {
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

  /** Adds the bytes of a piece that the caller discards to the number of received bytes. */
  skip(bytes: number): void {
    this.#size += bytes;
  }

  finish(): void {
    this.#complete = true;
    if (this.#error === undefined && this.#waiter !== undefined) {
      const { resolve, reject } = this.#waiter;
      this.#waiter = undefined;
      if (this.#size <= SMALL) return resolve(this.#take());
      this.#memory.inTurn(this.#tenant, () => {
        this.#isHandedOver = true;
        if (!this.#isDropped) return resolve(this.#take());
        this.done();
        reject(brokenOff());
      });
    }
  }

  /** Allows the next large body to be parsed. Called when this body has been parsed or is not needed. */
  done(): void {
    if (!this.#isHandedOver) return;
    this.#isHandedOver = false;
    this.#memory.done();
  }

  /** Ends the body with an error, because the client has disconnected or the body is invalid. */
  cut(cause = brokenOff()): void {
    if (!this.#complete && this.#error === undefined) {
      this.#fail(cause);
    }
  }

  /** Discards the body. Called when the request has been answered, so that nobody will read the body. */
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
    if (this.#complete && this.#size <= SMALL) return Promise.resolve(this.#take());
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

  /** Counts the memory of the body. Returns false, and refuses the body, if there is not enough memory. */
  #count(): boolean {
    if (this.#size <= SMALL) return true;
    // Counts the announced length as soon as the tenant is known. If only the received bytes were counted, a tenant could start so many uploads
    // that none of them can be completed.
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
 * Returns a function that makes bodies for requests that do not come from one of Heddle's transports, such as a `Request` of the Fetch API. The
 * announced length of these bodies is ignored, because it cannot be trusted.
 */
export const bodyOpener =
  ({ maxBody, memory }: BodyLimits): (() => IncomingBody) =>
  () =>
    new RequestBody(maxBody, memory, -1, true);
