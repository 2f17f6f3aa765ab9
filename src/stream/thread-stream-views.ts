import type { RunRecord, StreamMode } from "../model/run.ts";
import type { ThreadReader } from "./thread-reader.ts";
import { type OutputFormat, type StreamView, createView } from "./rendering.ts";

/** The views of a thread's runs: each run in the requested modes, or in its own. For a pump that reads `reader`. */
export function threadView<Out>(
  reader: ThreadReader,
  modes: readonly StreamMode[] | undefined,
  format: (run: RunRecord) => OutputFormat<Out>,
): () => StreamView<Out> {
  let of: RunRecord | undefined;
  let view: StreamView<Out> | undefined;
  return () => {
    const { run } = reader;
    if (run === undefined) throw new TypeError("no run is being read");
    if (view !== undefined && run === of) return view;
    of = run;
    view = createView(modes ?? run.kwargs.stream_mode, run.kwargs.subgraphs, format(run));
    return view;
  };
}
