import { type Order, THREAD_STATUSES } from "../api/records.ts";
import type { SearchTerms } from "./search.ts";

/** The search text, filters and order of the list. */
export interface Search extends SearchTerms {
  readonly order: Order;
}

const KEY = "heddle.search";
const EVERYTHING: Search = { text: "", status: "", graph: "", order: "latest" };

/** Returns the search of this browser tab from before a reload. */
export function remembered(): Search {
  try {
    const { text, status, graph, order } = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Partial<Search>;
    return {
      text: typeof text === "string" ? text : "",
      status: THREAD_STATUSES.find((one) => one === status) ?? "",
      graph: typeof graph === "string" ? graph : "",
      order: order === "oldest" ? order : "latest",
    };
  } catch {
    return EVERYTHING;
  }
}

export const remember = (search: Search): void => sessionStorage.setItem(KEY, JSON.stringify(search));
