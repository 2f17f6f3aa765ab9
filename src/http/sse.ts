import { HEARTBEAT, LargeSse, sseError, type SseOutput } from "../codec/sse.ts";
import { runDeleted, threadDeleted, toPlainError } from "../model/errors.ts";
import { EMPTY_OBJECT } from "../model/json.ts";
import type { Eventually } from "../ports/eventually.ts";
import { STREAM_START_HEADER } from "../ports/peers.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { BudgetShare } from "../ports/time-budget.ts";
import type { ByteStream, Headers } from "../ports/transport.ts";
import { type PumpOutcome, type PumpOutput, StreamPump, type PumpOptions } from "../stream/stream-pump.ts";
import type { Reader } from "../stream/run-reader.ts";
import type { ThreadReader } from "../stream/thread-reader.ts";
import { render, type ChunkSlice, type StreamView } from "../stream/rendering.ts";
import type { TrafficCounts } from "./response-counts.ts";

export interface SseOptions extends PumpOptions {
  /** Counts of requests and streams. Its `streams` includes this stream while it is open. */
  readonly traffic: TrafficCounts;
  readonly view: StreamView<SseOutput>;
  /** Limits how much of a turn of the event loop the writing of large events takes. */
  readonly time?: BudgetShare;
  /**
   * Milliseconds between two heartbeats; 5000 by default. Clients learn the interval, and treat a much longer silence as a broken
   * connection.
   */
  readonly heartbeat?: number;
}

export const SSE_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/** The response header by which another process of this server learns after which event number the stream begins. */
export const streamStartHeaders = ({ cursor }: Pick<ThreadReader, "cursor">): Headers => ({
  [STREAM_START_HEADER]: String(cursor),
});

/** Small chunks are joined until they have this many bytes together, and are then written. */
const MIN_JOINED_BYTES = 64 * 1024;
/**
 * The largest number of bytes passed to a connection in one write. The transport copies what a slow client has not read, so the limit is
 * small.
 */
const MAX_WRITE_BYTES = 64 * 1024;
const BEAT = Buffer.from(HEARTBEAT);

/**
 * Sends a run's events as server-sent events until the run ends, the reader is closed, or the client stops reading. The caller MUST call
 * the returned function when the client disconnects (`Reply.onAbort`).
 */
export function pumpSse(reader: Reader, stream: ByteStream, options: SseOptions): () => void {
  return pumpRendered(reader, stream, (slice) => render(slice, options.view), options);
}

/** Like {@link pumpSse}, but `rendered` converts the events to server-sent events. */
export function pumpRendered(
  reader: Reader,
  stream: ByteStream,
  rendered: (slice: ChunkSlice) => Eventually<SseOutput>,
  options: Omit<SseOptions, "view">,
): () => void {
  const { scheduler, traffic, time, heartbeat = 5_000, onDone } = options;
  const outlet = new SseOutlet(stream, time, () => pump.drained());
  let cancelBeat: Cancel | undefined;
  const pump = new StreamPump(reader, rendered, outlet, {
    ...EMPTY_OBJECT,
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

class SseOutlet implements PumpOutput<SseOutput> {
  readonly #stream: ByteStream;
  readonly #time: BudgetShare | undefined;
  readonly #resume: () => void;
  #parts: Uint8Array[] = [];
  #size = 0;
  #due = false;
  /** Large outputs that are not completely written yet, oldest first. */
  readonly #unsent: Iterator<Uint8Array>[] = [];

  /** `resume` is called when the stream may continue after a pause in which other work was done. */
  constructor(stream: ByteStream, time: BudgetShare | undefined, resume: () => void) {
    this.#stream = stream;
    this.#time = time;
    this.#resume = resume;
  }

  /**
   * Marks a heartbeat as due. It is sent with the next flush, and only once however often it became due, so that a slow client does not get
   * several heartbeats at once.
   */
  beat(): void {
    this.#due = true;
  }

  put(output: SseOutput): boolean {
    if (output instanceof LargeSse) {
      if (this.#parts.length > 0) this.#unsent.push(piecesOf(this.#join()));
      this.#unsent.push(output.pieces());
      return this.flush();
    }
    if (output.length === 0) return true;
    this.#parts.push(output);
    this.#size += output.length;
    return this.#size < MIN_JOINED_BYTES || this.flush();
  }

  flush(): boolean {
    if (this.#unsent.length > 0 && !this.#writeUnsent()) return false;
    if (this.#due) {
      this.#due = false;
      this.#parts.push(BEAT);
    }
    if (this.#parts.length === 0) return true;
    const bytes = this.#join();
    if (bytes.length <= MAX_WRITE_BYTES) return this.#stream.write(bytes);
    this.#unsent.push(piecesOf(bytes));
    return this.#writeUnsent();
  }

  #join(): Uint8Array {
    const parts = this.#parts;
    this.#parts = [];
    this.#size = 0;
    return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  }

  #writeUnsent(): boolean {
    for (let first = this.#unsent[0]; first !== undefined; first = this.#unsent[0]) {
      for (let step = first.next(); step.done !== true; step = first.next()) {
        if (!this.#stream.write(step.value)) return false;
        if (this.#time?.isSpent(step.value.length) !== true) continue;
        void this.#time.next().then(this.#resume);
        return false;
      }
      this.#unsent.shift();
    }
    return true;
  }

  finish(outcome: Exclude<PumpOutcome, "left">): void {
    if (outcome === "ended") this.#stream.end();
    else if (outcome === "thread_deleted") this.#stream.end(sseError(toPlainError(threadDeleted())));
    else if (outcome === "run_deleted") this.#stream.end(sseError(toPlainError(runDeleted())));
    else this.#stream.close();
  }
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += MAX_WRITE_BYTES) yield bytes.subarray(at, at + MAX_WRITE_BYTES);
}
