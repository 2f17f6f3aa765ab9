import { LargeSse, type SseOutput } from "../../src/codec/sse.ts";
import { type StreamMode, streamModes } from "../../src/model/run.ts";
import type { NoEventsReason, Reader } from "../../src/stream/run-reader.ts";
import { type WebSocketFrames, webSocketFormat } from "../../src/stream/websocket-frames.ts";
import { render, type ChunkSlice, createView } from "../../src/stream/rendering.ts";

export interface Event {
  readonly id: number;
  readonly event: string;
  readonly data: unknown;
}

export function eventsOf({ messages }: WebSocketFrames): Event[] {
  return messages.map((text) => {
    const { id, event, data } = JSON.parse(String(text)) as { id: string; event: string; data: unknown };
    return { id: Number(id), event, data };
  });
}

export const textOf = (output: SseOutput): string =>
  Buffer.concat(output instanceof LargeSse ? [...output.pieces()] : [output]).toString();

/** Reads until there are no more events, and collects them. */
export class Collector {
  readonly events: Event[] = [];
  readonly reader: Reader;
  reason: NoEventsReason | undefined;
  #ready = true;
  readonly #view;

  /** `maxOutput`: characters that are rendered at a time; the rest of a slice is read again. */
  constructor(
    reader: Reader,
    modes: readonly StreamMode[] = streamModes,
    subgraphs = true,
    maxOutput?: number,
  ) {
    this.reader = reader;
    this.#view = createView(modes, subgraphs, webSocketFormat(false), { maxOutput });
    reader.onReady(() => (this.#ready = true));
  }

  get ids(): number[] {
    return this.events.map(({ id }) => id);
  }

  /** Reads at most `most` segments. A reader that has to wait waits for its signal. */
  async read(most = Number.POSITIVE_INFINITY): Promise<NoEventsReason | undefined> {
    for (let i = 0; i < most; i++) {
      if (this.reason === "wait" && !this.#ready) return this.reason;
      this.#ready = false;
      const got: ChunkSlice | NoEventsReason = await this.reader.next();
      if (typeof got === "string") return (this.reason = got);
      this.reason = undefined;
      this.events.push(...eventsOf(await render(got, this.#view)));
      if (got.memo.stoppedAt !== undefined) this.reader.rewind(got.memo.stoppedAt);
    }
    return undefined;
  }
}
