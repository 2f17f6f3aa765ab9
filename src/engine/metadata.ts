import type { PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import { taskNs } from "../graph/interrupts.ts";
import type { Place } from "./place.ts";

/** In a checkpoint's metadata: the run went on with what another form of the graph had begun. */
export const GRAPH_CHANGED = "graph_changed";

/** Settings of one call, of no use to whoever reads the checkpoint later. */
const HIDDEN: ReadonlySet<string> = new Set(["checkpoint_id", "checkpoint_ns", "checkpoint_map"]);

/** What the checkpoints of a run say about it. */
export function metadataOf(run: RunRecord, { ns, parents }: Place): JsonObject {
  const { configurable, metadata } = run.kwargs.config;
  const facts: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(configurable)) {
    const scalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (scalar && !key.startsWith("__") && !HIDDEN.has(key)) facts[key] = value;
  }
  const { run_id, thread_id, graph_id, assistant_id } = run;
  const above = ns === "" ? {} : { parents };
  const own = { run_id, thread_id, graph_id, assistant_id };
  // First too: members that are new after a spread cost a microsecond each.
  return Object.freeze({ ...own, ...facts, ...metadata, ...own, ...above });
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
