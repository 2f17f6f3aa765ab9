import type { JsonRecord } from "../api/records.ts";

/**
 * Returns the title of a thread: the first of `title`, `name` and the graph's name that its metadata contains;
 * otherwise `Untitled thread`.
 */
export function threadTitle({ metadata }: { readonly metadata: JsonRecord }): string {
  const { title, name, graph_id } = metadata;
  const isName = (one: unknown) => typeof one === "string" && one.trim() !== "";
  return ([title, name, graph_id].find(isName) as string | undefined) ?? "Untitled thread";
}

/** Returns the name of the graph in a thread's metadata; undefined if the thread has had no run. */
export function graphNameOf({ graph_id }: JsonRecord): string | undefined {
  return typeof graph_id === "string" ? graph_id : undefined;
}
