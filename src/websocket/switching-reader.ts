import type { Eventually } from "../ports/eventually.ts";
import type { NoEventsReason, Reader } from "../stream/run-reader.ts";
import type { ChunkSlice } from "../stream/rendering.ts";

/** A reader whose source can be replaced; it waits until it has the first one. */
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

  /** Counts the switches: slices that were read before the last one are dropped. */
  get turn(): number {
    return this.#turn;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Pauses until the next `switch`. */
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

  next(): Eventually<ChunkSlice | NoEventsReason> {
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
