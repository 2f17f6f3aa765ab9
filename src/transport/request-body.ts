import { ServiceError } from "../model/errors.ts";
import type { BodyMemory } from "./body-memory.ts";

/** Bytes of a body that count for nothing: small requests are served also while large ones fill the memory for bodies. */
const SMALL = 64 * 1024;

const EMPTY = new Uint8Array(0);

/** Gathers a request's body up to a limit, and hands it over once: before or after all of it has come. */
export class Body {
  readonly #limit: number;
  readonly #memory: BodyMemory;
  #parts: Uint8Array[] = [];
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

  /** `announced`: the length that the head gave; -1 where it gave none. */
  constructor(limit: number, memory: BodyMemory, announced: number, expected: boolean) {
    this.#limit = limit;
    this.#memory = memory;
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

  /** Takes a piece that nobody else will change. */
  push(piece: Uint8Array): void {
    this.#size += piece.length;
    if (this.#isDropped || piece.length === 0) return;
    if (this.#size > this.#limit) this.#fail(this.#tooLarge());
    else if (this.#count()) this.#parts.push(piece);
  }

  /** Counts bytes of a piece that is not kept. */
  skip(bytes: number): void {
    this.#size += bytes;
  }

  finish(): void {
    this.#complete = true;
    if (this.#error === undefined && this.#waiter !== undefined) {
      const { resolve } = this.#waiter;
      this.#waiter = undefined;
      if (this.#size <= SMALL) resolve(this.#take());
      else this.#memory.inTurn(() => resolve(this.#take()));
    }
  }

  /** The peer went away. */
  cut(): void {
    if (!this.#complete && this.#error === undefined) {
      this.#fail(new ServiceError("body.malformed", "The body was broken off"));
    }
  }

  /** Its request has been answered: nobody will read it. */
  drop(): void {
    this.#isDropped = true;
    this.#parts = [];
    this.#release();
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
    const parts = this.#parts;
    this.#parts = [];
    this.#release();
    if (parts.length === 0) return EMPTY;
    return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  }

  /** False: there is no memory for it, and it is refused. */
  #count(): boolean {
    const size = this.#size;
    if (size <= SMALL || size === this.#counted) return true;
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
