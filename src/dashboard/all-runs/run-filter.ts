import { FROM_DASHBOARD } from "../api/client.ts";
import { type JsonRecord, RUN_STATUSES, type RunListFilter } from "../api/records.ts";
import { threadFilterOf } from "../threads/thread-search-filter.ts";

/** How far back a list of runs goes: the value in the address, its label, and milliseconds. */
export const PERIODS = [
  ["hour", "last hour", 3_600_000],
  ["day", "last 24 hours", 86_400_000],
  ["week", "last 7 days", 7 * 86_400_000],
] as const;

/** The filter in the query of an address. Invalid values are ignored, because people edit addresses. */
export function runFilterOf(query: URLSearchParams, now: number): RunListFilter {
  const valueOf = (name: string) => query.get(name) ?? "";
  const status = RUN_STATUSES.find((one) => one === valueOf("status"));
  const { ids: [thread_id] = [], metadata } = threadFilterOf({ text: valueOf("of"), status: "", graph: "" });
  const from = originFilterOf(valueOf("from"));
  const period = PERIODS.find(([name]) => name === valueOf("since"));
  return {
    ...(status !== undefined && { status }),
    ...(valueOf("graph") !== "" && { graph_id: valueOf("graph") }),
    ...(valueOf("assistant") !== "" && { assistant_id: valueOf("assistant") }),
    ...(valueOf("error") !== "" && { error: valueOf("error") }),
    ...(thread_id !== undefined && { thread_id }),
    ...((metadata !== undefined || from !== null) && { metadata: { ...metadata, ...from } }),
    ...(period !== undefined && { created_after: new Date(now - period[2]).toISOString() }),
  };
}

const CRON = "cron:";

/** Returns the value of `from` in an address that selects the runs of a cron. */
export const cronOrigin = (id: string): string => `${CRON}${id}`;

/** Returns the metadata that select the runs started from the dashboard or by a cron; null: all runs. */
function originFilterOf(from: string): JsonRecord | null {
  if (from === "dashboard") return FROM_DASHBOARD;
  return from.startsWith(CRON) ? { cron_id: from.slice(CRON.length) } : null;
}
