import type { CheckpointHead, NewCheckpoint, TaskWrites } from "../model/checkpoint.ts";
import type { Fact } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";

/** A fact to emit, with the state it refers to; `head`: the checkpoint itself, where the fact is of one that is new. */
export interface Emission {
  readonly fact: Fact;
  readonly values?: JsonObject;
  readonly head?: CheckpointHead;
}

/** Where an attempt starts from. */
export interface Position {
  /** The thread's latest checkpoint (or the one that the run forks from); null for a thread without any. */
  readonly head: CheckpointHead | null;
  /** The state there. Shared, never changed. */
  readonly values: JsonObject;
  /** What tasks have left there. */
  readonly writes: readonly TaskWrites[];
}

/** A task that comes up while others of its step run. */
export interface JoiningTask {
  readonly id: string;
  readonly name: string;
  /** The task within whose body it runs; null for one of the root graph. */
  readonly within: string | null;
}

/** What a graph that drives itself tells between its steps, in order. */
export interface News {
  /** Of graphs within tasks: those of the root graph come in its steps. */
  readonly checkpoints: readonly NewCheckpoint[];
  readonly writes: readonly TaskWrites[];
  readonly emissions: readonly Emission[];
  /** Further tasks to be run now: each is called as those of a plan are. */
  readonly tasks: readonly JoiningTask[];
  /** A task's end follows at once, and takes this along to storage. */
  readonly ending?: true;
}

/**
 * What an execution may ask of the attempt to which it belongs, when its graph drives itself: one whose engine decides when its
 * steps and those of graphs within begin and end. The attempt stores what it is told, as everything else.
 */
export interface Stage {
  /** The latest checkpoint that is stored in a namespace, or the one of that id, with its state and what tasks have left there. */
  read(ns: string, id: string | null): Promise<Position | null>;
  /** Newest first. Those of this attempt may be missing, which are on their way to storage. */
  history(query: {
    readonly ns: string;
    readonly limit: number;
    readonly before?: string;
  }): Promise<readonly Position[]>;
  tell(news: News): void;
  /** Adds a fact at once, after all that was told; returns the id of its first event, -1 when the attempt is over. */
  emit(fact: Fact): number;
  /** Runs `task` after the current turn and its promise callbacks. */
  soon(task: () => void): void;
}
