import { EMPTY_OBJECT, type JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";

/** Keys of `configurable` that concern only one request. They are left out of the metadata of checkpoints. */
const HIDDEN: ReadonlySet<string> = new Set(["checkpoint_id", "checkpoint_ns", "checkpoint_map"]);

/** The metadata of a run's checkpoints: the keys of `configurable` with scalar values, the run's metadata, and ids. */
export function checkpointMetadataOfRun(run: RunRecord): JsonObject {
  const { configurable, metadata } = run.kwargs.config;
  const facts: Record<string, unknown> = {};
  for (const key of Object.keys(configurable)) {
    const value = configurable[key];
    const scalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (scalar && !key.startsWith("__") && !HIDDEN.has(key)) facts[key] = value;
  }
  const { run_id, thread_id, graph_id, assistant_id } = run;
  return { ...EMPTY_OBJECT, ...facts, ...metadata, run_id, thread_id, graph_id, assistant_id };
}
