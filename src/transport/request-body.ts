import { ServiceError } from "../model/errors.ts";
import type { BodyMemory } from "./body-memory.ts";

/** Bytes of a body that count for nothing: small requests are served also while large ones fill the memory for bodies. */
const SMALL = 64 * 1024;

/** A body that has come to this part is given memory for all that its head has announced. */
const PROVEN = 8;

const EMPTY = new Uint8Array(0);

/** Gathers a request's body up to a limit, and hands it over once: before or after all of it has come. */
export class Body {
  readonly #limit: number;
  readonly #memory: BodyMemory;
  #parts: Uint8Array[] = [];
  /** The length that the head gave; -1 where it gave none. */
  readonly #announced: number;
  /** What has come of a large one whose length is known, in one piece of that length. */
  #whole: Uint8Array | undefined;
  /** It has been handed over, and is being parsed. */
  #isHandedOver = false;
  #size = 0;
  #complete: boolean;
  #error: ServiceError | undefined;
  #isDropped = false;
  /** Whom it is counted for; undefined until it is asked for. */
  #tenant: string | undefined;
  /** Bytes that are counted. */
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

  /** It was refused, or its request has been answered: what still comes of it is thrown away. */
  get isDropped(): boolean {
    return this.#isDropped;
  }

  get complete(): boolean {
    return this.#complete;
  }

  get size(): number {
    return this.#size;
  }

  /** Takes a piece. `isLent`: it is somebody else's as soon as this returns. */
  push(piece: Uint8Array, isLent = false): void {
    this.#size += piece.length;
    if (this.#isDropped || piece.length === 0) return;
    if (this.#size > this.#limit) this.#fail(this.#tooLarge());
    else if (this.#count()) this.#keep(piece, isLent);
  }

  #keep(piece: Uint8Array, isLent: boolean): void {
    const announced = this.#announced;
    // Not before some of it has come: what is announced costs its sender nothing.
    if (this.#whole === undefined && announced > SMALL && this.#size * PROVEN >= announced) {
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

  /** Counts bytes of a piece that is not kept. */
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

  /** It has been parsed, or nobody will: the next one may be. */
  done(): void {
    if (!this.#isHandedOver) return;
    this.#isHandedOver = false;
    this.#memory.done();
  }

  /** The peer went away. */
  cut(): void {
    if (!this.#complete && this.#error === undefined) {
      this.#fail(brokenOff());
    }
  }

  /** Its request has been answered: nobody will read it. */
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

  /** False: there is no memory for it, and it is refused. */
  #count(): boolean {
    if (this.#size <= SMALL) return true;
    // All that a tenant has announced at once: were each of its bodies counted as it comes, many would be let in, and few could end.
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
