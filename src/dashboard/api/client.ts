import { RequestError } from "../api-errors.ts";
import { sendRequest, fetchJson } from "../requests.ts";
import type {
  ApiRunStatus,
  Assistant,
  AssistantVersionRow,
  Cron,
  DashboardSettings,
  FoundRun,
  RunListFilter,
  StoreItem,
  WebhookDeliveryRow,
  JsonRecord,
  ServerMetricsHistory,
  ThreadListOrder,
  InterruptQuestion,
  Run,
  AssistantSchemas,
  PossibleEvent,
  Thread,
  ThreadListFilter,
  ThreadRow,
  StateSummary,
  ShortenedState,
  ThreadState,
  WaitingThread,
} from "./records.ts";
import { REQUESTED_STREAM_MODES } from "./stream-modes.ts";

/** The requests to the server's public API. */

/**
 * Encodes an id as one segment of a path.
 * @throws RequestError 422 for `.` and `..`, which browsers resolve even if they are encoded, and for an empty id
 */
function part(id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new RequestError(422, `"${id}" is not a valid ID.`);
  return encodeURIComponent(id);
}

const ROW_FIELDS = ["thread_id", "created_at", "updated_at", "status", "metadata", "error"];

const SORTING = {
  latest: ["updated_at", "desc"],
  unchanged: ["updated_at", "asc"],
  newest: ["created_at", "desc"],
  oldest: ["created_at", "asc"],
} as const;

export interface ThreadListPage {
  readonly rows: readonly ThreadRow[];
  /**
   * The number of matching threads. It may be too low, but is always larger than the end of this page if more pages
   * follow.
   */
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
  const body = { ...filter, offset, limit, sort_by, sort_order, select: ROW_FIELDS };
  const response = await sendRequest("threads/search", {
    body,
    isRead: true,
    signal,
  });
  const rows = (await response.json()) as readonly ThreadRow[];
  const total = Number(response.headers.get("x-pagination-total") ?? offset + rows.length);
  return { rows, total };
}

export interface WaitingThreads {
  readonly threads: readonly WaitingThread[];
  readonly total: number;
}

/**
 * The largest number of waiting threads that are sorted by how long they have waited. The server has no index for this
 * order, and reads all of them: 104 ms for 3,000, on a busy machine, 2026-11-26.
 */
const MAX_EXACT_ORDER = 1_000;

/**
 * Lists the threads that wait for an answer or at a breakpoint, longest wait first. More than {@link MAX_EXACT_ORDER}
 * threads are sorted by their last change, for which the server has an index. Editing a thread's metadata counts as a
 * change.
 */
export async function listWaitingThreads(
  offset: number,
  limit: number,
  signal: AbortSignal,
): Promise<WaitingThreads> {
  const total = await getThreadCount({ status: "interrupted" }, signal);
  const sort_by = total > MAX_EXACT_ORDER ? "updated_at" : "state_updated_at";
  const select = ["thread_id", "status", "updated_at", "state_updated_at", "metadata", "interrupts"];
  const body = { status: "interrupted", offset, limit, sort_by, sort_order: "asc", select };
  const threads = await fetchJson<readonly WaitingThread[]>("threads/search", { body, isRead: true, signal });
  return { threads, total };
}

/**
 * Reads some values of each thread's state. `extract` gives a name to the path of each value, such as `values.topic`;
 * `extracted` has the values by these names.
 */
export const fetchThreadValues = (
  ids: readonly string[],
  extract: { readonly [name: string]: string },
): Promise<readonly { readonly thread_id: string; readonly extracted: JsonRecord }[]> =>
  fetchJson("threads/search", {
    body: { ids, limit: ids.length, select: ["thread_id"], extract },
    isRead: true,
  });

export const getThreadCount = (filter: ThreadListFilter, signal?: AbortSignal): Promise<number> =>
  fetchJson("threads/count", { body: filter, isRead: true, signal });

export const createThread = (metadata: JsonRecord): Promise<Thread> =>
  fetchJson("threads", { body: { metadata } });
/**
 * Reads a thread without its state, which may be large. Uses a search, because only searches can leave out the state.
 * @throws RequestError 404 if there is no such thread
 */
export async function getThread(id: string, signal?: AbortSignal): Promise<Thread> {
  const body = { ids: [id], limit: 1, select: [...ROW_FIELDS, "config", "interrupts"] };
  const [thread] = await fetchJson<readonly Thread[]>("threads/search", { body, isRead: true, signal });
  if (thread === undefined) throw new RequestError(404, `Thread with ID ${id} not found`);
  return thread;
}
/** Adds or replaces these members of the thread's metadata, and keeps all others. */
export const updateThread = (id: string, metadata: JsonRecord) =>
  sendRequest(`threads/${part(id)}`, { method: "PATCH", body: { metadata } });
export const deleteThread = (id: string) => sendRequest(`threads/${part(id)}`, { method: "DELETE" });
export const listPendingQuestions = (id: string): Promise<readonly InterruptQuestion[]> =>
  fetchJson(`threads/${part(id)}/interrupts`);
/** Lists the events that a thread's XState machine accepts now. */
export const getPossibleEvents = (id: string): Promise<{ readonly events: readonly PossibleEvent[] }> =>
  fetchJson(`threads/${part(id)}/events/possible`);
export const postMachineEvent = (id: string, event: unknown): Promise<{ readonly run_id: string }> =>
  fetchJson(`threads/${part(id)}/events?metadata=${part(JSON.stringify(DASHBOARD_RUN_METADATA))}`, {
    body: event,
  });
export const getState = (id: string, signal?: AbortSignal): Promise<ThreadState> =>
  fetchJson(`threads/${part(id)}/state`, { signal });
/** The fields of a {@link StateSummary}. */
const STATE_SUMMARY_FIELDS = [
  "next",
  "created_at",
  "checkpoint",
  "parent_checkpoint",
  // `metadata.writes` is left out: it contains the updates of the nodes, which may be as large as the state.
  ...["step", "source", "run_id", "assistant_id", "user_id", "langgraph_auth_user_id"].map(
    (name) => `metadata.${name}`,
  ),
];

/** The fields of the latest state that a thread's page reads again and again. */
const STATE_FIELDS_WITHOUT_VALUES = [...STATE_SUMMARY_FIELDS, "tasks", "interrupts"];

/** Reads the latest state of a thread with the last `limit` elements of each list in its values. */
export async function getShortenedState(
  id: string,
  limit: number,
  signal?: AbortSignal,
): Promise<ShortenedState> {
  const select = [...STATE_FIELDS_WITHOUT_VALUES, "values"].join();
  const state = await fetchJson<ThreadState & Partial<ShortenedState>>(
    `threads/${part(id)}/state?list_limit=${limit}&select=${select}`,
    { signal },
  );
  // `list_lengths` is absent if the thread has no state yet.
  return { ...state, list_limit: limit, list_lengths: state.list_lengths ?? {} };
}
/** Reads the latest state of a thread without its values. */
export const getStateWithoutValues = (
  id: string,
  signal?: AbortSignal,
): Promise<Omit<ThreadState, "values">> =>
  fetchJson(`threads/${part(id)}/state?select=${STATE_FIELDS_WITHOUT_VALUES.join()}`, { signal });
export const getStateAt = (id: string, checkpoint: string): Promise<ThreadState> =>
  fetchJson(`threads/${part(id)}/state/${part(checkpoint)}`);

export interface StateHistoryQuery {
  readonly limit: number;
  readonly before?: string;
  readonly metadata?: JsonRecord;
}

/** Reads states of a thread without their values, newest first. */
export const getStateHistoryWithoutValues = (
  id: string,
  query: StateHistoryQuery,
): Promise<readonly StateSummary[]> =>
  fetchJson(`threads/${part(id)}/history`, {
    body: { ...query, select: STATE_SUMMARY_FIELDS },
    isRead: true,
  });

export const getStateHistory = (id: string, query: StateHistoryQuery): Promise<readonly ThreadState[]> =>
  fetchJson(`threads/${part(id)}/history`, { body: query, isRead: true });

export interface StateEdit {
  readonly values: unknown;
  readonly as_node?: string;
  readonly checkpoint_id?: string;
  /**
   * If true, the server refuses the edit with the code `checkpoint.outdated` unless `checkpoint_id` is the thread's
   * latest checkpoint.
   */
  readonly require_latest?: boolean;
}

/** Updates the state of a thread. Resolves with the id of the checkpoint that the update creates. */
export const updateState = (id: string, update: StateEdit): Promise<{ readonly checkpoint_id: string }> =>
  fetchJson(`threads/${part(id)}/state`, { body: update });

export const listRuns = (id: string, limit: number, signal?: AbortSignal): Promise<readonly Run[]> =>
  fetchJson(`threads/${part(id)}/runs?limit=${limit}`, { signal });

/** Reads one page of a thread's runs with this status, newest first. `total`: the number of runs on all pages. */
export async function listThreadRunsByStatus(
  id: string,
  status: ApiRunStatus,
  { limit, offset }: { readonly limit: number; readonly offset: number },
  signal?: AbortSignal,
): Promise<{ readonly runs: readonly Run[]; readonly total: number }> {
  const query = new URLSearchParams({ status, limit: `${limit}`, offset: `${offset}` });
  const response = await sendRequest(`threads/${part(id)}/runs?${query}`, { signal });
  const runs = (await response.json()) as readonly Run[];
  return { runs, total: Number(response.headers.get("x-pagination-total") ?? offset + runs.length) };
}

export interface RunListPage {
  readonly runs: readonly FoundRun[];
  /** The cursor of the next page; null: there is none. */
  readonly next: string | null;
}

/** Reads one page of the runs of all threads, newest first. */
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

/** Reads the first runs of a thread that were created at a time or later, oldest first. */
export const listThreadRunsSince = (
  id: string,
  created_after: string,
  limit: number,
): Promise<readonly FoundRun[]> =>
  fetchJson("runs/search", {
    body: { thread_id: id, created_after, limit, sort_order: "asc" },
    isRead: true,
  });

export const getRun = (id: string, run: string): Promise<Run> =>
  fetchJson(`threads/${part(id)}/runs/${part(run)}`);

const STREAM_OPTIONS = { stream_mode: REQUESTED_STREAM_MODES, stream_subgraphs: true };

/** Metadata of the runs that are started from the dashboard, by which the list of runs recognises them. */
export const DASHBOARD_RUN_METADATA = { started_from: "dashboard" };

export const createRun = (id: string, request: JsonRecord): Promise<Run> =>
  fetchJson(`threads/${part(id)}/runs`, {
    body: {
      ...request,
      ...STREAM_OPTIONS,
      metadata: { ...(request["metadata"] as object | undefined), ...DASHBOARD_RUN_METADATA },
    },
  });

/** Starts a run on a new thread with this metadata. If the server refuses the run, the new thread is deleted again. */
export async function createRunOnNewThread(metadata: JsonRecord, request: JsonRecord): Promise<Run> {
  const { thread_id } = await createThread(metadata);
  try {
    return await createRun(thread_id, request);
  } catch (cause) {
    // If the server failed (5xx) or the connection was lost, the run may have been started, so the thread is kept.
    if (cause instanceof RequestError && cause.status < 500)
      await deleteThread(thread_id).catch(() => undefined);
    throw cause;
  }
}

export const cancelRun = (id: string, run: string, action: "interrupt" | "rollback") =>
  sendRequest(`threads/${part(id)}/runs/${part(run)}/cancel?action=${action}`, { method: "POST" });
export const deleteRun = (id: string, run: string) =>
  sendRequest(`threads/${part(id)}/runs/${part(run)}`, { method: "DELETE" });

const ASSISTANTS_PAGE = 1_000;

/** Lists all assistants, newest first. */
export async function listAssistants(): Promise<readonly Assistant[]> {
  // An assistant may be on two pages if another one is created between the two reads, so they are collected by id.
  const all = new Map<string, Assistant>();
  for (let offset = 0; ; offset += ASSISTANTS_PAGE) {
    const body = { limit: ASSISTANTS_PAGE, offset };
    // oxlint-disable-next-line no-await-in-loop -- whether there is another page is known only after this one
    const page = await fetchJson<readonly Assistant[]>("assistants/search", { body, isRead: true });
    for (const one of page) all.set(one.assistant_id, one);
    if (page.length < ASSISTANTS_PAGE) return [...all.values()];
  }
}
/** The fields of an assistant that its form sets. */
export type AssistantFields = Partial<
  Pick<Assistant, "graph_id" | "name" | "config" | "context" | "metadata"> & { readonly description: string }
>;

export const createAssistant = (fields: AssistantFields): Promise<Assistant> =>
  fetchJson("assistants", { body: fields });
export const getAssistant = (id: string): Promise<Assistant> => fetchJson(`assistants/${part(id)}`);
/** Stores these fields as a new version of the assistant, and makes this version the current one. */
export const updateAssistant = (id: string, fields: AssistantFields): Promise<Assistant> =>
  fetchJson(`assistants/${part(id)}`, { method: "PATCH", body: fields });
export const deleteAssistant = (id: string) => sendRequest(`assistants/${part(id)}`, { method: "DELETE" });
/** Lists at most `limit` versions of an assistant, newest first. */
export const listAssistantVersions = (id: string, limit: number): Promise<readonly AssistantVersionRow[]> =>
  fetchJson(`assistants/${part(id)}/versions`, { body: { limit }, isRead: true });
export const setAssistantVersion = (id: string, version: number): Promise<Assistant> =>
  fetchJson(`assistants/${part(id)}/latest`, { body: { version } });
export const getAssistantSchemas = (assistant: string): Promise<AssistantSchemas> =>
  fetchJson(`assistants/${part(assistant)}/schemas`);

interface DrawnNode {
  readonly id: string;
  readonly data?: { readonly id?: readonly string[] };
}

/**
 * Lists the names of the nodes of an assistant's graph. Empty for an XState machine, which has states instead of
 * nodes.
 */
export async function listGraphNodes(assistant: string): Promise<readonly string[]> {
  const path = `assistants/${part(assistant)}/graph`;
  const { nodes } = await fetchJson<{ readonly nodes: readonly DrawnNode[] }>(path);
  return nodes
    .filter(({ id, data }) => data?.id?.[0] !== "xstate" && id !== "__start__" && id !== "__end__")
    .map(({ id }) => id);
}

/** Reads the dashboard's settings. `key`: an API key for this request only; default: the stored key. */
export const getDashboardSettings = (key?: string): Promise<DashboardSettings> =>
  fetchJson("dashboard/settings", key === undefined ? {} : { key });

export const getMetricsHistory = (signal: AbortSignal): Promise<ServerMetricsHistory> =>
  fetchJson("metrics/history", { signal });

export const listWebhookDeliveries = (
  status: WebhookDeliveryRow["status"],
  limit: number,
  signal?: AbortSignal,
): Promise<readonly WebhookDeliveryRow[]> =>
  fetchJson(`webhooks/deliveries?status=${status}&limit=${limit}`, { signal });
export const retryWebhookDelivery = (id: string): Promise<WebhookDeliveryRow> =>
  fetchJson(`webhooks/deliveries/${part(id)}/retry`, { method: "POST" });
export const deleteWebhookDelivery = (id: string) =>
  sendRequest(`webhooks/deliveries/${part(id)}`, { method: "DELETE" });

/** Lists the namespaces one level below `prefix`. A deeper namespace is cut to this level. */
export async function listStoreNamespaces(
  prefix: readonly string[],
  limit: number,
): Promise<readonly (readonly string[])[]> {
  const body = { prefix, max_depth: prefix.length + 1, limit };
  const { namespaces } = await fetchJson<{ readonly namespaces: readonly (readonly string[])[] }>(
    "store/namespaces",
    { body, isRead: true },
  );
  return namespaces.filter(({ length }) => length > prefix.length);
}

export interface StoreSearch {
  readonly namespace_prefix: readonly string[];
  readonly filter?: JsonRecord;
  readonly query?: string;
  readonly limit: number;
  readonly offset: number;
}

/**
 * Reads items of the store: most recently changed first or, with a `query` and an index on the server, most similar
 * first. The read does not extend the items' lifetimes.
 */
export async function searchStoreItems(search: StoreSearch): Promise<readonly StoreItem[]> {
  const body = { ...search, refresh_ttl: false };
  return (
    await fetchJson<{ readonly items: readonly StoreItem[] }>("store/items/search", { body, isRead: true })
  ).items;
}

export type StoreItemAddress = Pick<StoreItem, "namespace" | "key">;

/** Reads an item of the store. Resolves with null if there is no such item. */
export function getStoreItem({ namespace, key }: StoreItemAddress): Promise<StoreItem | null> {
  const query = new URLSearchParams({ namespace: namespace.join("."), key, refresh_ttl: "false" });
  return fetchJson(`store/items?${query}`);
}

/**
 * Stores an item. `ttl`: minutes until the item expires; null: it never expires; absent: the server's default
 * lifetime.
 */
export const putStoreItem = (
  item: StoreItemAddress & { readonly value: JsonRecord; readonly ttl?: number | null },
) => sendRequest("store/items", { method: "PUT", body: item });
export const deleteStoreItem = ({ namespace, key }: StoreItemAddress) =>
  sendRequest("store/items", { method: "DELETE", body: { namespace, key } });

/** Lists crons, newest first. */
export const listCrons = (limit: number, offset: number): Promise<readonly Cron[]> =>
  fetchJson("runs/crons/search", { body: { limit, offset }, isRead: true });
/** Reads a cron. @throws RequestError 404 if there is no such cron */
export const getCron = (id: string): Promise<Cron> => fetchJson(`runs/crons/${part(id)}`);
/** Creates a cron. `thread`: the id of the thread on which its runs start; null: each run gets a new thread. */
export const createCron = (thread: string | null, definition: JsonRecord): Promise<Cron> =>
  fetchJson(thread === null ? "runs/crons" : `threads/${part(thread)}/runs/crons`, { body: definition });
/**
 * Replaces these fields of a cron. `change` may also contain fields of the cron's run request, such as `input`.
 * Metadata is merged.
 */
export const updateCron = (id: string, change: JsonRecord): Promise<Cron> =>
  fetchJson(`runs/crons/${part(id)}`, { method: "PATCH", body: change });
export const deleteCron = (id: string) => sendRequest(`runs/crons/${part(id)}`, { method: "DELETE" });

/** When a cron fires. `timezone`: null for UTC; `end_time`: null for no end. */
export type CronTimes = Pick<Cron, "schedule" | "timezone" | "end_time">;

/** Reads the next times, three at most, at which a cron would fire. @throws RequestError 422 for an invalid field */
export const previewCronTimes = async (times: CronTimes): Promise<readonly string[]> =>
  (
    await fetchJson<{ readonly next_run_dates: readonly string[] }>("runs/crons/preview", {
      body: times,
      isRead: true,
    })
  ).next_run_dates;

/**
 * Starts a run of a cron now, as the cron is stored at this moment: somebody may have changed it since the page read
 * it. The thread is kept even if the cron deletes the threads of its runs, so that the user can see the outcome.
 * @throws RequestError 404 if the cron was deleted
 */
export async function runCronNow(cron_id: string): Promise<Run> {
  const { assistant_id, thread_id, payload, metadata } = await getCron(cron_id);
  const request = {
    multitask_strategy: "enqueue",
    ...payload,
    assistant_id,
    metadata: { ...metadata, cron_id },
  };
  // The thread is created first, by a request of its own. If the run created it, the thread would get the run's
  // metadata, and all later runs on it would seem to be runs of the cron.
  return thread_id === null ? createRunOnNewThread({}, request) : createRun(thread_id, request);
}
