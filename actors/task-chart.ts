import type { AnyActorLogic, AnyActorRef } from "./xstate.ts";
import type {
  RunInput,
  RunActorOutput,
  TaskEvent,
  TaskInput,
  TaskEnd,
  TaskReference,
  TaskOutput,
} from "./actor-events.ts";
import {
  childActorsOf,
  type ChartActorLogic,
  type ChartSnapshot,
  type Spawn,
  type Statechart,
} from "./statechart-interpreter.ts";

export interface TaskEffects {
  /**
   * Runs the node function or, if the node is a subgraph, reports `ENTER`. At the end, reports `DONE`,
   * `INTERRUPTED` or `FAILED`; or `RETRY` and, after a delay, `TRY`.
   */
  execute(task: TaskInput, self: AnyActorRef): void;
}

const ended = (end: TaskEnd) =>
  ({
    type: "final",
    output: ({ context }: { readonly context: TaskInput }): TaskOutput => ({ task: context.task, end }),
  }) as const;

/**
 * The task's statechart: one execution of a node. The run's attempt keeps the node's return value and its abort signal.
 *
 * If the node is a graph, a child actor executes it with the run's chart. The tasks of graphs that the node function
 * calls are children too. `CANCEL` is forwarded to the children, and they stop when the task has left `running` and
 * `stopping`.
 */
export const taskChartConfig = {
  id: "task",
  initial: "running",
  context: ({ input }: { readonly input: TaskInput }): TaskInput => input,
  output: ({ event }: { readonly event: { readonly output: TaskOutput } }) => event.output,
  on: { "xstate.done.actor.*": { guard: "isTask", actions: "dropTask" } },
  states: {
    running: {
      entry: "execute",
      on: {
        DONE: "done",
        INTERRUPTED: "interrupted",
        FAILED: "failed",
        RETRY: { target: "backoff", actions: "stopChildren" },
        // The node function still runs. The task ends when the node function has stopped.
        CANCEL: { target: "stopping", actions: "cancelChildren" },
        ENTER: { actions: ["spawnGraph", "beginGraph"] },
        JOINED: { actions: "spawnTasks" },
      },
    },
    backoff: { on: { TRY: "running", CANCEL: "cancelled" } },
    stopping: {
      on: {
        DONE: "done",
        INTERRUPTED: "interrupted",
        // The node function was asked to stop, and stopped by throwing, so its error does not count as a failure.
        FAILED: "cancelled",
        RETRY: "cancelled",
      },
    },
    done: ended("done"),
    interrupted: ended("interrupted"),
    failed: ended("failed"),
    cancelled: ended("cancelled"),
  },
} as const;

/** Events that a task's actor receives, from its children and from other actors. */
type TaskActorEvent =
  | TaskEvent
  | { readonly type: `xstate.done.actor.${string}`; readonly output: RunActorOutput | TaskOutput };

export type TaskSnapshot = ChartSnapshot<TaskInput, TaskOutput>;
export type TaskLogic = ChartActorLogic<TaskInput, TaskActorEvent, TaskInput, TaskOutput>;

const GRAPH = "subgraph";

/**
 * Implements the guards and actions that the chart names. `run` and `task` are functions that are called only when an
 * actor is spawned, because the charts of runs and tasks need each other.
 */
export function createTaskChart(
  effects: TaskEffects,
  logic: { readonly run: () => AnyActorLogic; readonly task: () => AnyActorLogic },
): Statechart<TaskInput, TaskActorEvent> {
  return {
    config: taskChartConfig,
    // No action of this chart changes the context.
    change: (context) => context,
    guards: {
      isTask: ({ event }) => "output" in event && "task" in event.output,
    },
    assigns: {
      spawnGraph: ({ context: { thread, run, task }, spawn }) => {
        const input: RunInput = { thread, run, within: task };
        spawn(logic.run(), { id: GRAPH, input });
        return {};
      },
      spawnTasks: ({ context, event, spawn }) => {
        if (event.type === "JOINED") spawnTasks(context, event.tasks, spawn, logic.task());
        return {};
      },
    },
    sends: {
      beginGraph: { to: GRAPH, event: () => ({ type: "BEGIN" }) },
    },
    effects: {
      execute: ({ context, self }) => effects.execute(context, self),
      cancelChildren: ({ self }) => {
        for (const child of childActorsOf(self)) child.send({ type: "CANCEL", action: "interrupt" });
      },
    },
    stops: {
      dropTask: ({ event }) =>
        "output" in event && "task" in event.output ? [taskActorId(event.output.task)] : [],
      stopChildren: ({ self }) => childActorsOf(self).map(({ id }) => id),
    },
  };
}

/** Spawns actors for tasks of the graph that the input names. */
export function spawnTasks(
  { thread, run, within }: RunInput,
  tasks: readonly TaskReference[],
  spawn: Spawn,
  logic: AnyActorLogic,
): readonly (readonly [task: string, actor: AnyActorRef])[] {
  return tasks.map(({ id, name }) => {
    const input: TaskInput = { thread, run, within, task: id, name };
    return [id, spawn(logic, { id: taskActorId(id), input })];
  });
}

export const taskActorId = (task: string) => `task:${task}`;
