import type { CancelAction, MultitaskStrategy, StopReason, TerminalStatus } from "../src/model/run.ts";
import type { SettledState } from "../src/model/thread.ts";

/** Events that a thread's actor receives. `run` is always a run's id. */
export type ThreadEvent =
  /** A run was admitted, and its admission is being stored. `starts`: the same append also stores the run's start. */
  | {
      readonly type: "RUN.ADMITTED";
      readonly run: string;
      readonly strategy: MultitaskStrategy;
      readonly starts: boolean;
    }
  /** The active run has got a slot and may start. */
  | { readonly type: "RUN.READY"; readonly run: string }
  /** The start of the active run is stored, and the run may begin. */
  | { readonly type: "RUN.STARTED"; readonly run: string }
  /** A cancellation of the active run was requested, and the request is being stored. */
  | { readonly type: "RUN.CANCEL"; readonly run: string; readonly action: CancelAction }
  /** A waiting run has ended without starting. */
  | { readonly type: "RUN.WITHDRAWN"; readonly run: string }
  /** The state or the latest checkpoint was changed, but not by a run. An idle thread gets the status `rest`. */
  | { readonly type: "STATE.UPDATED"; readonly rest: "idle" | "interrupted" }
  /** From the run's actor: the run has ended, and its end is being stored. Nothing can stop the run any more. */
  | { readonly type: "RUN.CLOSING" }
  /**
   * A write or an actor failed: this actor is discarded. The thread is loaded again from its records: soon if it has
   * runs, otherwise when a request needs it.
   */
  | { readonly type: "GIVE.UP" };

/** Events that a run's actor receives. */
export type RunEvent =
  | { readonly type: "BEGIN" }
  | { readonly type: "CANCEL"; readonly action: StopReason }
  /**
   * The first or the next step is planned. `tasks`: the tasks of the step; empty when no more tasks will run. `hold`:
   * the tasks must wait for `COMMITTED`.
   */
  | { readonly type: "PLANNED"; readonly tasks: readonly TaskReference[]; readonly hold: boolean }
  /** The server is stopping: the tasks that are planned do not start in this process. */
  | { readonly type: "PAUSED" }
  /** Tasks were added to the step while other tasks of the step run. */
  | { readonly type: "JOINED"; readonly tasks: readonly TaskReference[] }
  /** A commit was stored, and the run may go on. */
  | { readonly type: "COMMITTED" }
  /** The end of the run is stored. */
  | { readonly type: "ENDED"; readonly status: TerminalStatus; readonly rest: SettledState };

export interface TaskReference {
  readonly id: string;
  readonly name: string;
}

/** Events that a task's actor receives, apart from XState's own: {@link TaskActorEvent} in `task-chart.ts` has both. */
export type TaskEvent =
  | { readonly type: "DONE" }
  | { readonly type: "INTERRUPTED" }
  | { readonly type: "FAILED" }
  /** The attempt failed, and the task will be attempted again. */
  | { readonly type: "RETRY" }
  /** The delay before the next attempt of the task is over. */
  | { readonly type: "TRY" }
  | { readonly type: "CANCEL" }
  /** A graph that the task's node function calls has new tasks. Their actors start as children of this actor. */
  | { readonly type: "JOINED"; readonly tasks: readonly TaskReference[] }
  /** The task's node is a subgraph. The subgraph's actor starts as a child of this actor. */
  | { readonly type: "ENTER" };

/** How a task's actor has ended. */
export type TaskEnd = "done" | "interrupted" | "failed" | "cancelled";

export interface TaskOutput {
  readonly task: string;
  readonly end: TaskEnd;
}

export interface RunActorOutput {
  readonly status: TerminalStatus;
  readonly rest: SettledState;
}

/** The graph and the run that an actor executes. */
export interface RunInput {
  /** The key of the live thread in memory ({@link threadMapKey}). */
  readonly thread: string;
  readonly run: string;
  /** The id of the task that runs the graph as its node; null for the run's root graph. */
  readonly within: string | null;
}

export interface TaskInput extends RunInput {
  readonly task: string;
  readonly name: string;
}
