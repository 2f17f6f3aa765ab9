import type { PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import { taskNs } from "../graph/interrupts.ts";
import { runMetadata } from "../graph/run-metadata.ts";
import type { Place } from "./graph-position.ts";

/** In a checkpoint's metadata: the run went on with what another form of the graph had begun. */
export const GRAPH_CHANGED = "graph_changed";

/** What the checkpoints of a run say about it. */
export function metadataOf(run: RunRecord, { ns, parents }: Place): JsonObject {
  return Object.freeze(ns === "" ? runMetadata(run) : { ...runMetadata(run), parents });
}

/** What the events of a task's messages say about where they come from. */
export function messageMeta(
  { place, step }: { readonly place: Place; readonly step: number },
  { id, name, path, triggers }: PlannedTask,
): JsonObject {
  const ns = taskNs(place.ns, name, id);
  return {
    langgraph_step: step,
    langgraph_node: name,
    langgraph_triggers: triggers,
    langgraph_path: path,
    langgraph_checkpoint_ns: ns,
    // Inherited from above, as LangGraph has it: the task of the root graph.
    checkpoint_ns: place.ns === "" ? ns : place.ns.split("|", 1)[0],
  };
}
