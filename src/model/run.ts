import type { PendingTaskWrites } from "./checkpoint.ts";
import type { PlainError } from "./errors.ts";
import type { JsonObject } from "./json.ts";
import type { Timer } from "./machine-timer.ts";

/** The status of a run. `running` is never stored: a read returns it instead of `pending` while an actor executes the run. */
export type RunStatus = "pending" | "running" | "success" | "error" | "timeout" | "interrupted";

export type TerminalStatus = Exclude<RunStatus, "pending" | "running">;

export const isTerminal = (status: RunStatus): status is TerminalStatus =>
  status !== "pending" && status !== "running";

/** What happens when a run is created on a busy thread. The rules are in `actors/thread/multitask.ts`. */
export const multitaskStrategies = ["reject", "enqueue", "interrupt", "rollback"] as const;
export type MultitaskStrategy = (typeof multitaskStrategies)[number];

/** How a run is cancelled. `rollback` also undoes the run's changes of the thread. */
export type CancelAction = "interrupt" | "rollback";

/** Why a run stops before its end: it was cancelled, or its time is up. */
export type StopReason = CancelAction | "timeout";

export const streamModes = [
  "values",
  "updates",
  "messages",
  "messages-tuple",
  "custom",
  "debug",
  "tasks",
  "checkpoints",
  "events",
  "tools",
  "logs",
] as const;

export type StreamMode = (typeof streamModes)[number];

/**
 * Modes of a thread's stream:
 * - `run_modes`: each run in the modes that the run requested, and its end
 * - `lifecycle`: the starts and ends of runs
 * - `state_update`: the thread's state whenever it changes
 */
export const threadModes = ["run_modes", "lifecycle", "state_update"] as const;

export type ThreadMode = (typeof threadModes)[number];

/**
 * Modes of a thread's WebSocket. A mode of a run shows every run of the thread in that mode, and the ends of the runs. The official server
 * has no such socket; over server-sent events it accepts {@link threadModes} only.
 */
export const threadSocketModes = [...threadModes, ...streamModes] as const;

/** The modes that one reader of a thread has requested. */
export interface RequestedThreadModes {
  readonly modes: ReadonlySet<ThreadMode>;
  /** Modes in which every run is shown. If `modes` contains `run_modes`, the modes that the run itself requested are added. */
  readonly runModes: readonly StreamMode[];
  /** True: includes events of subgraphs, even if the run did not request them. */
  readonly subgraphs?: boolean;
  /** False: leaves states out of the modes `checkpoints`, `tasks` and `debug`. */
  readonly showsStates?: boolean;
}

export type Durability = "sync" | "async" | "exit";

/** The nodes before or after which a run pauses. `*` stands for every node. */
export type Breakpoints = readonly string[] | "*";

export interface SendInput {
  readonly node: string;
  readonly input: unknown;
}

export interface Command {
  readonly resume?: unknown;
  readonly update?: unknown;
  readonly goto?: string | SendInput | readonly (string | SendInput)[];
}

/** The arguments with which a run was created. As in the API, values that were not given are null. */
export interface RunKwargs {
  readonly input: unknown;
  readonly command: Command | null;
  readonly config: JsonObject & { readonly configurable: JsonObject; readonly metadata: JsonObject };
  readonly context: JsonObject;
  readonly webhook: string | null;
  readonly temporary: boolean;
  readonly stream_mode: readonly StreamMode[];
  readonly feedback_keys: readonly string[] | null;
  readonly interrupt_before: Breakpoints | null;
  readonly interrupt_after: Breakpoints | null;
  readonly subgraphs: boolean;
  readonly resumable: boolean;
  readonly durability: Durability;
  /** Seconds that an attempt may take; absent: the server's limit applies. */
  readonly timeout_seconds?: number;
  /** True: a `resume` is refused when no interrupt is pending. Absent: the graph's engine decides. */
  readonly strict_resume?: true;
  /**
   * Set for a run that sends an event to a machine: an event of a client or of a timer. The event answers the interrupt
   * at which the machine waits when the run starts, and not an interrupt that was open when the run was admitted.
   */
  readonly event?: true;
  /** The timer whose event the run sends to the machine. Absent for all other runs. */
  readonly timer?: Timer;
  /**
   * The id of the run during which the machine has processed this run's event, before this run started. If that run does not exist any
   * more, it was rolled back, and the effect of the event with it. Absent: the machine has not processed the event in another run.
   */
  readonly taken_by?: string;
  /**
   * What the schemas of a machine returned for the run's input or for the events in its command. The graph gets this instead of `input` or
   * `command`. Those stay as the client sent them, so that a copy of the run can be sent. Absent: the schemas changed nothing, or there are
   * none.
   */
  readonly parsed?: { readonly input: unknown } | { readonly command: Command };
}

/** The input that a run's graph gets. */
export const graphInputOf = ({ input, parsed }: Pick<RunKwargs, "input" | "parsed">): unknown =>
  parsed !== undefined && "input" in parsed ? parsed.input : input;

/** The command that a run's graph gets. */
export const graphCommandOf = ({ command, parsed }: Pick<RunKwargs, "command" | "parsed">): Command | null =>
  parsed !== undefined && "command" in parsed ? parsed.command : command;

/** What started a run: a request over HTTP, a command on a socket, a cron, or a timer of its machine. */
export const runOrigins = ["http", "socket", "cron", "timer"] as const;
export type RunOrigin = (typeof runOrigins)[number];

/** Tokens of the calls of one model. */
export interface ModelUsage {
  /** Names of the model, such as the one that was asked for and its version. Empty: not known. */
  readonly models: readonly string[];
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** The task of a run that took longest. */
export interface SlowestTask {
  /** The name of the task's node. */
  readonly name: string;
  readonly task_id: string;
  readonly duration_ms: number;
}

/** One execution of an assistant on a thread. Times are epoch milliseconds. */
export interface RunRecord {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly metadata: JsonObject;
  readonly status: Exclude<RunStatus, "running">;
  readonly kwargs: RunKwargs;
  readonly multitask_strategy: MultitaskStrategy;
  /** The run's number in the order of admission to the thread, from 1. */
  readonly order: number;
  /**
   * The number of attempts started. Stored before each start, so that a run whose node kills the process is not
   * attempted forever.
   */
  readonly attempt: number;
  /**
   * The number of attempts that do not count against the limit of attempts: those that a graceful stop ended, and all
   * that came before an attempt that stored a step.
   */
  readonly parked: number;
  /**
   * The action of a requested cancellation; null if none was requested. Stored before the request is acknowledged, so
   * that a crash cannot lose it.
   */
  readonly cancel: CancelAction | null;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly error: PlainError | null;
  /**
   * The number of this run's first event among all events of the thread (from 1). It is set when the run first starts;
   * 0 before.
   */
  readonly seq_base: number;
  /**
   * The number of the run's events, which is also the id after its last event. It is set when the run ends; 0 before.
   */
  readonly next_event: number;
  /**
   * A number above all event ids that this attempt has used. A higher number is stored before the ids reach it. A power cut may lose the
   * last stored events; the next attempt then begins with this number, so that no id is used twice.
   */
  readonly event_mark: number;
  /**
   * The boot id of the computer when the last attempt started; null before the first attempt. If the boot id differs
   * now, the power may have failed.
   */
  readonly boot: string | null;
  /** The thread's checkpoint when the run first started; null if the thread had none. A rollback returns to it. */
  readonly base_checkpoint: string | null;
  /**
   * The pending writes from before this run that the run has changed, for example by answering interrupts; null if it
   * has changed none. A rollback restores them.
   */
  readonly base_writes: readonly PendingTaskWrites[] | null;
  /** Epoch milliseconds: the earliest start of a delayed run; null without a delay. */
  readonly due: number | null;
  /**
   * The reason for the cancellation: what a client gave as the reason, or that a new run superseded this run; null:
   * none.
   */
  readonly cancel_reason: string | null;
  /** What started the run; null in records of older versions, which did not store it. */
  readonly origin: RunOrigin | null;
  /** The tokens of all attempts, by model; null: none are known. */
  readonly usage: readonly ModelUsage[] | null;
  /** The slowest task of all attempts; null: fewer than two tasks have ended, or this is not known. */
  readonly slowest_node: SlowestTask | null;
}

/**
 * Copies a run and changes members of the copy. The members are listed one by one, so that all records have the same hidden
 * class in V8, which makes reading them faster.
 */
export function changeRun(run: RunRecord, change: Partial<RunRecord>): RunRecord {
  return {
    run_id: change.run_id === undefined ? run.run_id : change.run_id,
    thread_id: change.thread_id === undefined ? run.thread_id : change.thread_id,
    assistant_id: change.assistant_id === undefined ? run.assistant_id : change.assistant_id,
    graph_id: change.graph_id === undefined ? run.graph_id : change.graph_id,
    created_at: change.created_at === undefined ? run.created_at : change.created_at,
    updated_at: change.updated_at === undefined ? run.updated_at : change.updated_at,
    metadata: change.metadata === undefined ? run.metadata : change.metadata,
    status: change.status === undefined ? run.status : change.status,
    kwargs: change.kwargs === undefined ? run.kwargs : change.kwargs,
    multitask_strategy:
      change.multitask_strategy === undefined ? run.multitask_strategy : change.multitask_strategy,
    order: change.order === undefined ? run.order : change.order,
    attempt: change.attempt === undefined ? run.attempt : change.attempt,
    parked: change.parked === undefined ? run.parked : change.parked,
    cancel: change.cancel === undefined ? run.cancel : change.cancel,
    started_at: change.started_at === undefined ? run.started_at : change.started_at,
    ended_at: change.ended_at === undefined ? run.ended_at : change.ended_at,
    error: change.error === undefined ? run.error : change.error,
    seq_base: change.seq_base === undefined ? run.seq_base : change.seq_base,
    next_event: change.next_event === undefined ? run.next_event : change.next_event,
    event_mark: change.event_mark === undefined ? run.event_mark : change.event_mark,
    boot: change.boot === undefined ? run.boot : change.boot,
    base_checkpoint: change.base_checkpoint === undefined ? run.base_checkpoint : change.base_checkpoint,
    base_writes: change.base_writes === undefined ? run.base_writes : change.base_writes,
    due: change.due === undefined ? run.due : change.due,
    cancel_reason: change.cancel_reason === undefined ? run.cancel_reason : change.cancel_reason,
    origin: change.origin === undefined ? run.origin : change.origin,
    usage: change.usage === undefined ? run.usage : change.usage,
    slowest_node: change.slowest_node === undefined ? run.slowest_node : change.slowest_node,
  };
}
