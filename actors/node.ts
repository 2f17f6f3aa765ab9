import type { ActorLogic, AnyActorRef, Snapshot } from "xstate";
import type { TaskEvent, TaskInput, TaskKind, TaskOutput } from "./messages.ts";

type TaskState = "running" | "backoff" | "stopping" | TaskKind;

/** The task's chart: one execution of a node. What it returns, and its signal, live in the run's attempt, not here. */
export const taskChart = {
  id: "task",
  initial: "running",
  states: {
    running: {
      on: {
        DONE: "done",
        INTERRUPTED: "interrupted",
        FAILED: "failed",
        RETRY: "backoff",
        // It still runs: only its body knows when it has stopped.
        CANCEL: "stopping",
      },
    },
    backoff: { on: { TRY: "running", CANCEL: "cancelled" } },
    stopping: {
      on: {
        DONE: "done",
        INTERRUPTED: "interrupted",
        // A body that was asked to stop and throws has stopped: that is no failure of its own.
        FAILED: "cancelled",
        RETRY: "cancelled",
      },
    },
    done: { type: "final" },
    interrupted: { type: "final" },
    failed: { type: "final" },
    cancelled: { type: "final" },
  },
} as const satisfies {
  readonly id: string;
  readonly initial: TaskState;
  readonly states: {
    readonly [S in TaskState]:
      | { readonly on: { readonly [E in TaskEvent["type"]]?: TaskState } }
      | { readonly type: "final" };
  };
};

export type TaskSnapshot = Snapshot<TaskOutput> & {
  readonly value: TaskState;
  readonly context: TaskInput;
};

export interface TaskEffects {
  /** Run the node's body: answered by `DONE`, `INTERRUPTED`, `FAILED`, or by `RETRY` and, later, `TRY`. */
  execute(task: TaskInput, self: AnyActorRef): void;
}

export type TaskMachine = ActorLogic<TaskSnapshot, TaskEvent, TaskInput>;

/**
 * The chart as actor logic of our own, which reads it as a table. There is one of these for every node that is executed,
 * and a machine of XState's would cost as much as all the rest of the node's way through the server.
 */
export function taskMachine(effects: TaskEffects): TaskMachine & { readonly config: typeof taskChart } {
  return {
    config: taskChart,
    getInitialSnapshot: (_, input) => ({
      status: "active",
      output: undefined,
      error: undefined,
      value: "running",
      context: input,
    }),
    start: ({ context }, { self }) => effects.execute(context, self),
    transition(snapshot, event, { self, defer }) {
      const state = taskChart.states[snapshot.value];
      const on: { readonly [event: string]: TaskState } = "on" in state ? state.on : {};
      const value = on[event.type];
      if (value === undefined) return snapshot;
      const { context } = snapshot;
      if ("on" in taskChart.states[value]) {
        if (value === "running") defer(() => effects.execute(context, self));
        return { ...snapshot, value } as TaskSnapshot;
      }
      const output: TaskOutput = { task: context.task, kind: value as TaskKind };
      return { status: "done", output, error: undefined, value, context };
    },
    getPersistedSnapshot: (snapshot) => snapshot,
  };
}
