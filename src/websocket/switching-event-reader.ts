import type { Eventually } from "../ports/eventually.ts";
import type { NoEventsReason, Reader } from "../stream/run-reader.ts";
import type { ChunkSlice } from "../stream/rendering.ts";

/** A reader whose source can be replaced. While it has no source, reads wait. */
export class SwitchingEventReader implements Reader {
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

  /**
   * A number that increases each time the source is closed or replaced. A slice that was read before the latest increase MUST be dropped.
   */
  get turn(): number {
    return this.#turn;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Closes the source. Reads then wait until the next `switch`. */
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
