import type { PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import { taskNamespace } from "../graph/interrupts.ts";
import type { GraphPosition } from "./graph-position.ts";

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
