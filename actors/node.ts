import { assign, setup, type AnyActorRef } from "xstate";
import type { TaskEvent, TaskInput, TaskKind, TaskOutput } from "./messages.ts";

export interface TaskContext extends TaskInput {
  readonly kind: TaskKind | null;
}

export interface TaskEffects {
  /** Run the node's body: answered by `DONE`, `INTERRUPTED` or `FAILED`. */
  execute(task: TaskInput, self: AnyActorRef): void;
}

/** One task: one execution of a node. What it returns, and its signal, live in the run's attempt, not here. */
export function taskMachine(effects: TaskEffects) {
  return setup({
    types: {
      context: {} as TaskContext,
      input: {} as TaskInput,
      events: {} as TaskEvent,
      output: {} as TaskOutput,
    },
    actions: {
      execute: ({ context, self }) => effects.execute(context, self),
      end: assign((_, params: { kind: TaskKind }) => ({ kind: params.kind })),
    },
  }).createMachine({
    id: "task",
    initial: "running",
    context: ({ input }) => ({ ...input, kind: null }),
    output: ({ context }) => ({ task: context.task, kind: context.kind ?? "failed" }),
    states: {
      running: {
        entry: "execute",
        on: {
          DONE: { target: "done", actions: { type: "end", params: { kind: "done" } } },
          INTERRUPTED: { target: "interrupted", actions: { type: "end", params: { kind: "interrupted" } } },
          FAILED: { target: "failed", actions: { type: "end", params: { kind: "failed" } } },
          // It still runs: only its body knows when it has stopped.
          CANCEL: { target: "stopping" },
        },
      },
      stopping: {
        on: {
          DONE: { target: "done", actions: { type: "end", params: { kind: "done" } } },
          INTERRUPTED: { target: "interrupted", actions: { type: "end", params: { kind: "interrupted" } } },
          // A body that was asked to stop and throws has stopped: that is no failure of its own.
          FAILED: { target: "cancelled", actions: { type: "end", params: { kind: "cancelled" } } },
        },
      },
      done: { type: "final" },
      interrupted: { type: "final" },
      failed: { type: "final" },
      cancelled: { type: "final" },
    },
  });
}

export type TaskMachine = ReturnType<typeof taskMachine>;
