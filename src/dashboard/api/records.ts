/** The API's records, with the fields that the dashboard shows. */
export type Json = { readonly [field: string]: unknown };

export const THREAD_STATUSES = ["idle", "busy", "interrupted", "error"] as const;
export type ThreadStatus = (typeof THREAD_STATUSES)[number];
export type RunStatus = "pending" | "running" | "success" | "error" | "timeout" | "interrupted";

export interface Interrupt {
  readonly id: string;
  readonly value: unknown;
  readonly ns?: readonly string[];
}

/** A pending question, with the schema of its answer. */
export interface Question extends Interrupt {
  readonly response_schema: Schema | null;
}

/** A thread as a row of the list. */
export interface ThreadRow {
  readonly thread_id: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: ThreadStatus;
  readonly metadata: Json;
  /** The error of the last run; present only while the thread's status is `error`. */
  readonly error?: { readonly error: string; readonly message: string };
}

export type Order = "latest" | "oldest";

/** A filter for threads. */
export interface ThreadFilter {
  readonly status?: ThreadStatus;
  readonly metadata?: Json;
  readonly ids?: readonly string[];
}

export interface Thread extends ThreadRow {
  readonly values: Json | null;
  readonly config: Json;
  readonly interrupts: { readonly [task: string]: readonly Interrupt[] };
}

export interface Run {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: RunStatus;
  readonly metadata: Json;
  readonly multitask_strategy: string;
  readonly kwargs: {
    readonly input?: unknown;
    readonly command?: unknown;
    readonly config?: Json;
    readonly context?: unknown;
    readonly interrupt_before?: unknown;
    readonly interrupt_after?: unknown;
    readonly subgraphs?: boolean;
  };
}

export interface CheckpointPosition {
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
}

export interface StateTask {
  readonly id: string;
  readonly name: string;
  readonly error: string | null;
  readonly interrupts: readonly Interrupt[];
  readonly result: unknown;
}

export interface ThreadState {
  readonly values: Json;
  readonly next: readonly string[];
  readonly tasks: readonly StateTask[];
  readonly metadata: Json;
  readonly created_at: string | null;
  readonly checkpoint: CheckpointPosition | null;
  readonly parent_checkpoint: CheckpointPosition | null;
  readonly interrupts?: readonly Interrupt[];
}

export interface Assistant {
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly name: string;
  readonly description?: string | null;
  readonly metadata: Json;
  readonly config: Json;
  readonly version?: number;
}

/** JSON Schema, with the keywords that forms use. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly $ref?: string;
  readonly $defs?: unknown;
  readonly definitions?: unknown;
  readonly default?: unknown;
  /** `messages` marks a conversation. */
  readonly langgraph_type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface Schemas {
  readonly graph_id: string;
  readonly input_schema: Schema | null;
  readonly output_schema: Schema | null;
  readonly state_schema: Schema | null;
  readonly config_schema: Schema | null;
  readonly context_schema: Schema | null;
}

export const isDone = ({ status }: Run): boolean => status !== "pending" && status !== "running";

export const isJson = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A webhook delivery: pending or given up. */
export interface Delivery {
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
