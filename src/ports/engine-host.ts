import type { CheckpointHead, NewCheckpoint, PendingTaskWrites } from "../model/checkpoint.ts";
import type { Fact } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";

/** A fact (an entry of the run's event log) to emit. */
export interface Emission {
  readonly fact: Fact;
  /** The state to which the fact refers. */
  readonly values?: JsonObject;
  /** The new checkpoint, if the fact reports one. */
  readonly head?: CheckpointHead;
}

/** A checkpoint with its state and pending writes, from which an attempt starts. */
export interface CheckpointWithState {
  /** The thread's latest checkpoint, or the checkpoint from which the run forks; null if the thread has no checkpoint. */
  readonly head: CheckpointHead | null;
  /** The state at the checkpoint. It is shared and MUST NOT be changed. */
  readonly values: JsonObject;
  /** The pending writes of tasks at the checkpoint. */
  readonly writes: readonly PendingTaskWrites[];
}

/** A task that is added to a step while its other tasks run. */
export interface JoiningTask {
  readonly id: string;
  readonly name: string;
  /** The id of the task whose node function called the graph that contains this task; null if the task belongs to the root graph. */
  readonly within: string | null;
}

/**
 * A report of progress that a graph makes between its steps, if it plans its own steps (see {@link EngineHost}).
 * Reports are handled in the order in which they are made.
 */
export interface EngineReport {
  /** Checkpoints of subgraphs. The checkpoints of the root graph are in the {@link EngineStep}s instead. */
  readonly checkpoints: readonly NewCheckpoint[];
  readonly writes: readonly PendingTaskWrites[];
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
 * What the attempt of a run offers to an execution whose graph plans its own steps, as LangGraph.js does for its graphs. The execution
 * reads stored checkpoints and reports its progress; the attempt stores what is reported.
 */
export interface EngineHost {
  /**
   * Reads a stored checkpoint of the namespace `ns`, with its state and pending writes: the checkpoint with the id `id`, or the latest
   * checkpoint if `id` is null. Resolves with null if there is no such checkpoint.
   */
  read(ns: string, id: string | null): Promise<CheckpointWithState | null>;
  /**
   * Reads up to `limit` stored checkpoints of the namespace `ns`, with their states and pending writes, newest first. `before`: only
   * checkpoints older than the checkpoint with this id. Checkpoints of this attempt that are not stored yet may be missing.
   */
  history(query: {
    readonly ns: string;
    readonly limit: number;
    readonly before?: string;
  }): Promise<readonly CheckpointWithState[]>;
  report(news: EngineReport): void;
  /**
   * Adds a fact to the run's event log at once, after everything reported so far. Returns the id of the fact's first event; -1 if the
   * attempt is over.
   */
  emit(fact: Fact): number;
  /** Runs `task` after the current turn of the event loop and its promise callbacks. */
  soon(task: () => void): void;
}
