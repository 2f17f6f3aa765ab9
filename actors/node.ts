import { assign, setup, type AnyActorRef } from "xstate";
import type { TaskEvent, TaskInput, TaskKind, TaskOutput } from "./messages.ts";

export interface TaskContext extends TaskInput {
  readonly kind: TaskKind | null;
  /** Milliseconds before the next try. */
  readonly delay: number;
}

export interface TaskEffects {
  /** Run the node's body: answered by `DONE`, `INTERRUPTED`, `FAILED` or `RETRY`. */
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
    delays: { delay: ({ context }) => context.delay },
    actions: {
      execute: ({ context, self }) => effects.execute(context, self),
      takeDelay: assign(({ event }) => (event.type === "RETRY" ? { delay: event.delay } : {})),
      end: assign((_, params: { kind: TaskKind }) => ({ kind: params.kind })),
    },
  }).createMachine({
    id: "task",
    initial: "running",
    context: ({ input }) => ({ ...input, kind: null, delay: 0 }),
    output: ({ context }) => ({ task: context.task, kind: context.kind ?? "failed" }),
    states: {
      running: {
        entry: "execute",
        on: {
          DONE: { target: "done", actions: { type: "end", params: { kind: "done" } } },
          INTERRUPTED: { target: "interrupted", actions: { type: "end", params: { kind: "interrupted" } } },
          FAILED: { target: "failed", actions: { type: "end", params: { kind: "failed" } } },
          RETRY: { target: "backoff", actions: "takeDelay" },
          // It still runs: only its body knows when it has stopped.
          CANCEL: { target: "stopping" },
        },
      },
      backoff: {
        after: { delay: { target: "running" } },
        on: { CANCEL: { target: "cancelled", actions: { type: "end", params: { kind: "cancelled" } } } },
      },
      stopping: {
        on: {
          DONE: { target: "done", actions: { type: "end", params: { kind: "done" } } },
          INTERRUPTED: { target: "interrupted", actions: { type: "end", params: { kind: "interrupted" } } },
          // A body that was asked to stop and throws has stopped: that is no failure of its own.
          RETRY: { target: "cancelled", actions: { type: "end", params: { kind: "cancelled" } } },
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
