import { RequestError } from "../request-errors.ts";
import { sendRequest, fetchJson } from "../requests.ts";
import type {
  Assistant,
  DashboardSettings,
  FoundRun,
  RunListFilter,
  WebhookRow,
  JsonRecord,
  ServerHistory,
  ThreadListOrder,
  InterruptQuestion,
  Run,
  AssistantSchemas,
  Thread,
  ThreadListFilter,
  ThreadRow,
  ThreadState,
  WaitingThread,
} from "./records.ts";

/** The public API: one function for each call. */

/** Encodes one segment of a path. @throws TypeError for `.` and `..`: browsers resolve them even when encoded. */
function part(id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new TypeError(`"${id}" is no id`);
  return encodeURIComponent(id);
}

const ROW = ["thread_id", "created_at", "updated_at", "status", "metadata", "error"];

const SORTING = {
  latest: ["updated_at", "desc"],
  unchanged: ["updated_at", "asc"],
  newest: ["created_at", "desc"],
  oldest: ["created_at", "asc"],
} as const;

export interface ThreadListPage {
  readonly rows: readonly ThreadRow[];
  /** The number of matching threads. */
  readonly total: number;
}

export async function listThreads(
  filter: ThreadListFilter,
  order: ThreadListOrder,
  offset: number,
  limit: number,
  signal?: AbortSignal,
): Promise<ThreadListPage> {
  const [sort_by, sort_order] = SORTING[order];
  const body = { ...filter, offset, limit, sort_by, sort_order, select: ROW };
  const response = await sendRequest("threads/search", {
    body,
    isRead: true,
    signal,
  });
  const rows = (await response.json()) as readonly ThreadRow[];
  const total = Number(response.headers.get("x-pagination-total") ?? offset + rows.length);
  return { rows, total };
}

/** Lists threads that wait for an answer. The API has no order by the time of a question: the last change of such a thread is nearest to it. */
export const listWaitingThreads = (
  offset: number,
  limit: number,
  signal: AbortSignal,
): Promise<readonly WaitingThread[]> => {
  const order = { sort_by: "updated_at", sort_order: "asc" };
  const select = ["thread_id", "updated_at", "metadata", "interrupts"];
  const body = { status: "interrupted", offset, limit, ...order, select };
  return fetchJson("threads/search", { body, isRead: true, signal });
};

/** Reads the values at these paths in each of the threads. */
export const extractValues = (
  ids: readonly string[],
  extract: { readonly [name: string]: string },
): Promise<readonly { readonly thread_id: string; readonly extracted: JsonRecord }[]> =>
  fetchJson("threads/search", {
    body: { ids, limit: ids.length, select: ["thread_id"], extract },
    isRead: true,
  });

export const getThreadCount = (filter: ThreadListFilter): Promise<number> =>
  fetchJson("threads/count", { body: filter, isRead: true });

export const createThread = (metadata: JsonRecord): Promise<Thread> =>
  fetchJson("threads", { body: { metadata } });
/**
 * Reads a thread without its state, which may be large. It uses the search, because a search can select fields.
 * @throws RequestError 404
 */
export async function getThread(id: string, signal?: AbortSignal): Promise<Thread> {
  const body = { ids: [id], limit: 1, select: [...ROW, "config", "interrupts"] };
  const [thread] = await fetchJson<readonly Thread[]>("threads/search", { body, isRead: true, signal });
  if (thread === undefined) throw new RequestError(404, `Thread with ID ${id} not found`);
  return thread;
}
export const deleteThread = (id: string) => sendRequest(`threads/${part(id)}`, { method: "DELETE" });
export const getQuestions = (id: string): Promise<readonly InterruptQuestion[]> =>
  fetchJson(`threads/${part(id)}/interrupts`);
export const getState = (id: string, signal?: AbortSignal): Promise<ThreadState> =>
  fetchJson(`threads/${part(id)}/state`, { signal });
export const getStateAt = (id: string, checkpoint: string): Promise<ThreadState> =>
  fetchJson(`threads/${part(id)}/state/${part(checkpoint)}`);

export interface StateHistoryQuery {
  readonly limit: number;
  readonly before?: string;
  readonly metadata?: JsonRecord;
}

export const getHistory = (id: string, query: StateHistoryQuery): Promise<readonly ThreadState[]> =>
  fetchJson(`threads/${part(id)}/history`, { body: query, isRead: true });

export interface StateEdit {
  readonly values: unknown;
  readonly as_node?: string;
  readonly checkpoint_id?: string;
}

/** Resolves with the id of the checkpoint that the update creates. */
export const updateState = (id: string, update: StateEdit): Promise<{ readonly checkpoint_id: string }> =>
  fetchJson(`threads/${part(id)}/state`, { body: update });

export const listRuns = (id: string, limit: number, signal?: AbortSignal): Promise<readonly Run[]> =>
  fetchJson(`threads/${part(id)}/runs?limit=${limit}`, { signal });

export interface RunListPage {
  readonly runs: readonly FoundRun[];
  /** The cursor of the next page; null: there is none. */
  readonly next: string | null;
}

/** Reads the runs of all threads, newest first. */
export async function findRuns(
  filter: RunListFilter,
  limit: number,
  cursor: string | null,
): Promise<RunListPage> {
  const body = { ...filter, limit, ...(cursor !== null && { cursor }) };
  const response = await sendRequest("runs/search", { body, isRead: true });
  const runs = (await response.json()) as readonly FoundRun[];
  return { runs, next: response.headers.get("x-pagination-next") };
}

export const getRun = (id: string, run: string): Promise<Run> =>
  fetchJson(`threads/${part(id)}/runs/${part(run)}`);

/**
 * What the pages show of a run. LangGraph.js produces tokens only for runs that request them. `values` comes first: it
 * is what clients get that join without naming modes.
 */
const SHOWN = {
  stream_mode: ["values", "debug", "messages-tuple", "custom", "logs"],
  stream_subgraphs: true,
};

export const createRun = (id: string, request: JsonRecord): Promise<Run> =>
  fetchJson(`threads/${part(id)}/runs`, { body: { ...request, ...SHOWN } });
export const cancelRun = (id: string, run: string, action: "interrupt" | "rollback") =>
  sendRequest(`threads/${part(id)}/runs/${part(run)}/cancel?action=${action}`, { method: "POST" });
export const deleteRun = (id: string, run: string) =>
  sendRequest(`threads/${part(id)}/runs/${part(run)}`, { method: "DELETE" });

export const listAssistants = (): Promise<readonly Assistant[]> =>
  fetchJson("assistants/search", { body: { limit: 200 }, isRead: true });
export const getSchemas = (assistant: string): Promise<AssistantSchemas> =>
  fetchJson(`assistants/${part(assistant)}/schemas`);

export const getDashboardSettings = (): Promise<DashboardSettings> => fetchJson("dashboard/settings");

export const getMetricsHistory = (): Promise<ServerHistory> => fetchJson("metrics/history");

export const listDeliveries = (status: WebhookRow["status"], limit: number): Promise<readonly WebhookRow[]> =>
  fetchJson(`webhooks/deliveries?status=${status}&limit=${limit}`);
export const retryDelivery = (id: string): Promise<WebhookRow> =>
  fetchJson(`webhooks/deliveries/${part(id)}/retry`, { method: "POST" });
export const deleteDelivery = (id: string) =>
  sendRequest(`webhooks/deliveries/${part(id)}`, { method: "DELETE" });
