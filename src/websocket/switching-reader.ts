import type { Eventually } from "../ports/eventually.ts";
import type { Pause, Reader } from "../stream/run-reader.ts";
import type { Segment } from "../stream/rendering.ts";

/** A reader that can be told to read something else from now on; it waits until it is told for the first time. */
export class SwitchingReader implements Reader {
  #inner: Reader | undefined;
  #turn = 0;
  #closed = false;
  #listener: () => void = () => undefined;

  get isCut(): boolean {
    return this.#inner?.isCut ?? false;
  }

  get cursor(): number {
    return this.#inner?.cursor ?? -1;
  }

  /** Counts the switches: what was read before the last one is not to be shown. */
  get turn(): number {
    return this.#turn;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Reads nothing until it is told what. */
  hold(): void {
    this.#inner?.close();
    this.#inner = undefined;
    this.#turn++;
  }

  switch(to: Reader): void {
    this.hold();
    if (this.#closed) return to.close();
    this.#inner = to;
    to.onReady(() => this.#listener());
    this.#listener();
  }

  onReady(listener: () => void): void {
    this.#listener = listener;
  }

  next(): Eventually<Segment | Pause> {
    if (this.#closed) return "end";
    const turn = this.#turn;
    const got = this.#inner?.next() ?? "wait";
    if (!(got instanceof Promise)) return got;
    return got.then((now) => (turn === this.#turn ? now : this.next()));
  }

  rest(): void {
    this.#inner?.rest();
  }

  rewind(id: number): void {
    this.#inner?.rewind(id);
  }

  close(): void {
    this.#closed = true;
    this.#inner?.close();
  }
}
