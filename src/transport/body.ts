import { ServiceError } from "../model/errors.ts";

const EMPTY = new Uint8Array(0);

/** Gathers a request's body up to a limit, and hands it over once: before or after all of it has come. */
export class Body {
  readonly #limit: number;
  #parts: Uint8Array[] = [];
  #size = 0;
  #complete: boolean;
  #error: ServiceError | undefined;
  #waiter:
    | { readonly resolve: (bytes: Uint8Array) => void; readonly reject: (cause: ServiceError) => void }
    | undefined;

  /** `announced`: the length that the head gave; -1 where it gave none. */
  constructor(limit: number, announced: number, expected: boolean) {
    this.#limit = limit;
    this.#complete = !expected;
    if (announced > limit) this.#fail(this.#tooLarge());
  }

  /** It is larger than the limit: what still comes of it is thrown away. */
  get refused(): boolean {
    return this.#error?.code === "body.too_large";
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
    if (this.#error !== undefined) return;
    if (this.#size > this.#limit) this.#fail(this.#tooLarge());
    else if (piece.length > 0) this.#parts.push(piece);
  }

  finish(): void {
    this.#complete = true;
    if (this.#error === undefined && this.#waiter !== undefined) {
      this.#waiter.resolve(this.#take());
      this.#waiter = undefined;
    }
  }

  /** The peer went away. */
  cut(): void {
    if (!this.#complete && this.#error === undefined) {
      this.#fail(new ServiceError("body.malformed", "The body was broken off"));
    }
  }

  read(): Promise<Uint8Array> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#complete) return Promise.resolve(this.#take());
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  #take(): Uint8Array {
    const parts = this.#parts;
    this.#parts = [];
    if (parts.length === 0) return EMPTY;
    return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  }

  #tooLarge(): ServiceError {
    return new ServiceError("body.too_large", `The body is larger than ${this.#limit} bytes`);
  }

  #fail(error: ServiceError): void {
    this.#error = error;
    this.#parts = [];
    this.#waiter?.reject(error);
    this.#waiter = undefined;
  }
}
