import { someKwargs } from "../fixtures/runs.ts";
import type { RunDraft } from "../../actors/thread-system-interface.ts";
import type { MultitaskStrategy, RunKwargs } from "../../src/model/run.ts";

/** A draft of a run of the graph named `graph`, as the service would make it. */
export function draftOf(
  run_id: string,
  kwargs: Partial<RunKwargs> = {},
  multitask_strategy: MultitaskStrategy = "reject",
): RunDraft {
  return {
    run_id,
    assistant_id: "a",
    graph_id: "graph",
    metadata: {},
    multitask_strategy,
    origin: "http",
    kwargs: someKwargs({ input: {}, ...kwargs }),
  };
}
