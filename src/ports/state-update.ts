import type { NewCheckpoint } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { Command } from "../model/run.ts";

/** A write to the state from outside a run. It counts as the write of a node. */
export interface StateWrite {
  /** A node's update, a list of such updates, or a list of pairs of key and value; null for none. */
  readonly values: unknown;
  /**
   * A command in place of `values`, as a node returns it: an update and the next nodes. A command with `resume` has already been refused.
   */
  readonly command?: Command | null;
  /**
   * The node that counts as the writer; its edges decide what runs next. Special names: `__start__`, the node before the first;
   * `__input__`, an input, which the next run applies; `__end__` (without values), no node runs next; `__copy__` (without values), a copy
   * of the checkpoint as a fork. Null: the node that ran last, or a copy of the checkpoint if nothing is written either.
   */
  readonly as_node: string | null;
  /** Prefix of its field names in error messages: `""`, or `supersteps[0].updates[1].` */
  readonly at: string;
}

/** One superstep of a thread that is made by an update, not by a run. */
export interface StateUpdate {
  readonly graph: string;
  /** The namespace: `""`, or that of a subgraph. */
  readonly ns: string;
  /** At least one write. Several count as the writes of parallel tasks, and each has an `as_node`. */
  readonly writes: readonly StateWrite[];
  /**
   * True if the position is the thread's latest one, not one that the client named. Then the pending writes of finished tasks are applied
   * too. Unfinished tasks and their interrupts are dropped in either case.
   */
  readonly latest: boolean;
  /** Metadata of the checkpoint, without source, step and parents. */
  readonly metadata: JsonObject;
}

export interface StateUpdateResult {
  /** The new checkpoint. Its `run_id` is null, its parent the position's head. */
  readonly checkpoint: NewCheckpoint;
  readonly values: JsonObject;
}
