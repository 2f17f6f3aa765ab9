import type { AssistantRecord } from "../model/assistant.ts";
import { type AssistantFilter, matchesAssistant } from "../model/assistant.ts";
import type { BudgetShare } from "../ports/time-budget.ts";
import type { Catalog } from "../ports/catalog.ts";
import { SortedPages } from "./sorted-pages.ts";

export const assistantOrders = ["created_at", "updated_at", "name", "graph_id", "assistant_id"] as const;

export interface AssistantSearch extends AssistantFilter {
  readonly limit: number;
  readonly offset: number;
  /**
   * Default `created_at`. By `created_at`, default assistants count as the oldest. By `updated_at`, so do the default assistants that were
   * never changed.
   */
  readonly sort_by?: (typeof assistantOrders)[number];
  /** Default `desc`. */
  readonly sort_order?: "asc" | "desc";
}

export interface AssistantPage {
  readonly assistants: readonly AssistantRecord[];
  /** The number of matches on all pages. */
  readonly total: number;
}

interface SortEntry {
  readonly id: string;
  readonly by: string | number;
}

/**
 * Finds a page among the stored and the default assistants. Of the assistants outside the page, only ids and sort keys are in memory, and
 * only a limited number of them.
 */
export async function searchAssistants(
  catalog: Catalog,
  tenant: string,
  defaults: readonly AssistantRecord[],
  { limit, offset, sort_by = "created_at", sort_order = "desc", ...filter }: AssistantSearch,
  share: BudgetShare,
): Promise<AssistantPage> {
  const system = new Map(defaults.map((assistant) => [assistant.assistant_id, assistant]));
  async function* places(): AsyncGenerator<SortEntry> {
    for (const assistant of defaults) {
      if (!matchesAssistant(assistant, filter)) continue;
      const { assistant_id: id, version } = assistant;
      const isOld = sort_by === "created_at" || (sort_by === "updated_at" && version === 1);
      yield { id, by: isOld ? Number.NEGATIVE_INFINITY : orderOf(assistant[sort_by]) };
    }
    for await (const assistant of catalog.assistants(tenant, filter)) {
      const { assistant_id: id } = assistant;
      if (!system.has(id)) yield { id, by: orderOf(assistant[sort_by]) };
    }
  }
  const sign = sort_order === "asc" ? 1 : -1;
  const ordered = new SortedPages(places, (a, b) => sign * (compare(a.by, b.by) || compare(a.id, b.id)));
  const assistants: AssistantRecord[] = [];
  let left = limit;
  for await (const { id } of ordered.from(offset, limit)) {
    if (left-- === 0) break;
    if (share.isSpent()) await share.next();
    const found = system.get(id) ?? (await catalog.assistant(tenant, id));
    // The assistant may have been deleted since the scan.
    if (found !== undefined) assistants.push(found);
  }
  return { assistants, total: ordered.total };
}

/** Names are sorted without regard to case. */
const orderOf = (value: string | number) => (typeof value === "string" ? value.toLowerCase() : value);

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);
