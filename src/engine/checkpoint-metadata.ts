import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import { checkpointMetadataOfRun } from "../graph/run-checkpoint-metadata.ts";
import type { GraphPosition } from "./graph-position.ts";

/** The metadata key that marks the checkpoints of a run if an earlier version of the graph made the state from which the run continued. */
export const GRAPH_CHANGED_KEY = "graph_changed";

/** The metadata that all checkpoints of a run in one graph have. */
export function checkpointMetadata(run: RunRecord, { ns, parents }: GraphPosition): JsonObject {
  return Object.freeze(
    ns === "" ? checkpointMetadataOfRun(run) : { ...checkpointMetadataOfRun(run), parents },
  );
}
