import { HEARTBEAT } from "../codec/sse.ts";
import { runDeleted, type ServiceError, threadDeleted, toPlainError } from "../model/errors.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { ByteStream } from "../ports/transport.ts";
import { type PumpOutcome, type PumpOutput, StreamPump, type PumpOptions } from "../stream/stream-pump.ts";
import type { Reader } from "../stream/run-reader.ts";
import { render, type ChunkSlice, type StreamView } from "../stream/rendering.ts";
import type { Traffic } from "./response-counts.ts";

export interface SseOptions extends PumpOptions {
  /** Counts open streams. */
  readonly traffic: Traffic;
  readonly view: StreamView<Uint8Array>;
  /** Milliseconds between heartbeats. Clients learn the interval and take a longer silence for a broken connection. */
  readonly heartbeat?: number;
}

export const SSE_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Bytes of small chunks that are joined into one write. */
const JOIN = 64 * 1024;
/** Bytes given to a connection at a time: the transport copies what a slow client has not taken. */
const PIECE = 64 * 1024;
const BEAT = Buffer.from(HEARTBEAT);
const NONE = new Uint8Array(0);

/**
 * Sends a run's events as server-sent events until the run ends, the log is cut off, or the client stops taking them. Call the returned
 * function when the client disconnects (`Reply.onAbort`).
 */
export function pumpSse(reader: Reader, stream: ByteStream, options: SseOptions): () => void {
  return pumpRendered(reader, stream, (segment) => render(segment, options.view), options);
}

/** Like {@link pumpSse}, with the events rendered by `rendered`. */
export function pumpRendered(
  reader: Reader,
  stream: ByteStream,
  rendered: (segment: ChunkSlice) => Eventually<Uint8Array>,
  options: Omit<SseOptions, "view">,
): () => void {
  const { scheduler, traffic, heartbeat = 5_000, onDone } = options;
  const outlet = new SseOutlet(stream);
  let cancelBeat: Cancel | undefined;
  const pump = new StreamPump(reader, rendered, outlet, {
    ...options,
    onDone(outcome) {
      cancelBeat?.();
      traffic.streams--;
      onDone?.(outcome);
    },
  });
  const beat = () => {
    cancelBeat = scheduler.after(heartbeat, beat);
    outlet.beat();
    pump.nudge();
  };
  cancelBeat = scheduler.after(heartbeat, beat);
  traffic.streams++;
  stream.onDrain(pump.drained);
  pump.start();
  return () => pump.left();
}

/** An error that is no event of a run: it has no id to continue from. */
const sseError = (cause: ServiceError): string =>
  `event: error\ndata: ${JSON.stringify(toPlainError(cause))}\n\n`;

class SseOutlet implements PumpOutput<Uint8Array> {
  readonly #stream: ByteStream;
  #parts: Uint8Array[] = [];
  #size = 0;
  #due = false;
  /** Bytes that are not written yet. */
  #unsent: Uint8Array = NONE;

  constructor(stream: ByteStream) {
    this.#stream = stream;
  }

  /** Marks a heartbeat as due. It is sent with the next flush, so that a slow client does not get one after another. */
  beat(): void {
    this.#due = true;
  }

  put(piece: Uint8Array): boolean {
    if (piece.length === 0) return true;
    this.#parts.push(piece);
    this.#size += piece.length;
    return this.#size < JOIN || this.flush();
  }

  flush(): boolean {
    if (this.#unsent.length > 0 && !this.#write(this.#unsent)) return false;
    if (this.#due) {
      this.#due = false;
      this.#parts.push(BEAT);
    }
    const parts = this.#parts;
    if (parts.length === 0) return true;
    this.#parts = [];
    this.#size = 0;
    return this.#write(parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts));
  }

  #write(bytes: Uint8Array): boolean {
    this.#unsent = NONE;
    let at = 0;
    while (bytes.length - at > PIECE) {
      if (!this.#stream.write(bytes.subarray(at, (at += PIECE)))) {
        this.#unsent = bytes.subarray(at);
        return false;
      }
    }
    return this.#stream.write(at === 0 ? bytes : bytes.subarray(at));
  }

  finish(outcome: Exclude<PumpOutcome, "left">): void {
    if (outcome === "ended") this.#stream.end();
    else if (outcome === "thread_deleted") this.#stream.end(sseError(threadDeleted()));
    else if (outcome === "run_deleted") this.#stream.end(sseError(runDeleted()));
    else this.#stream.close();
  }
}
