import { sseEvent } from "../../codec/sse.ts";
import type { RunRecord } from "../../model/run.ts";
import { andThen, type Eventually } from "../../ports/eventually.ts";
import type { ThreadReader } from "../thread-reader.ts";
import type { ChunkSlice } from "../rendering.ts";
import type { ProtocolEvent } from "./protocol-event.ts";
import { Translator } from "./translator.ts";

/** Renders segments as protocol events, for a pump that reads `reader`, which has to return whole runs. */
export function protocolOf(
  reader: ThreadReader,
): (segment: ChunkSlice) => Eventually<readonly ProtocolEvent[]> {
  let of: RunRecord | undefined;
  let translator: Translator | undefined;
  return (segment) => {
    const { run } = reader;
    if (run === undefined) throw new TypeError("no run is being read");
    if (translator === undefined || run !== of) translator = new Translator(run);
    of = run;
    if (segment.ended === undefined) return translator.read(segment);
    return translator.end(segment.ended.record, run.seq_base + segment.entry.chunk.first);
  };
}

/** The same as server-sent events, for the events that are `wanted`. */
export function protocolSse(
  reader: ThreadReader,
  wanted: (event: ProtocolEvent) => boolean,
): (segment: ChunkSlice) => Eventually<Uint8Array> {
  const read = protocolOf(reader);
  return (segment) =>
    andThen(read(segment), (events) => {
      let text = "";
      for (const event of events) if (wanted(event)) text += sent(event);
      return Buffer.from(text);
    });
}

const sent = ({ id, method, text }: ProtocolEvent): string => sseEvent(method, text, id);
