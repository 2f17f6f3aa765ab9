import type { PlainError } from "../model/errors.ts";
import { slicesOf, type JsonText } from "./large-json.ts";

/** An SSE comment without a blank line after it: some clients take the blank line for an event without data. */
export const HEARTBEAT = ": heartbeat\n";

/** An error that is not an event of the run. It has no id, because a client cannot continue after it. */
export const sseError = (error: PlainError): string => `event: error\ndata: ${JSON.stringify(error)}\n\n`;

/** SSE events: bytes if they are short, else a {@link LargeSse}. */
export type SseOutput = Uint8Array | LargeSse;

/** Collects SSE events. The parts are joined once, which takes a third less time than appending to a string. */
export class SseBatch {
  readonly #isShared: boolean;
  readonly #parts: JsonText[] = [];
  #event = "";
  #head = "";

  /** `isShared`: the result is sent to several clients. */
  constructor(isShared: boolean) {
    this.#isShared = isShared;
  }

  /** Adds an event. `data` MUST be one line, `event` MUST have passed {@link sseEventName}. */
  put(event: string, data: JsonText, id: number | string): void {
    if (event !== this.#event) {
      this.#event = event;
      this.#head = `event: ${event}\ndata: `;
    }
    this.#parts.push(this.#head, data, `\nid: ${id}\n\n`);
  }

  done(): SseOutput {
    const parts = this.#parts;
    if (parts.length === 0) return NONE;
    let length = 0;
    for (const part of parts) length += part.length;
    return length < LARGE_OUTPUT_BYTES ? Buffer.from(parts.join("")) : new LargeSse(parts, this.#isShared);
  }
}

const NONE = new Uint8Array(0);
/** From this approximate number of bytes on, events are encoded only when they are sent. */
const LARGE_OUTPUT_BYTES = 256 * 1024;
/**
 * The largest number of bytes that are passed to a connection at once. It is small, because the transport copies what a slow client has not
 * read yet.
 */
const MAX_PIECE_BYTES = 64 * 1024;

/**
 * SSE events that are encoded only when they are sent. Until then, they take no more memory than the values that the
 * events show, even if a client does not read.
 */
export class LargeSse {
  readonly #parts: readonly JsonText[];
  /** The pieces that are encoded so far, for all clients that get this output; undefined if the output is for one client only. */
  readonly #written: Uint8Array[] | undefined;
  readonly #rest: Generator<Uint8Array>;

  constructor(parts: readonly JsonText[], isShared: boolean) {
    this.#parts = parts;
    this.#written = isShared ? [] : undefined;
    this.#rest = this.#write();
  }

  /** The encoded bytes. If the output is not shared, they can be read only once. */
  *pieces(): Generator<Uint8Array> {
    const written = this.#written;
    if (written === undefined) return yield* this.#rest;
    for (let i = 0; ; i++) {
      if (i === written.length) {
        const step = this.#rest.next();
        if (step.done === true) return;
        written.push(step.value);
      }
      yield written[i] as Uint8Array;
    }
  }

  *#write(): Generator<Uint8Array> {
    let text = "";
    for (const part of this.#parts) {
      for (const piece of typeof part === "string" ? slicesOf(part) : part.pieces()) {
        if (text.length + piece.length > MAX_PIECE_BYTES) {
          yield* bytesOf(text);
          text = "";
        }
        text += piece;
      }
    }
    yield* bytesOf(text);
  }
}

function* bytesOf(text: string): Generator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += MAX_PIECE_BYTES) yield bytes.subarray(at, at + MAX_PIECE_BYTES);
}

/**
 * Makes an event name safe for SSE. Event names may contain names of graph nodes, and a line break in them
 * would break the framing.
 */
export function sseEventName(name: string): string {
  return name.replaceAll(/[\r\n\0]/g, " ");
}
