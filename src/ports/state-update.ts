import type { NewCheckpoint } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { Command } from "../model/run.ts";

/** A write to the state that no node has made: it counts as if one had. */
export interface StateWrite {
  /** In the form of a node's update, or a list of such, or of pairs of key and value; null: none. */
  readonly values: unknown;
  /** In the place of `values`: what a node says by a command, an update and where to go. `resume` is refused before. */
  readonly command?: Command | null;
  /**
   * The node that is said to have made it: its edges say what runs from there. Also `__start__`, the node before the first;
   * `__input__`: an input, which is applied by the run that goes on from there; `__end__`, without values: nothing is left
   * to run; `__copy__`, without values: the same once more, as a fork. Null: the node that was the last to run, or, where
   * nothing is written either, the same once more.
   */
  readonly as_node: string | null;
  /** What the names of its fields begin with in a refusal: `""`, or `supersteps[0].updates[1].` */
  readonly at: string;
}

/** One superstep of a thread that no run makes. */
export interface StateUpdate {
  readonly graph: string;
  /** `""`, or the subgraph's. */
  readonly ns: string;
  /** At least one. Several are as those of tasks side by side, and each has an `as_node`. */
  readonly writes: readonly StateWrite[];
  /**
   * Is the position the thread's latest, and not one that was named? Then what its finished tasks have left counts too.
   * The tasks that have not finished are dropped in either case, with their questions.
   */
  readonly latest: boolean;
  /** What the checkpoint says beside source, step and parents. */
  readonly metadata: JsonObject;
}

/** What an update makes of a thread's state. */
export interface Updated {
  /** Made by no run (`run_id` is null); its parent is the position's head. */
  readonly checkpoint: NewCheckpoint;
  readonly values: JsonObject;
}
