import type { NewCheckpoint } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { Command } from "../model/run.ts";

/** A write to the state from outside a run. It counts as the write of a node. */
export interface StateWrite {
  /** A node's update, a list of such updates, or a list of pairs of key and value; null for none. */
  readonly values: unknown;
  /**
   * A command that replaces `values`: an update and the nodes that run next, as a node may return it. It never has `resume`: a command with
   * `resume` is refused before it gets here.
   */
  readonly command?: Command | null;
  /**
   * The node that counts as the writer; its edges decide what runs next. Null: the node that ran last, or, if the write has neither values
   * nor a command, the same as `__copy__`. Special names:
   * - `__start__`: the node before the first one.
   * - `__input__`: the write is an input, which the next run applies.
   * - `__end__` (only without values): no node runs next.
   * - `__copy__` (only without values): the new checkpoint is a copy of the current one, for example to make a fork.
   */
  readonly as_node: string | null;
  /** The prefix of the write's field names in error messages: `""`, or one such as `supersteps[0].updates[1].` */
  readonly at: string;
}

/** One superstep of a thread that is made by an update, not by a run. */
export interface StateUpdate {
  readonly graph: string;
  /** The namespace of the graph whose state is updated: `""` for the root graph, or the namespace of a subgraph. */
  readonly ns: string;
  /** At least one write. Several writes count as the writes of parallel tasks, and each of them has an `as_node`. */
  readonly writes: readonly StateWrite[];
  /**
   * True if the update starts from the thread's latest checkpoint, false if the client named the checkpoint. If true, the pending writes of
   * finished tasks are applied too. Unfinished tasks and their interrupts are dropped in both cases.
   */
  readonly latest: boolean;
  /** The metadata of the new checkpoint; for a subgraph, the engine adds `parents`. */
  readonly metadata: JsonObject;
}

export interface StateUpdateResult {
  /** The new checkpoint. Its `run_id` is null; its parent is the checkpoint from which the update started. */
  readonly checkpoint: NewCheckpoint;
  readonly values: JsonObject;
}
