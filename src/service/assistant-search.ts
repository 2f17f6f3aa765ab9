import type { AssistantRecord } from "../model/assistant.ts";
import { type AssistantFilter, matches } from "../model/assistant.ts";
import type { Catalog } from "../ports/catalog.ts";

export const assistantOrders = ["created_at", "updated_at", "name", "graph_id", "assistant_id"] as const;

export interface AssistantSearch extends AssistantFilter {
  readonly limit: number;
  readonly offset: number;
  /** Default `created_at`: the default assistants, which always were, count as the oldest. */
  readonly sort_by?: (typeof assistantOrders)[number];
  /** Default `desc`. */
  readonly sort_order?: "asc" | "desc";
}

export interface AssistantPage {
  readonly assistants: readonly AssistantRecord[];
  /** How many there are on all pages. */
  readonly total: number;
}

interface Place {
  readonly id: string;
  readonly by: string | number;
}

/** Finds a page among the stored assistants and the default ones. Of all but the page no more is held than their place. */
export async function searchAssistants(
  catalog: Catalog,
  tenant: string,
  defaults: readonly AssistantRecord[],
  { limit, offset, sort_by = "created_at", sort_order = "desc", ...filter }: AssistantSearch,
): Promise<AssistantPage> {
  const system = new Map<string, AssistantRecord>();
  const places: Place[] = [];
  for (const assistant of defaults) {
    const { assistant_id, version } = assistant;
    system.set(assistant_id, assistant);
    if (!matches(assistant, filter)) continue;
    const isOld = sort_by === "created_at" || (sort_by === "updated_at" && version === 1);
    places.push({ id: assistant_id, by: isOld ? Number.NEGATIVE_INFINITY : orderOf(assistant[sort_by]) });
  }
  for await (const assistant of catalog.assistants(tenant, filter)) {
    if (system.has(assistant.assistant_id)) continue;
    places.push({ id: assistant.assistant_id, by: orderOf(assistant[sort_by]) });
  }
  const sign = sort_order === "asc" ? 1 : -1;
  places.sort((a, b) => sign * (compare(a.by, b.by) || compare(a.id, b.id)));
  const assistants: AssistantRecord[] = [];
  for (const { id } of places.slice(offset, offset + limit)) {
    const found = system.get(id) ?? (await catalog.assistant(tenant, id));
    // It may have been deleted since.
    if (found !== undefined) assistants.push(found);
  }
  return { assistants, total: places.length };
}

/** Names are sorted as people look for them. */
const orderOf = (value: string | number) => (typeof value === "string" ? value.toLowerCase() : value);

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);
