import { SseBatch, type SseOutput } from "../../codec/sse.ts";
import type { RunRecord } from "../../model/run.ts";
import { andThen, type Eventually } from "../../ports/eventually.ts";
import { LARGE_OUTPUT } from "../recent-log-chunks.ts";
import { factSize } from "../fact-size.ts";
import type { ThreadReader } from "../thread-reader.ts";
import type { ChunkSlice } from "../rendering.ts";
import type { ProtocolEvent } from "./protocol-event.ts";
import { ProtocolTranslator } from "./protocol-translator.ts";

/**
 * Makes the function that renders what `reader` returns as protocol events. The reader MUST return the events of each run from the run's
 * first event on.
 */
export function createProtocolRenderer(
  reader: ThreadReader,
): (slice: ChunkSlice) => Eventually<readonly ProtocolEvent[]> {
  let of: RunRecord | undefined;
  let translator: ProtocolTranslator | undefined;
  return (slice) => {
    const { run } = reader;
    if (run === undefined) throw new TypeError("no run is being read");
    if (translator === undefined || run !== of) translator = new ProtocolTranslator(run);
    of = run;
    if (slice.ended === undefined) return translator.read(slice);
    return translator.end(slice.ended.record, run.seq_base + slice.entry.chunk.first);
  };
}

/** Like {@link createProtocolRenderer}, but renders the `wanted` events as server-sent events. */
export function createProtocolSseRenderer(
  reader: ThreadReader,
  wanted: (event: ProtocolEvent) => boolean,
): (slice: ChunkSlice) => Eventually<SseOutput> {
  const read = createProtocolRenderer(reader);
  return (slice) =>
    andThen(read(slice), (events) => {
      const text = new SseBatch(false);
      for (const event of events) if (wanted(event)) text.put(event.method, event.text, event.id);
      return text.done();
    });
}

/**
 * True if the protocol events of a slice may be large. Then memory for them is reserved before the slice is translated: a
 * {@link ProtocolTranslator} accepts each fact only once, so the events cannot be dropped and translated again.
 */
export function mayHaveLargeProtocolEvents({ entry, data }: ChunkSlice): boolean {
  // The weight of a chunk from storage is 0, so its size is estimated below.
  if (entry.weight > 0) return entry.weight > LARGE_OUTPUT;
  let size = 0;
  for (const [i, fact] of entry.chunk.facts.entries()) {
    const state =
      fact.t === "checkpoint" ? (entry.states?.get(i)?.values ?? data.snapshot(fact.id)?.state) : undefined;
    if (fact.t === "checkpoint" && !fact.input && state === undefined) return true;
    size += factSize(fact, state ?? undefined);
    if (size > LARGE_OUTPUT) return true;
  }
  return false;
}
