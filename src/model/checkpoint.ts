import type { PlainError } from "./errors.ts";
import type { AnswerSchemas, Interrupt } from "./interrupt.ts";
import type { JsonObject } from "./json.ts";
import type { SubgraphCheckpoint } from "./start-checkpoint.ts";

export type CheckpointSource = "input" | "loop" | "update" | "fork";

/** A task planned to run from a checkpoint: a node pulled by an edge, or pushed by a `send` with its own input. */
export interface PlannedTask {
  /** UUID version 5 from the checkpoint, step and name: the same after a restart. */
  readonly id: string;
  readonly name: string;
  /** `["__pregel_pull", node]` or `["__pregel_push", index]`: the order in which writes are applied. */
  readonly path: readonly (string | number)[];
  readonly triggers: readonly string[];
  /** Present for a push: the input that the node gets instead of the state. */
  readonly input?: { readonly value: unknown };
  /**
   * Present when the task is planned again on a new branch: the checkpoints of the other branch at which its subgraph, and
   * the subgraphs in that, begin. The outermost is first.
   */
  readonly from?: readonly SubgraphCheckpoint[];
}

/**
 * Reference to a channel's value in the journal at one checkpoint. `small`: the value itself. `whole`: one value, written by
 * append `at`. `list`: a list in spans; the items up to `spans[i].end` were written from append `spans[i].at` on, and the
 * last `end` is the length of the list. The journal writes it; it is opaque to all other code.
 */
export type ChannelRef =
  | { readonly kind: "small"; readonly value: unknown }
  | { readonly kind: "whole"; readonly at: number }
  | { readonly kind: "list"; readonly spans: readonly { readonly at: number; readonly end: number }[] };

/** The change of a channel by one step. `append` keeps the first `keep` items and adds `items`, so no list is stored twice. */
export type ChannelChange =
  | { readonly kind: "set"; readonly value: unknown }
  | { readonly kind: "append"; readonly keep: number; readonly items: readonly unknown[] }
  | { readonly kind: "clear" };

/** A checkpoint without its state. */
export interface CheckpointHead {
  /** UUID version 6: sorts by time within a thread. */
  readonly id: string;
  readonly parent: string | null;
  /** `""` for the root graph, else the subgraph's path `node:task|node:task`. */
  readonly ns: string;
  readonly step: number;
  readonly source: CheckpointSource;
  readonly created_at: number;
  readonly run_id: string | null;
  /** Metadata beside source, step and parents: created_by, graph_id, assistant_id, user_id, ... */
  readonly metadata: JsonObject;
  /** The updates that led to this checkpoint, by node name; null when there were none. */
  readonly writes: JsonObject | null;
  /** The tasks that run next. Empty when the graph has ended. */
  readonly next: readonly PlannedTask[];
  /** Data of the engine, such as which branches of a join have arrived. Opaque to all other code. */
  readonly engine: JsonObject | null;
  /** Hash of the graph's definition that made it. */
  readonly graph: string;
}

/** A snapshot of the state after a step, as it is stored. */
export interface Checkpoint extends CheckpointHead {
  readonly channels: { readonly [channel: string]: ChannelRef };
}

/** A snapshot to store, as changes against its parent. */
export interface NewCheckpoint extends CheckpointHead {
  readonly changes: { readonly [channel: string]: ChannelChange };
}

/**
 * Pending writes of a task at the checkpoint that it runs from, kept until the step commits: its update when it has finished
 * and a sibling has not, the interrupts at which it waits, the answers that it was given, and its journaled steps.
 */
export interface TaskWrites {
  readonly ns: string;
  readonly checkpoint: string;
  readonly task: string;
  readonly name: string;
  /**
   * Present when the task has finished: its update (null when it returned none), and where it goes beside its fixed edges,
   * in the engine's own form.
   */
  readonly result?: { readonly value: unknown; readonly goto?: readonly unknown[] };
  /** Interrupts that wait for an answer. */
  readonly interrupts: readonly Interrupt[];
  /** The latest interrupts of the task, when they are answered: the thread's history shows them. Absent for none. */
  readonly answered?: readonly Interrupt[];
  readonly schemas?: AnswerSchemas;
  /** Answers to its interrupts, in the order in which the node raises them, in the engine's own form. */
  readonly resumes: readonly unknown[];
  readonly steps: JsonObject;
  readonly error: PlainError | null;
}

/** Empty pending writes of a task. */
export function emptyWrites({
  ns,
  checkpoint,
  task,
  name,
}: Pick<TaskWrites, "ns" | "checkpoint" | "task" | "name">): TaskWrites {
  return { ns, checkpoint, task, name, interrupts: [], resumes: [], steps: {}, error: null };
}
