import type { CheckpointHead, NewCheckpoint, TaskWrites } from "../model/checkpoint.ts";
import type { Fact } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";

/**
 * A fact (an entry of the run's event log) to emit. `values`: the state to which the fact refers. `head`: the new
 * checkpoint, if the fact reports one.
 */
export interface Emission {
  readonly fact: Fact;
  readonly values?: JsonObject;
  readonly head?: CheckpointHead;
}

/** A checkpoint with its state and pending writes, from which an attempt starts. */
export interface Position {
  /** The thread's latest checkpoint, or the one that the run forks from; null if the thread has no checkpoint. */
  readonly head: CheckpointHead | null;
  /** The state at the checkpoint. It is shared and MUST NOT be changed. */
  readonly values: JsonObject;
  /** The pending writes of tasks at the checkpoint. */
  readonly writes: readonly TaskWrites[];
}

/** A task that is added to a step while its other tasks run. */
export interface JoiningTask {
  readonly id: string;
  readonly name: string;
  /** The task whose node function calls the graph of this task; null for a task of the root graph. */
  readonly within: string | null;
}

/** Progress that a graph reports between its steps, in order, if it plans its own steps (see {@link EngineHost}). */
export interface EngineReport {
  /** Checkpoints of subgraphs. The checkpoints of the root graph are in its steps. */
  readonly checkpoints: readonly NewCheckpoint[];
  readonly writes: readonly TaskWrites[];
  readonly emissions: readonly Emission[];
  /** Further tasks of the current step, to start now like the tasks of a plan. */
  readonly tasks: readonly JoiningTask[];
  /**
   * True if a task ends in the same turn of the event loop as this report. The report and the end of the task are then
   * stored in one write.
   */
  readonly ending?: true;
}

/**
 * The services that the run's attempt offers to an execution whose graph plans its own steps, as LangGraph.js does: the
 * library decides when the steps of the graph and of its subgraphs begin and end. The execution reads stored checkpoints and
 * reports its progress here, and the attempt stores what is reported.
 */
export interface EngineHost {
  /** The latest stored checkpoint of a namespace, or the one with this id, with its state and pending writes. */
  read(ns: string, id: string | null): Promise<Position | null>;
  /**
   * Stored checkpoints with their states and pending writes, newest first. Checkpoints of this attempt that are not stored
   * yet may be missing.
   */
  history(query: {
    readonly ns: string;
    readonly limit: number;
    readonly before?: string;
  }): Promise<readonly Position[]>;
  report(news: EngineReport): void;
  /**
   * Adds a fact to the run's event log at once, after everything reported so far. Returns the id of its first event; -1 if
   * the attempt is over.
   */
  emit(fact: Fact): number;
  /** Runs `task` after the current turn of the event loop and its promise callbacks. */
  soon(task: () => void): void;
}
