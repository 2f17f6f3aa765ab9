import { THREAD_LIST_ORDERS, type ThreadListOrder, THREAD_STATUSES } from "../api/records.ts";
import { StoredText } from "../stored-text.ts";
import type { ThreadSearchTerms } from "./thread-search-filter.ts";

/** The search text, the filters and the sort order of the thread list. */
export interface ThreadListSearch extends ThreadSearchTerms {
  readonly order: ThreadListOrder;
}

const storedSearch = new StoredText("heddle.search", { keptFor: "tab", isPrivate: true });
const EVERYTHING: ThreadListSearch = { text: "", status: "", graph: "", order: "latest" };

/** Returns the search that this browser tab has stored, so that it survives a reload of the page. */
export function loadThreadSearch(): ThreadListSearch {
  try {
    const { text, status, graph, order } = JSON.parse(
      storedSearch.read() ?? "{}",
    ) as Partial<ThreadListSearch>;
    return {
      text: typeof text === "string" ? text : "",
      status: THREAD_STATUSES.find((one) => one === status) ?? "",
      graph: typeof graph === "string" ? graph : "",
      order: THREAD_LIST_ORDERS.find((one) => one === order) ?? "latest",
    };
  } catch {
    return EVERYTHING;
  }
}

export function saveThreadSearch(search: ThreadListSearch): void {
  storedSearch.write(JSON.stringify(search));
}
