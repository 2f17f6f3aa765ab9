import type { CancelAction, MultitaskStrategy, Stop, TerminalStatus } from "../src/model/run.ts";
import type { RestState } from "../src/model/thread.ts";

/** What a thread's actor is told. `run` is always a run's id. */
export type ThreadEvent =
  /** A run has been admitted: its place is in the record that is on its way to storage. `starts`: so is its start. */
  | {
      readonly type: "RUN.ADMITTED";
      readonly run: string;
      readonly strategy: MultitaskStrategy;
      readonly starts: boolean;
    }
  /** The active run has a slot: it may start. */
  | { readonly type: "RUN.READY"; readonly run: string }
  /** The start of the active run is stored: it may begin. */
  | { readonly type: "RUN.STARTED"; readonly run: string }
  /** The end of the active run is asked for, and that is stored. */
  | { readonly type: "RUN.CANCEL"; readonly run: string; readonly action: CancelAction }
  /** A run that waited has ended without starting. */
  | { readonly type: "RUN.WITHDRAWN"; readonly run: string }
  /** The state was changed, or another checkpoint taken up, by no run: a thread at rest now rests so. */
  | { readonly type: "STATE.UPDATED"; readonly rest: "idle" | "interrupted" }
  /** From the run: it has come to its end, which is being stored. Nothing can stop it any more. */
  | { readonly type: "RUN.CLOSING" }
  /** A write failed, or an actor broke: the records are the truth, this actor is given up. */
  | { readonly type: "GIVE.UP" };

/** What a run's actor is told. */
export type RunEvent =
  | { readonly type: "BEGIN" }
  | { readonly type: "CANCEL"; readonly action: Stop }
  /** The first step, or the next, is planned: these tasks, or none when the run is at its end. */
  | { readonly type: "PLANNED"; readonly tasks: readonly TaskName[]; readonly hold: boolean }
  /** Further tasks of the step have come up while others run. */
  | { readonly type: "JOINED"; readonly tasks: readonly TaskName[] }
  /** No commit is in flight any more. */
  | { readonly type: "COMMITTED" }
  /** The terminal record is stored. */
  | { readonly type: "ENDED"; readonly status: TerminalStatus; readonly rest: RestState };

export interface TaskName {
  readonly id: string;
  readonly name: string;
}

/** What a task's actor is told. */
export type TaskEvent =
  | { readonly type: "DONE" }
  | { readonly type: "INTERRUPTED" }
  | { readonly type: "FAILED" }
  /** It failed, and will be tried again. */
  | { readonly type: "RETRY" }
  /** The time to try again has come. */
  | { readonly type: "TRY" }
  | { readonly type: "CANCEL" }
  /** Tasks of graphs within its body: their actors are to start below it. */
  | { readonly type: "JOINED"; readonly tasks: readonly TaskName[] }
  /** Its node is a graph: that one's actor is to start below it. */
  | { readonly type: "ENTER" };

export type TaskKind = "done" | "interrupted" | "failed" | "cancelled";

/** What a task's actor leaves its parent. */
export interface TaskOutput {
  readonly task: string;
  readonly kind: TaskKind;
}

/** What a run's actor leaves its parent. */
export interface RunOutput {
  readonly status: TerminalStatus;
  readonly rest: RestState;
}

/** Which graph of which run an actor is for. `thread` is the name of its cell. */
export interface RunInput {
  readonly thread: string;
  readonly run: string;
  /** The task whose node the graph is; null for the run's root graph. */
  readonly within: string | null;
}

export interface TaskInput extends RunInput {
  readonly task: string;
  readonly name: string;
}
