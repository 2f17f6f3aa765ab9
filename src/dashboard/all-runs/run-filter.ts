import { DASHBOARD_RUN_METADATA } from "../api/client.ts";
import { type ApiRunStatus, RUN_STATUSES, type RunListFilter } from "../api/records.ts";
import { RUN_STATUS_TEXTS, WAITING_OR_PAUSED } from "../live/status-texts.ts";
import { threadFilterOf } from "../threads/thread-search-filter.ts";

/**
 * The periods by which a list of runs can be filtered: the value in the address, the label, and the length in
 * milliseconds.
 */
export const RUN_LIST_PERIODS = [
  ["hour", "Last hour", 3_600_000],
  ["day", "Last 24 hours", 86_400_000],
  ["week", "Last 7 days", 7 * 86_400_000],
] as const;

/**
 * The value of the query parameter `since` for a range of times. The range is in the parameters `after` and `before`:
 * timestamps, each of which may be absent.
 */
export const RANGE_PERIOD = "range";

/** Returns a timestamp of the range of times in a query; undefined if it is absent or no valid time. */
export function rangeTimeOf(query: URLSearchParams, name: "after" | "before"): string | undefined {
  const ms = query.get("since") === RANGE_PERIOD ? Date.parse(query.get(name) ?? "") : Number.NaN;
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

/**
 * The statuses by which a list of runs can be filtered. `paused` is no status of the API, which reports a paused run
 * as `success`.
 */
export const RUN_LIST_STATUSES: readonly (ApiRunStatus | "paused")[] = [...RUN_STATUSES, "paused"];

export const runListStatusText = (status: ApiRunStatus | "paused"): string =>
  status === "paused" ? WAITING_OR_PAUSED : RUN_STATUS_TEXTS[status];

/**
 * Returns the filter that the query of an address describes. `now`: epoch milliseconds. Invalid values are ignored,
 * because people edit addresses.
 */
export function runFilterOf(query: URLSearchParams, now: number): RunListFilter {
  const valueOf = (name: string) => query.get(name) ?? "";
  const status = RUN_LIST_STATUSES.find((one) => one === valueOf("status"));
  const { ids: [thread_id] = [], metadata } = threadFilterOf({ text: valueOf("of"), status: "", graph: "" });
  const { metadata: from, origin, without_metadata } = originFilterOf(valueOf("from"));
  const period = RUN_LIST_PERIODS.find(([name]) => name === valueOf("since"));
  const created_after =
    period === undefined ? rangeTimeOf(query, "after") : new Date(now - period[2]).toISOString();
  const created_before = rangeTimeOf(query, "before");
  return {
    ...(status === "paused"
      ? { status: "success" as const, paused: true as const }
      : status !== undefined && { status }),
    ...(valueOf("graph") !== "" && { graph_id: valueOf("graph") }),
    ...(valueOf("assistant") !== "" && { assistant_id: valueOf("assistant") }),
    ...(valueOf("error") !== "" && { error: valueOf("error") }),
    ...(thread_id !== undefined && { thread_id }),
    ...((metadata !== undefined || from !== undefined) && { metadata: { ...metadata, ...from } }),
    ...(origin !== undefined && { origin }),
    ...(without_metadata !== undefined && { without_metadata }),
    ...(created_after !== undefined && { created_after }),
    ...(created_before !== undefined && { created_before }),
  };
}

const CRON = "cron:";

/** Returns the value of the query parameter `from` with which the list of runs shows the runs of a cron. */
export const cronFilterValue = (id: string): string => `${CRON}${id}`;

function originFilterOf(from: string): Pick<RunListFilter, "metadata" | "origin" | "without_metadata"> {
  // Two other kinds of runs come over HTTP: those that the dashboard starts, and those that a user starts with *Run
  // now* of a cron. They are recognised by their metadata, and left out here.
  if (from === "api")
    return { origin: "http", without_metadata: [...Object.keys(DASHBOARD_RUN_METADATA), "cron_id"] };
  if (from === "socket" || from === "timer") return { origin: from };
  if (from === "dashboard") return { metadata: DASHBOARD_RUN_METADATA };
  return from.startsWith(CRON) ? { metadata: { cron_id: from.slice(CRON.length) } } : {};
}
