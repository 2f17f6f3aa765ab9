import {
  createActor,
  type ActorLogic,
  type ActorScope,
  type AnyActorLogic,
  type AnyActorRef,
  type Snapshot,
} from "./xstate.ts";
import { NO_CHILDREN, onlyChild, type Children } from "./child-actors.ts";
import type { RunInput, TaskEvent, TaskInput, TaskKind, TaskName, TaskOutput } from "./messages.ts";

type TaskState = "running" | "backoff" | "stopping" | TaskKind;

/**
 * The task's statechart: one execution of a node. The node's return value and its abort signal are kept by the run's
 * attempt.
 */
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
        // The body still runs: only it knows when it has stopped.
        CANCEL: "stopping",
      },
    },
    backoff: { on: { TRY: "running", CANCEL: "cancelled" } },
    stopping: {
      on: {
        DONE: "done",
        INTERRUPTED: "interrupted",
        // A body that was asked to stop and throws has stopped: that does not count as a failure.
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
  /** The actor of the subgraph that is its node, or of the tasks of graphs that run inside its body. */
  readonly children: Children;
};

const SUBGRAPH = "subgraph";

export interface TaskEffects {
  /** Runs the node's body. Answered by `DONE`, `INTERRUPTED`, `FAILED`, or by `RETRY` and, later, `TRY`. */
  execute(task: TaskInput, self: AnyActorRef): void;
}

/** Events that a task's actor receives, from others and from XState. */
type TaskActorEvent =
  | TaskEvent
  | { readonly type: "xstate.stop" }
  | { readonly type: `xstate.done.actor.${string}`; readonly output: unknown };

export type TaskMachine = ActorLogic<TaskSnapshot, TaskActorEvent, TaskInput>;
type Scope = ActorScope<TaskSnapshot, TaskActorEvent>;

/**
 * The task's statechart as hand-written actor logic, which reads the chart as a table. Every node that is executed
 * gets such an actor, and XState's interpreter would cost as much as everything else that the server does for the
 * node.
 *
 * Where the node is a graph, the run's chart executes it as a child of this actor. The actor forwards `CANCEL` to the
 * child, and stops it when it leaves its states `running` and `stopping`.
 */
export function taskMachine(
  effects: TaskEffects,
  graph: () => AnyActorLogic,
): TaskMachine & { readonly config: typeof taskChart } {
  function enter(snapshot: TaskSnapshot, { self, defer }: Scope): TaskSnapshot {
    const { thread, run, task } = snapshot.context;
    const input: RunInput = { thread, run, within: task };
    const child = createActor(graph(), { id: SUBGRAPH, input, parent: self as AnyActorRef });
    defer(() => {
      child.start();
      child.send({ type: "BEGIN" });
    });
    return { ...snapshot, children: onlyChild(SUBGRAPH, child as AnyActorRef) };
  }

  /** Spawns actors for tasks of graphs that run inside the body. The body itself waits for them. */
  function join(snapshot: TaskSnapshot, tasks: readonly TaskName[], { self, defer }: Scope): TaskSnapshot {
    const { thread, run, within } = snapshot.context;
    const added = tasks.map(({ id, name }) => {
      const input: TaskInput = { thread, run, within, task: id, name };
      const child = createActor(logic, { id: `task:${id}`, input, parent: self as AnyActorRef });
      defer(() => child.start());
      return [id, child as AnyActorRef] as const;
    });
    return { ...snapshot, children: snapshot.children.with(added) } as TaskSnapshot;
  }

  /** Stops all children. Stopping a child that has ended does nothing. */
  function leave({ children }: TaskSnapshot, { defer, stopChild }: Scope): TaskSnapshot["children"] {
    for (const [, child] of children) defer(() => stopChild(child));
    return NO_CHILDREN;
  }

  /** Removes a child task that has ended. */
  function drop(snapshot: TaskSnapshot, { task }: TaskOutput): TaskSnapshot {
    return { ...snapshot, children: snapshot.children.without(task) };
  }

  const logic: TaskMachine & { readonly config: typeof taskChart } = {
    config: taskChart,
    getInitialSnapshot: (_, input) => ({
      status: "active",
      output: undefined,
      error: undefined,
      value: "running",
      context: input,
      children: NO_CHILDREN,
    }),
    start: ({ context }, { self }) => effects.execute(context, self),
    transition(snapshot, event, scope) {
      const { self, defer } = scope;
      if (event.type === "xstate.stop") {
        return { ...snapshot, status: "stopped", children: leave(snapshot, scope) } as TaskSnapshot;
      }
      if ("output" in event) return isTask(event.output) ? drop(snapshot, event.output) : snapshot;
      if (event.type === "ENTER") return snapshot.value === "running" ? enter(snapshot, scope) : snapshot;
      if (event.type === "JOINED")
        return snapshot.value === "running" ? join(snapshot, event.tasks, scope) : snapshot;
      const state = taskChart.states[snapshot.value];
      const on: { readonly [event: string]: TaskState } = "on" in state ? state.on : {};
      const value = on[event.type];
      if (value === undefined) return snapshot;
      const { context } = snapshot;
      let { children } = snapshot;
      if (children.size > 0) {
        if (value === "stopping")
          for (const [, child] of children) defer(() => child.send({ type: "CANCEL", action: "interrupt" }));
        else children = leave(snapshot, scope);
      }
      if ("on" in taskChart.states[value]) {
        if (value === "running") defer(() => effects.execute(context, self));
        return { status: "active", output: undefined, error: undefined, value, context, children };
      }
      const output: TaskOutput = { task: context.task, kind: value as TaskKind };
      return { status: "done", output, error: undefined, value, context, children };
    },
    getPersistedSnapshot: (snapshot) => ({ ...snapshot, children: {} }),
  };
  return logic;
}

const isTask = (output: unknown): output is TaskOutput =>
  typeof output === "object" && output !== null && "task" in output;
