import type { Receiver } from "./connection.ts";

const LF = 10;

/** Collects a small response body as text. */
export class TextReceiver implements Receiver {
  status = 0;
  text = "";
  readonly #done: (failure: string | undefined) => void;

  constructor(done: (failure: string | undefined) => void) {
    this.#done = done;
  }

  head(status: number): void {
    this.status = status;
    this.text = "";
  }

  body(buffer: Buffer, from: number, to: number): void {
    // Latin-1 is the fastest decoding, and it is enough: the values that the bench looks for are ASCII.
    this.text += buffer.toString("latin1", from, to);
  }

  end(): void {
    this.#done(undefined);
  }

  fail(reason: string): void {
    this.#done(reason);
  }
}

/**
 * Counts the events of a `text/event-stream` response, and records when the first one arrived. It stores nothing of
 * the body.
 */
export class EventCounter implements Receiver {
  status = 0;
  bytes = 0;
  events = 0;
  firstEvent = 0;
  /**
   * Whether an `error` event was found among the first events. An `error` event whose name is split between two reads
   * is missed.
   */
  failed = false;
  #lastByte = 0;
  readonly #done: (failure: string | undefined) => void;

  constructor(done: (failure: string | undefined) => void) {
    this.#done = done;
  }

  head(status: number): void {
    this.status = status;
    this.bytes = 0;
    this.events = 0;
    this.firstEvent = 0;
    this.failed = false;
    this.#lastByte = 0;
  }

  body(buffer: Buffer, from: number, to: number): void {
    this.bytes += to - from;
    let last = this.#lastByte;
    let events = this.events;
    // To save CPU, only reads before the fourth event are searched for an `error` event; afterwards only blank lines
    // are counted.
    if (events < 4 && buffer.toString("latin1", from, to).includes("event: error")) this.failed = true;
    let at = from;
    while (at < to) {
      const line = buffer.indexOf(LF, at);
      if (line < 0 || line >= to) {
        last = buffer[to - 1] as number;
        break;
      }
      if (line > at) last = buffer[line - 1] as number;
      if (last === LF) events++;
      last = LF;
      at = line + 1;
    }
    if (events > 0 && this.events === 0) this.firstEvent = performance.now();
    this.events = events;
    this.#lastByte = last;
  }

  end(): void {
    this.#done(undefined);
  }

  fail(reason: string): void {
    this.#done(reason);
  }
}
