import type { ChartDefinition } from "../inspector/chart-model.ts";
import { isNotFound, isForbidden } from "../api-errors.ts";
import { fetchJson } from "../requests.ts";

export const HIDDEN_GRAPH_TEXT = "This graph is hidden by the access rules, or no longer exists.";

/**
 * Returns the XState definition of a graph's statechart, as JSON; null if there is no such graph, or if this user may
 * not see it.
 */
export async function getGraphStatechart(graph: string): Promise<string | null> {
  try {
    const path = `inspect/machines/${encodeURIComponent(`graph:${graph}`)}`;
    const { definition } = await fetchJson<{ readonly definition: ChartDefinition }>(path);
    return JSON.stringify(definition);
  } catch (cause) {
    if (isNotFound(cause) || isForbidden(cause)) return null;
    throw cause;
  }
}
