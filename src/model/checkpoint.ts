import type { PlainError } from "./errors.ts";
import type { AnswerSchemas, Interrupt } from "./interrupt.ts";
import type { JsonObject } from "./json.ts";
import type { Within } from "./run-start.ts";

export type CheckpointSource = "input" | "loop" | "update" | "fork";

/** A task planned to run from a checkpoint: a node pulled by an edge, or pushed by a `send` with its own input. */
export interface PlannedTask {
  /** UUID version 5 from the checkpoint, step and name: the same after a restart. */
  readonly id: string;
  readonly name: string;
  /** `["__pregel_pull", node]` or `["__pregel_push", index]`: the order in which writes are applied. */
  readonly path: readonly (string | number)[];
  readonly triggers: readonly string[];
  /** Present for a push: what the node gets instead of the state. */
  readonly input?: { readonly value: unknown };
  /**
   * Of a task that is planned once more: the checkpoints, of another branch, that its subgraph and those in it begin at, from
   * that subgraph's down.
   */
  readonly from?: readonly Within[];
}

/**
 * Where a channel's value stands in the journal at one checkpoint. `small`: here. `whole`: one value, written by append `at`.
 * `list`: the first `spans[i].keep` items up to the next span's start were written from append `spans[i].at` on; the
 * list is as long as the last span says. Written by the journal, opaque to everyone else.
 */
export type ChannelRef =
  | { readonly kind: "small"; readonly value: unknown }
  | { readonly kind: "whole"; readonly at: number }
  | { readonly kind: "list"; readonly spans: readonly { readonly at: number; readonly end: number }[] };

/** What one step does to a channel. `append` keeps the first `keep` items and adds `items`: never a whole list. */
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
  /** What the wire adds beside source, step and parents: created_by, graph_id, assistant_id, user_id, ... */
  readonly metadata: JsonObject;
  /** The update of each node that led here, by node name; null where none did. */
  readonly writes: JsonObject | null;
  /** What runs from here. Empty: the graph is at its end. */
  readonly next: readonly PlannedTask[];
  /** What the engine keeps for itself, e.g. which branches of a join have arrived. */
  readonly engine: JsonObject | null;
  /** Hash of the graph's definition that made it. */
  readonly graph: string;
}

/** A snapshot of the state after a step, as it is stored. */
export interface Checkpoint extends CheckpointHead {
  readonly channels: { readonly [channel: string]: ChannelRef };
}

/** A snapshot to be stored: what it changes against its parent. */
export interface NewCheckpoint extends CheckpointHead {
  readonly changes: { readonly [channel: string]: ChannelChange };
}

/**
 * What a task has left behind at the checkpoint that it runs from, kept until the step commits: its update when it has
 * finished and a sibling has not, the interrupts it waits at, the answers it was given, its journaled steps.
 */
export interface TaskWrites {
  readonly ns: string;
  readonly checkpoint: string;
  readonly task: string;
  readonly name: string;
  /**
   * Present when the task has finished: its update (null where it returned none), and where it led beside its fixed
   * edges, in the engine's own form.
   */
  readonly result?: { readonly value: unknown; readonly goto?: readonly unknown[] };
  /** The ones that wait for an answer. */
  readonly interrupts: readonly Interrupt[];
  readonly schemas?: AnswerSchemas;
  /** Answers to its interrupts, in the order in which the node asks, in the engine's own form. */
  readonly resumes: readonly unknown[];
  readonly steps: JsonObject;
  readonly error: PlainError | null;
}

/** What a task has left that has left nothing. */
export function blank({
  ns,
  checkpoint,
  task,
  name,
}: Pick<TaskWrites, "ns" | "checkpoint" | "task" | "name">): TaskWrites {
  return { ns, checkpoint, task, name, interrupts: [], resumes: [], steps: {}, error: null };
}
