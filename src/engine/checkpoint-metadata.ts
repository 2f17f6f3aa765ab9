import type { PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import { taskNamespace } from "../graph/interrupts.ts";
import { checkpointMetadataOfRun } from "../graph/run-checkpoint-metadata.ts";
import type { GraphPosition } from "./graph-position.ts";

/** The metadata key that marks the checkpoints of a run if an earlier version of the graph made the state from which the run continued. */
export const GRAPH_CHANGED = "graph_changed";

/** The metadata that all checkpoints of a run in one graph have. */
export function checkpointMetadata(run: RunRecord, { ns, parents }: GraphPosition): JsonObject {
  return Object.freeze(
    ns === "" ? checkpointMetadataOfRun(run) : { ...checkpointMetadataOfRun(run), parents },
  );
}

/** The metadata of message events: the step and the node that stream the message. */
export function messageMetadata(
  { graphPosition, step }: { readonly graphPosition: GraphPosition; readonly step: number },
  { id, name, path, triggers }: PlannedTask,
): JsonObject {
  const ns = taskNamespace(graphPosition.ns, name, id);
  return {
    langgraph_step: step,
    langgraph_node: name,
    langgraph_triggers: triggers,
    langgraph_path: path,
    langgraph_checkpoint_ns: ns,
    // In subgraphs too, this is the namespace of the root graph's task, as in LangGraph.
    checkpoint_ns: graphPosition.ns === "" ? ns : graphPosition.ns.split("|", 1)[0],
  };
}
