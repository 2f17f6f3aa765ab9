import { type ApiInterrupt, isJsonRecord, type JsonRecord } from "../api/records.ts";
import { SHOWN_STREAM_MODES } from "../api/stream-modes.ts";
import { errorLine } from "../components/one-line-text.ts";
import { appendChunk, type ChatMessage, modelNamesIn, uniqueNames } from "./chat-messages.ts";

/** An event of a run's stream, parsed. */
export interface StreamEvent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
  readonly run_id?: string;
}

/**
 * The query parameters of a stream from which a trace can be built. They include the events of subgraphs, which the
 * run itself may not have requested.
 */
export const TRACE_STREAM_PARAMS = {
  stream_mode: SHOWN_STREAM_MODES.join(),
  stream_subgraphs: "true",
};

export type TaskStatus = "waiting" | "running" | "retrying" | "done" | "interrupted" | "failed" | "stopped";

/** One execution of a node. `begunAt` and `endedAt` are epoch milliseconds. */
export interface Task {
  readonly id: string;
  readonly name: string;
  /** The checkpoint namespace of the graph that contains the node; empty for the root graph. */
  readonly ns: string;
  readonly step: number;
  status: TaskStatus;
  begunAt: number | null;
  endedAt: number | null;
  input: unknown;
  result: unknown;
  error: string | null;
  interrupts: readonly ApiInterrupt[];
  /** How often the node function was started, retries included. */
  tries: number;
  readonly messages: string[];
  readonly lines: LogLine[];
}

/** A log line of a node, or the stack trace of its error. */
export interface LogLine {
  readonly timestamp: string;
  readonly task: string;
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields?: JsonRecord;
  readonly stack?: string;
  /** The number of the try that failed, counted from 1; only for nodes with a retry policy. */
  readonly try?: number;
}

/** A checkpoint of the graph or a subgraph. `at`: epoch milliseconds. */
export interface TraceCheckpoint {
  readonly ns: string;
  readonly step: number;
  readonly at: number;
  readonly source: string;
  readonly checkpoint: string;
  readonly parent: string | null;
  readonly values: JsonRecord;
  readonly next: readonly string[];
}

/** What has happened in a run, built from the events of its stream. */
export class Trace {
  readonly run: string;
  attempt = 1;
  readonly tasks = new Map<string, Task>();
  readonly steps: TraceCheckpoint[] = [];
  readonly messages = new Map<string, ChatMessage>();
  /** The ids of messages that failed or stopped tries of tasks have streamed: no state will contain them. */
  readonly abandonedMessages = new Set<string>();
  error: { readonly error: string; readonly message: string } | null = null;
  /** When the run ended, in epoch milliseconds; null while it is in progress. */
  endedAt: number | null = null;
  #last = -1;
  /**
   * The tries of each task, counted from the stream only. The inspector's feed also reports tries, but in an unknown
   * order relative to the stream.
   */
  readonly #tries = new Map<string, { count: number; hasFailed: boolean }>();
  /** The time of the latest `debug` event, in epoch milliseconds; NaN before the first. */
  #heardAt = Number.NaN;
  readonly #keepsData: boolean;

  /** `keepsData`: whether states, inputs and results of tasks are kept in memory. */
  constructor(run: string, keepsData = true) {
    this.run = run;
    this.#keepsData = keepsData;
  }

  /** Adds an event. Returns false if it has been added before. */
  take(event: StreamEvent): boolean {
    const id = Number(event.id);
    if (id <= this.#last) return false;
    this.#last = id;
    const [mode = "", ...segments] = event.event.split("|");
    const ns = segments.join("|");
    const { data } = event;
    if (mode === "metadata") this.#begun(data);
    else if (mode === "error") this.error = data as { error: string; message: string };
    else if (mode === "logs") this.#logged(data as LogLine);
    else if (mode === "messages") this.#addMessage(data);
    else if (mode === "debug") this.#debugged(ns, data as Debug);
    return true;
  }

  /** Returns the checkpoints of the graph with this namespace (empty for the root graph), oldest first. */
  stepsOf(ns: string): readonly TraceCheckpoint[] {
    return this.steps.filter((step) => step.ns === ns);
  }

  get values(): JsonRecord | null {
    return this.stepsOf("").at(-1)?.values ?? null;
  }

  /**
   * Ends the trace at the time `at` in epoch milliseconds: running tasks become stopped, and tasks that have not begun
   * are removed.
   */
  end(at: number): void {
    const isKnown = Number.isFinite(at);
    if (isKnown) this.endedAt = at;
    for (const task of this.tasks.values()) {
      if (task.status === "waiting") this.tasks.delete(task.id);
      else if (task.begunAt !== null && task.endedAt === null) {
        task.status = "stopped";
        task.endedAt = isKnown ? Math.max(task.begunAt, at) : task.begunAt;
      }
    }
  }

  /**
   * Updates a task with the state of its actor in the inspector's feed. The feed reports a retry when it begins; the
   * stream only after it has ended.
   */
  tried(task: Task, state: unknown): void {
    if (task.endedAt !== null) return;
    if (state === "backoff") task.status = "retrying";
    else if (state === "cancelled") task.status = "stopped";
    else if (state === "running" && task.status === "retrying") {
      task.status = "running";
      task.tries++;
    }
  }

  #begun(data: unknown): void {
    const attempt = isJsonRecord(data) && typeof data["attempt"] === "number" ? data["attempt"] : 1;
    // A new attempt runs the tasks again that were running when the server stopped. Ends their earlier executions.
    if (attempt > this.attempt) {
      for (const task of this.tasks.values()) if (task.endedAt === null) this.#abandonMessagesOf(task);
      this.end(this.#heardAt);
    }
    this.endedAt = null;
    this.attempt = attempt;
    this.error = null;
  }

  #addMessage(data: unknown): void {
    const [raw, metadata] = Array.isArray(data) ? (data as readonly unknown[]) : [];
    if (!isJsonRecord(raw) || typeof raw["id"] !== "string") return;
    const { id } = raw;
    if (raw["type"] === "remove") return;
    // The next try writes a message with the same id from its beginning.
    if (this.abandonedMessages.delete(id)) this.messages.delete(id);
    const message = appendChunk(this.messages.get(id), raw);
    const models = uniqueNames(message.models, modelNamesIn(metadata, ["ls_model_name"]));
    this.messages.set(id, { ...message, models });
    const path = isJsonRecord(metadata) ? String(metadata["langgraph_checkpoint_ns"] ?? "") : "";
    const task = this.tasks.get(path.slice(path.lastIndexOf(":") + 1));
    if (task !== undefined && !task.messages.includes(id)) task.messages.push(id);
  }

  #abandonMessagesOf(task: Task): void {
    for (const id of task.messages) this.abandonedMessages.add(id);
  }

  #logged(line: LogLine): void {
    const task = this.tasks.get(line.task);
    task?.lines.push(line);
    if (task === undefined || line.try === undefined) return;
    this.#abandonMessagesOf(task);
    this.#tried(task, "failed");
  }

  /**
   * Counts the tries of a task. `what`: the task has begun (possibly in a new attempt of the run), or a try has failed
   * or succeeded.
   */
  #tried(task: Task, what: "begun" | "failed" | "succeeded"): void {
    const { count, hasFailed } = this.#tries.get(task.id) ?? { count: 0, hasFailed: false };
    // After a failed try, the next event belongs to a new try.
    const next = { count: what === "begun" || hasFailed ? count + 1 : count, hasFailed: what === "failed" };
    this.#tries.set(task.id, next);
    task.tries = Math.max(task.tries, next.count);
  }

  #debugged(ns: string, { type, step, timestamp, payload }: Debug): void {
    const at = Date.parse(timestamp);
    this.#heardAt = at;
    if (type === "checkpoint") return this.#saved(ns, at, payload);
    const id = String(payload["id"]);
    const known = this.tasks.get(id);
    if (type === "task") {
      const task = known ?? newTask(id, String(payload["name"]), ns, step ?? 0);
      this.tasks.set(id, task);
      task.status = "running";
      task.begunAt ??= at;
      task.endedAt = null;
      if (this.#keepsData) task.input = payload["input"];
      task.error = null;
      this.#tried(task, "begun");
      return;
    }
    if (known === undefined) return;
    const interrupts = (payload["interrupts"] ?? []) as readonly ApiInterrupt[];
    known.endedAt = at;
    known.interrupts = interrupts;
    known.error = (payload["error"] ?? null) === null ? null : taskErrorText(payload["error"]);
    known.status = known.error !== null ? "failed" : interrupts.length > 0 ? "interrupted" : "done";
    if (this.#keepsData) known.result = known.status === "done" ? payload["result"] : undefined;
    if (known.error === null) this.#tried(known, "succeeded");
  }

  #saved(ns: string, at: number, payload: JsonRecord): void {
    const metadata = (payload["metadata"] ?? {}) as JsonRecord;
    const number = Number(metadata["step"] ?? 0);
    const position = payload["checkpoint"] as { readonly checkpoint_id: string } | null;
    const parent = payload["parent_checkpoint"] as { readonly checkpoint_id: string } | null;
    const values = (payload["values"] ?? {}) as JsonRecord;
    const saved: TraceCheckpoint = {
      ns,
      step: number,
      at,
      source: String(metadata["source"] ?? ""),
      checkpoint: position?.checkpoint_id ?? "",
      parent: parent?.checkpoint_id ?? null,
      values: this.#keepsData ? values : {},
      next: (payload["next"] ?? []) as readonly string[],
    };
    if (this.steps.some(({ checkpoint }) => checkpoint === saved.checkpoint)) return;
    this.steps.push(saved);
    for (const { id, name } of (payload["tasks"] ?? []) as readonly { id: string; name: string }[]) {
      if (name !== "__start__" && !this.tasks.has(id)) this.tasks.set(id, newTask(id, name, ns, number + 1));
    }
  }
}

interface Debug {
  readonly type: "checkpoint" | "task" | "task_result";
  readonly step: number | null;
  readonly timestamp: string;
  readonly payload: JsonRecord;
}

const newTask = (id: string, name: string, ns: string, step: number): Task => ({
  id,
  name,
  ns,
  step,
  status: "waiting",
  begunAt: null,
  endedAt: null,
  input: undefined,
  result: undefined,
  error: null,
  interrupts: [],
  tries: 0,
  messages: [],
  lines: [],
});

/** Formats the error of a task, which is JSON with a name and a message. Other text is returned unchanged. */
export function taskErrorText(error: unknown): string {
  const text = String(error);
  try {
    const {
      name,
      error: kind,
      message,
    } = JSON.parse(text) as { name?: string; error?: string; message?: string };
    return message === undefined ? text : errorLine(name ?? kind ?? "", message);
  } catch {
    return text;
  }
}
