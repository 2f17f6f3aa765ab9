import type { JsonRecord } from "../api/records.ts";

/** Returns the title in a thread's metadata; without a title, the name of the thread's graph. */
export function threadTitle({ metadata }: { readonly metadata: JsonRecord }): string {
  const { title, name, graph_id } = metadata;
  const isName = (one: unknown) => typeof one === "string" && one.trim() !== "";
  return ([title, name, graph_id].find(isName) as string | undefined) ?? "no run yet";
}

/** Returns the name of a thread's graph; undefined if the thread has had no run yet. */
export function graphOf({ graph_id }: JsonRecord): string | undefined {
  return typeof graph_id === "string" ? graph_id : undefined;
}
