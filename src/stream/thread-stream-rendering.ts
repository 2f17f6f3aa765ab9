import { SseBatch, type SseOutput } from "../codec/sse.ts";
import type { RunRecord, StreamMode, RequestedThreadModes } from "../model/run.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { ThreadReader } from "./thread-reader.ts";
import { type OutputFormat, render, type ChunkSlice, type StreamView, createView } from "./rendering.ts";

/**
 * The event for the end of a run in a thread's stream. Its data is `{"run_id","status"}`; `status` is null if the run was rolled back or
 * deleted.
 */
const RUN_END = "run_done";

/** True if the client wants the events of the runs themselves. */
const showsRuns = ({ modes, runModes }: RequestedThreadModes): boolean =>
  modes.has("run_modes") || runModes.length > 0;

/** True if the client wants the ends of runs. The reader of the thread MUST report them then. */
export const showsRunEnds = (wanted: RequestedThreadModes): boolean =>
  showsRuns(wanted) || wanted.modes.has("lifecycle");

/**
 * Makes the function that renders what `reader` returns. `reader` MUST report the ends of runs if {@link showsRunEnds} returns true.
 * `formatOf` returns the output format for the events of one run; the ids of the events are the thread's event numbers.
 */
export function createThreadRenderer<Out>(
  reader: ThreadReader,
  wanted: RequestedThreadModes,
  formatOf: (run: RunRecord) => OutputFormat<Out>,
): (slice: ChunkSlice) => Eventually<Out> {
  let of: RunRecord | undefined;
  let view: StreamView<Out> | undefined;
  return (slice) => {
    const { run } = reader;
    if (run === undefined) throw new TypeError("no run is being read");
    if (slice.ended !== undefined) return runEnd(run, slice, formatOf(run));
    if (view === undefined || run !== of) view = viewOf(run, wanted, formatOf(run));
    of = run;
    return render(slice, view);
  };
}

/** The format of server-sent events for a run in the stream of its thread. */
export function threadSseFormat({ seq_base }: RunRecord): OutputFormat<SseOutput> {
  return {
    name: "sse of the thread",
    begin(isShared) {
      const text = new SseBatch(isShared);
      return {
        put: (id, event, data) => text.put(event, data, seq_base + id),
        done: () => text.done(),
      };
    },
  };
}

function runEnd<Out>({ run_id }: RunRecord, { entry, ended }: ChunkSlice, format: OutputFormat<Out>): Out {
  const status = ended?.record?.status ?? null;
  const batch = format.begin(false);
  batch.put(entry.chunk.first, RUN_END, JSON.stringify({ run_id, status }));
  return batch.done();
}

function viewOf<Out>(
  run: RunRecord,
  wanted: RequestedThreadModes,
  format: OutputFormat<Out>,
): StreamView<Out> {
  const { stream_mode } = run.kwargs;
  const { modes, runModes, showsStates } = wanted;
  const subgraphs = wanted.subgraphs === true || run.kwargs.subgraphs;
  const shown = modes.has("run_modes") ? [...stream_mode, ...runModes] : runModes;
  const hasStates = modes.has("state_update");
  // Usually `format` itself is used. Views with the same format share rendered output.
  if (showsRuns(wanted) && !hasStates) return createView(shown, subgraphs, format, { showsStates });
  const all: readonly StreamMode[] = hasStates ? [...shown, "checkpoints"] : shown;
  return createView(all, subgraphs, selecting(format, wanted, shown));
}

/** Makes a format that leaves out events that were not requested, and that shows each checkpoint of the root graph as a state update. */
function selecting<Out>(
  format: OutputFormat<Out>,
  wanted: RequestedThreadModes,
  shown: readonly StreamMode[],
): OutputFormat<Out> {
  const { modes } = wanted;
  const isShown = (event: string) => {
    if (event.split("|", 1)[0] === "checkpoints") return shown.includes("checkpoints");
    return showsRuns(wanted) || (event === "metadata" && modes.has("lifecycle"));
  };
  return {
    name: `${format.name}: ${[...modes].sort().join()} ${[...shown].sort().join()}`,
    begin(isShared) {
      const batch = format.begin(isShared);
      return {
        put(id, event, data) {
          if (event === "checkpoints" && modes.has("state_update")) batch.put(id, "state_update", data);
          if (isShown(event)) batch.put(id, event, data);
        },
        done: () => batch.done(),
      };
    },
  };
}
