import type { JsonRecord } from "../api/records.ts";

/**
 * Returns the title of a thread: `title` or else `name` of its metadata; without both, the name of its graph.
 */
export function threadTitle({ metadata }: { readonly metadata: JsonRecord }): string {
  const { title, name, graph_id } = metadata;
  const isName = (one: unknown) => typeof one === "string" && one.trim() !== "";
  return ([title, name, graph_id].find(isName) as string | undefined) ?? "Untitled thread";
}

/** Returns the name of a thread's graph; undefined if the thread has had no run yet. */
export function graphOf({ graph_id }: JsonRecord): string | undefined {
  return typeof graph_id === "string" ? graph_id : undefined;
}
