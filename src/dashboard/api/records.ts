/** Any JSON object. The types below are the API's records, with only the fields that the dashboard uses. */
export type JsonRecord = { readonly [field: string]: unknown };

export const THREAD_STATUSES = ["idle", "busy", "interrupted", "error"] as const;
export type ApiThreadStatus = (typeof THREAD_STATUSES)[number];
export const RUN_STATUSES = ["pending", "running", "success", "error", "timeout", "interrupted"] as const;
export type ApiRunStatus = (typeof RUN_STATUSES)[number];

export interface ApiInterrupt {
  readonly id: string;
  readonly value: unknown;
  readonly ns?: readonly string[];
}

/**
 * A question on whose answer a thread waits. `response_schema`: the JSON Schema of the answer; null if there is none.
 */
export interface InterruptQuestion extends ApiInterrupt {
  readonly response_schema: JsonSchema | null;
}

/** A thread, with the fields that a row of the thread list shows. */
export interface ThreadRow {
  readonly thread_id: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: ApiThreadStatus;
  readonly metadata: JsonRecord;
  /** The error of the thread's latest run; present only while the thread's status is `error`. */
  readonly error?: { readonly error: string; readonly message: string };
}

export const THREAD_LIST_ORDERS = ["latest", "unchanged", "newest", "oldest"] as const;
/**
 * By last change: `latest` (most recent first) or `unchanged` (longest ago first). By creation: `newest` or `oldest`
 * first.
 */
export type ThreadListOrder = (typeof THREAD_LIST_ORDERS)[number];

export interface ThreadListFilter {
  readonly status?: ApiThreadStatus;
  readonly metadata?: JsonRecord;
  readonly ids?: readonly string[];
}

/** A thread without the values of its state. */
export interface Thread extends ThreadRow {
  readonly config: JsonRecord;
  readonly interrupts: { readonly [task: string]: readonly ApiInterrupt[] };
}

/** A thread with the status `interrupted`: it waits for an answer or at a breakpoint. */
export interface WaitingThread extends Pick<
  Thread,
  "thread_id" | "status" | "updated_at" | "metadata" | "interrupts"
> {
  /** When the thread began to wait, or when its state was last edited after that. */
  readonly state_updated_at: string;
}

/** The task that took longest of a run's tasks. */
export interface SlowestNode {
  readonly name: string;
  readonly task_id: string;
  readonly duration_ms: number;
}

export interface Run {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: ApiRunStatus;
  readonly metadata: JsonRecord;
  readonly multitask_strategy: string;
  readonly kwargs: {
    readonly input?: unknown;
    readonly command?: unknown;
    readonly config?: JsonRecord;
    readonly context?: unknown;
    readonly interrupt_before?: unknown;
    readonly interrupt_after?: unknown;
    readonly subgraphs?: boolean;
  };
  /** Absent if it is not known, or if fewer than two tasks have ended. */
  readonly slowest_node?: SlowestNode;
}

/** A run as `POST /runs/search` returns it. */
export interface FoundRun extends Pick<
  Run,
  "run_id" | "thread_id" | "assistant_id" | "created_at" | "status" | "metadata"
> {
  readonly graph_id: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly attempt: number;
  /** What started the run; null if the run was stored by a server version that did not record this. */
  readonly origin: "http" | "socket" | "cron" | "timer" | null;
  /** The tokens that the run used, for each model. `models`: all names of the model. */
  readonly usage: readonly {
    readonly models: readonly string[];
    readonly input_tokens: number;
    readonly output_tokens: number;
  }[];
  readonly slowest_node: SlowestNode | null;
  readonly error: { readonly error: string; readonly message: string } | null;
  /** Whether this is the latest run of its thread. */
  readonly is_latest: boolean;
  /**
   * What the thread has waited for since this run, whose status is `success`. Null if the thread does not wait, or
   * began to wait with another run.
   */
  readonly paused_at: "question" | "breakpoint" | null;
  /** The id of the run that continued the thread after this run failed; null if there is none. */
  readonly resumed_by: string | null;
}

export interface RunListFilter {
  readonly status?: ApiRunStatus;
  readonly graph_id?: string;
  readonly assistant_id?: string;
  readonly thread_id?: string;
  readonly origin?: NonNullable<FoundRun["origin"]>;
  /** If set, only runs whose {@link FoundRun.paused_at} is not null. */
  readonly paused?: true;
  readonly metadata?: JsonRecord;
  readonly without_metadata?: readonly string[];
  readonly error?: string;
  readonly created_after?: string;
  readonly created_before?: string;
}

export interface CheckpointPosition {
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
}

export interface StateTask {
  readonly id: string;
  readonly name: string;
  readonly error: string | null;
  readonly interrupts: readonly ApiInterrupt[];
  readonly result: unknown;
}

export interface ThreadState {
  readonly values: JsonRecord;
  readonly next: readonly string[];
  readonly tasks: readonly StateTask[];
  readonly metadata: JsonRecord;
  readonly created_at: string | null;
  readonly checkpoint: CheckpointPosition | null;
  readonly parent_checkpoint: CheckpointPosition | null;
  readonly interrupts?: readonly ApiInterrupt[];
}

/** A state whose long lists are shortened to their last elements. */
export interface ShortenedState extends ThreadState {
  /** The largest number of elements of each list. */
  readonly list_limit: number;
  /** For each shortened list, the number of its elements before it was shortened, by its name in `values`. */
  readonly list_lengths: { readonly [name: string]: number };
}

/** A state without the fields that may be large. */
export type StateSummary = Omit<ThreadState, "values" | "tasks" | "interrupts">;

export interface Assistant {
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly name: string;
  readonly description?: string | null;
  readonly metadata: JsonRecord;
  readonly config: JsonRecord;
  readonly context: JsonRecord;
  readonly version: number;
}

/** A version of an assistant. `created_at` is the time when this version was created. */
export interface AssistantVersionRow extends Assistant {
  readonly created_at: string;
}

/** JSON Schema, with the keywords that forms use. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: { readonly [name: string]: JsonSchema };
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly $ref?: string;
  readonly $defs?: unknown;
  readonly definitions?: unknown;
  readonly default?: unknown;
  /** LangGraph's name for the kind of value: `messages` for a list of chat messages. */
  readonly langgraph_type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

/**
 * An event that a machine accepts. `type`: the type of the event, such as `APPROVE`, or a wildcard such as `order.*`.
 * `schema`: the JSON Schema of the whole event; null if none is known.
 */
export interface PossibleEvent {
  readonly type: string;
  readonly schema: JsonSchema | null;
}

export interface AssistantSchemas {
  readonly graph_id: string;
  readonly input_schema: JsonSchema | null;
  readonly output_schema: JsonSchema | null;
  readonly state_schema: JsonSchema | null;
  readonly config_schema: JsonSchema | null;
  readonly context_schema: JsonSchema | null;
}

export const hasRunEnded = ({ status }: Pick<Run, "status">): boolean =>
  status !== "pending" && status !== "running";

export const isJsonRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A webhook delivery that is pending or has been given up (`dead`). */
export interface WebhookDeliveryRow {
  readonly id: string;
  readonly run_id: string;
  readonly thread_id: string;
  readonly url: string;
  readonly status: "pending" | "dead";
  readonly attempts: number;
  readonly created_at: string;
  readonly last_status: number | null;
  readonly last_error: string | null;
}

export interface StoreItem {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: JsonRecord;
  readonly created_at: string;
  readonly updated_at: string;
  /** Minutes that the item lives after its last change; absent if the item does not expire. */
  readonly ttl?: number;
  readonly expires_at?: string;
  /** How similar the item is to the query of a search; null if the server has no index. */
  readonly score?: number | null;
}

/** A cron: a schedule on which the server starts runs. */
export interface Cron {
  /**
   * The outcome of the last run that the cron started, even if this run has been deleted. `run_id` is null if the run
   * could not be started.
   */
  readonly last_run?: {
    readonly run_id: string | null;
    readonly status: ApiRunStatus;
    readonly error: { readonly error: string; readonly message: string } | null;
    readonly ended_at: string;
  };
  readonly cron_id: string;
  readonly assistant_id: string;
  /** The thread on which the runs start; null if each run gets a new thread. */
  readonly thread_id: string | null;
  readonly on_run_completed: "delete" | "keep" | null;
  readonly schedule: string;
  readonly timezone: string | null;
  readonly end_time: string | null;
  /** The time of the next run; null if the cron has ended or is paused. */
  readonly next_run_date: string | null;
  readonly enabled: boolean;
  readonly payload: JsonRecord;
  readonly metadata: JsonRecord;
}

/** The price of a model in dollars per million tokens: `in` for input tokens, `out` for output tokens. */
export interface TokenPrice {
  readonly in: number;
  readonly out: number;
}
export type TokenPrices = { readonly [model: string]: TokenPrice };

/**
 * Metrics of the server's last hour. `figures` has a list of values for each metric, oldest first; null where a value
 * is not known. `times` has the times of these values.
 */
export interface ServerMetricsHistory {
  readonly interval_seconds: number;
  readonly times: readonly string[];
  readonly figures: { readonly [name: string]: readonly (number | null)[] };
}

/** The settings of the dashboard: the section `dashboard` of the configuration, and information about the server. */
export interface DashboardSettings {
  readonly prices: TokenPrices;
  /** Whether the server authenticates users, so that rules decide what each user may see. */
  readonly has_users: boolean;
  /** The tenant whose data this page shows. */
  readonly tenant: string;
  /** The signed-in user of this page; null if the page uses an API key, or if the server authenticates no users. */
  readonly user: { readonly identity: string; readonly display_name: string } | null;
}
