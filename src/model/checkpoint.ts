import type { PlainError } from "./errors.ts";
import type { AnswerSchemas, Interrupt } from "./interrupt.ts";
import type { JsonObject } from "./json.ts";
import type { SubgraphCheckpoint } from "./start-checkpoint.ts";

export type CheckpointSource = "input" | "loop" | "update" | "fork";

/** A task that is planned to run from a checkpoint: pulled, when an edge leads to its node; or pushed, by a `send` with its own input. */
export interface PlannedTask {
  /**
   * A UUID of version 5, made from the checkpoint and the task's namespace, step, name and path, so that it is the same after a restart.
   */
  readonly id: string;
  readonly name: string;
  /**
   * The position of the task in the order in which writes are applied: `["__pregel_pull", node]` or `["__pregel_push",
   * index]`.
   */
  readonly path: readonly (string | number)[];
  readonly triggers: readonly string[];
  /** Present for a push: the input that the node gets instead of the state. */
  readonly input?: { readonly value: unknown };
  /**
   * Present when the task is planned again on a new branch: the checkpoints of the old branch at which the task's subgraph, and the
   * subgraphs nested in it, start. The outermost is first.
   */
  readonly from?: readonly SubgraphCheckpoint[];
  /**
   * Present for a task that runs an actor of a child machine: the namespace, checkpoint and task id under which clients
   * see the task, in the child machine's namespace.
   */
  readonly child?: { readonly ns: string; readonly checkpoint: string; readonly id: string };
}

/**
 * A checkpoint's reference to the stored value of a channel. Only the journal writes and reads it. `at`: where a value is stored, as the
 * number of the append (a write to the thread's journal) times 4096, plus the index of the checkpoint within the append.
 */
export type ChannelRef =
  /** The value itself. */
  | { readonly kind: "small"; readonly value: unknown }
  | { readonly kind: "whole"; readonly at: number }
  /** A list in spans. Each span begins where the previous one ended; the last `end` is the length of the list. */
  | { readonly kind: "list"; readonly spans: readonly { readonly at: number; readonly end: number }[] };

/** How one step changes a channel. `append` keeps the first `keep` items and adds `items`, so that no item of a list is stored twice. */
export type ChannelChange =
  | { readonly kind: "set"; readonly value: unknown }
  | { readonly kind: "append"; readonly keep: number; readonly items: readonly unknown[] }
  | { readonly kind: "clear" };

/** A checkpoint without its state. */
export interface CheckpointHead {
  /** The id: a UUID of version 6. Within a thread, such ids sort by time. */
  readonly id: string;
  readonly parent: string | null;
  /** The namespace: `""` for the root graph, else the subgraph's path `node:task|node:task`. */
  readonly ns: string;
  readonly step: number;
  readonly source: CheckpointSource;
  readonly created_at: number;
  readonly run_id: string | null;
  /**
   * The metadata: created_by, graph_id, assistant_id, user_id, ...; for a subgraph also `parents`, the ids of the checkpoints of the graphs
   * above it, by namespace. It does not contain `source` and `step`.
   */
  readonly metadata: JsonObject;
  /** The updates that led to this checkpoint, by node name; null when there were none. */
  readonly writes: JsonObject | null;
  /** The tasks that run next. Empty when the graph has ended. */
  readonly next: readonly PlannedTask[];
  /**
   * Data that the engine stores with the checkpoint, such as which branches of a join have arrived, or a machine's timers and children;
   * null if there is none. Functions such as `timersAtCheckpoint` and `childMachinePositionsAt` read parts of it outside the engine.
   */
  readonly engine: JsonObject | null;
  /** The hash of the graph definition that made the checkpoint. */
  readonly graph: string;
}

/** A snapshot of the state after a step, as it is stored. */
export interface Checkpoint extends CheckpointHead {
  readonly channels: { readonly [channel: string]: ChannelRef };
}

/** A new checkpoint, given as the changes from its parent. */
export interface NewCheckpoint extends CheckpointHead {
  readonly changes: { readonly [channel: string]: ChannelChange };
}

/**
 * The pending writes of a task: what is stored for the task at the checkpoint from which it runs, until all tasks of the step have finished
 * and the step commits. They are the task's result (if it has finished before other tasks), the interrupts that wait for an answer, the
 * answers to interrupts, and the results of the task's `ctx.step` calls.
 */
export interface PendingTaskWrites {
  readonly ns: string;
  readonly checkpoint: string;
  readonly task: string;
  readonly name: string;
  /**
   * Present when the task has finished. `value`: its update; null when it returned none. `goto`: the nodes that run next, in addition to
   * the nodes to which its fixed edges lead, in a form that only the engine reads.
   */
  readonly result?: { readonly value: unknown; readonly goto?: readonly unknown[] };
  /** Interrupts that wait for an answer. */
  readonly interrupts: readonly Interrupt[];
  /** The task's latest interrupts, if they have been answered: the thread's history shows them. Absent: none were answered. */
  readonly answered?: readonly Interrupt[];
  readonly schemas?: AnswerSchemas;
  /**
   * Answers to the task's interrupts, in the order in which its node raises them, in a form that only the engine reads.
   */
  readonly resumes: readonly unknown[];
  readonly steps: JsonObject;
  readonly error: PlainError | null;
}

/** Results of `ctx.step` calls, by name, that are added to the pending writes of a task. */
export type AddedStepResults = Pick<PendingTaskWrites, "ns" | "checkpoint" | "task" | "steps">;

export function emptyWrites({
  ns,
  checkpoint,
  task,
  name,
}: Pick<PendingTaskWrites, "ns" | "checkpoint" | "task" | "name">): PendingTaskWrites {
  return { ns, checkpoint, task, name, interrupts: [], resumes: [], steps: {}, error: null };
}
