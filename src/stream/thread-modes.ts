import { sseEvent } from "../codec/sse.ts";
import type { RunRecord, StreamMode, ThreadMode } from "../model/run.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { ThreadReader } from "./thread-reader.ts";
import { type OutputFormat, render, type ChunkSlice, type StreamView, createView } from "./rendering.ts";

/**
 * Renders a thread's runs as server-sent events, with the thread's event numbers as ids, for a pump that reads
 * `reader`. With `lifecycle` the reader has to report the ends of runs.
 */
export function threadEvents(
  reader: ThreadReader,
  modes: ReadonlySet<ThreadMode>,
): (segment: ChunkSlice) => Eventually<Uint8Array> {
  let of: RunRecord | undefined;
  let view: StreamView<Uint8Array> | undefined;
  return (segment) => {
    const { run } = reader;
    if (run === undefined) throw new TypeError("no run is being read");
    if (segment.ended !== undefined) return done(run, segment);
    if (view === undefined || run !== of) {
      const { stream_mode, subgraphs } = run.kwargs;
      const own = modes.has("run_modes") ? stream_mode : [];
      const all: readonly StreamMode[] = modes.has("state_update") ? [...own, "checkpoints"] : own;
      view = createView(all, subgraphs, formatOf(run, modes, own));
    }
    of = run;
    return render(segment, view);
  };
}

function done({ run_id, seq_base }: RunRecord, { entry, ended }: ChunkSlice): Uint8Array {
  const status = ended?.record?.status ?? null;
  return Buffer.from(sseEvent("run_done", JSON.stringify({ run_id, status }), seq_base + entry.chunk.first));
}

function formatOf(
  { seq_base }: RunRecord,
  modes: ReadonlySet<ThreadMode>,
  own: readonly StreamMode[],
): OutputFormat<Uint8Array> {
  const isShown = (event: string) => {
    if (event.split("|", 1)[0] === "checkpoints") return own.includes("checkpoints");
    return modes.has("run_modes") || (event === "metadata" && modes.has("lifecycle"));
  };
  return {
    name: `sse of the thread: ${[...modes].join()}`,
    begin() {
      let text = "";
      return {
        put(id, event, data) {
          if (event === "checkpoints" && modes.has("state_update"))
            text += sseEvent("state_update", data, seq_base + id);
          if (isShown(event)) text += sseEvent(event, data, seq_base + id);
        },
        done: () => Buffer.from(text),
      };
    },
  };
}
