import type { JsonRecord } from "../api/records.ts";

/** Returns the title of a thread in its metadata, or its graph's name. */
export function threadTitle({ metadata }: { readonly metadata: JsonRecord }): string {
  const { title, name, graph_id } = metadata;
  const isName = (one: unknown) => typeof one === "string" && one.trim() !== "";
  return ([title, name, graph_id].find(isName) as string | undefined) ?? "no run yet";
}
