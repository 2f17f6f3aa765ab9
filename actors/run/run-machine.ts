import { NO_CHILDREN, type Children } from "../child-actors.ts";
import { createActor, type ActorLogic, type ActorScope, type AnyActorRef, type Snapshot } from "../xstate.ts";
import type { RunEvent, RunInput, RunOutput, TaskInput, TaskName, TaskOutput } from "../messages.ts";
import type { TaskMachine } from "../task.ts";
import { strongerStop } from "../thread/multitask.ts";
import type { RunContext as Charted, RunEffects } from "./run-chart.ts";

type Working = "loading" | "planning" | "committing" | "executing" | "draining" | "closing";
type RunValue = "pending" | { readonly running: Working } | RunOutput["status"];

/** The context of the chart, except that `waiting` holds the task actors themselves. */
type RunContext = Omit<Charted, "waiting"> & { readonly waiting: Children };

export type RunSnapshot = Snapshot<RunOutput> & {
  readonly value: RunValue;
  readonly context: RunContext;
  readonly children: Children;
};

/** Events that the run's actor receives from others, from its tasks and from XState. */
type RunActorEvent =
  | RunEvent
  | { readonly type: "GRACE" }
  | { readonly type: "xstate.stop" }
  | { readonly type: `xstate.done.actor.${string}`; readonly output: TaskOutput };

export type RunMachine = ActorLogic<RunSnapshot, RunActorEvent, RunInput>;
type Scope = ActorScope<RunSnapshot, RunActorEvent>;

/**
 * Timers of the run statechart. `grace` calls back once, after the grace period; the chart checks whether that still
 * matters.
 */
export interface RunDelays {
  grace(callback: () => void): void;
}

/**
 * The run's statechart (`run-chart.ts`) as hand-written actor logic. With XState's interpreter, the two dozen
 * transitions of a run with one step took a third of the run's time. A test walks the chart and holds this logic to
 * it, state by state.
 */
export function runMachine(effects: RunEffects, task: TaskMachine, delays: RunDelays): RunMachine {
  /** Enters a state and runs its entry actions. Effects run after the snapshot is set. */
  function enter(
    snapshot: RunSnapshot,
    running: Working,
    scope: Scope,
    change?: Partial<RunContext>,
  ): RunSnapshot {
    const context = change === undefined ? snapshot.context : changed(snapshot.context, change);
    const { self, defer } = scope;
    const { children } = snapshot;
    switch (running) {
      case "loading":
        defer(() => effects.load(context, self, context.stop !== null));
        break;
      case "planning":
        defer(() => effects.plan(context));
        break;
      case "executing":
        return spawn(at({ running }, context, NO_CHILDREN), context.planned, scope);
      case "draining":
        defer(() => {
          for (const [, child] of children) child.send({ type: "CANCEL" });
          effects.abort(context);
          delays.grace(() => {
            // The run may have ended long before.
            if (self.getSnapshot().status === "active") self.send({ type: "GRACE" });
          });
        });
        break;
      case "closing":
        defer(() => {
          parentOf(self)?.send({ type: "RUN.CLOSING" });
          effects.close(context, context.stop);
        });
        break;
      case "committing":
        break;
    }
    return at({ running }, context, children);
  }

  /** Spawns task actors, beside those that are running. */
  function spawn(snapshot: RunSnapshot, tasks: readonly TaskName[], { self, defer }: Scope): RunSnapshot {
    const { thread, run, within } = snapshot.context;
    const added = tasks.map(({ id, name }) => {
      const input: TaskInput = { thread, run, within, task: id, name };
      const child = createActor(task, { id: `task:${id}`, input, parent: self as AnyActorRef });
      defer(() => child.start());
      return [id, child as AnyActorRef] as const;
    });
    return waitingFor(snapshot, snapshot.children.with(added));
  }

  /** Handles the end of a task. */
  function ended(snapshot: RunSnapshot, output: TaskOutput, scope: Scope): RunSnapshot {
    const next = waitingFor(snapshot, snapshot.children.without(output.task));
    const failed = output.kind === "failed";
    const last = next.children.size === 0;
    if (isIn(snapshot, "draining")) return last ? enter(next, "closing", scope) : next;
    if (last) return enter(next, failed ? "closing" : "planning", scope);
    return failed ? enter(next, "draining", scope) : next;
  }

  function leave(snapshot: RunSnapshot, scope: Scope): RunSnapshot {
    for (const [, child] of snapshot.children) scope.defer(() => scope.stopChild(child));
    return enter(waitingFor(snapshot, NO_CHILDREN), "closing", scope);
  }

  function working(snapshot: RunSnapshot, running: Working, event: RunActorEvent, scope: Scope): RunSnapshot {
    const { context } = snapshot;
    switch (event.type) {
      case "PLANNED":
        if (running !== "loading" && running !== "planning") return snapshot;
        if (event.tasks.length === 0 || context.stop !== null) return enter(snapshot, "closing", scope);
        return enter(snapshot, event.hold ? "committing" : "executing", scope, { planned: event.tasks });
      case "JOINED":
        if (running === "executing") return spawn(snapshot, event.tasks, scope);
        if (running !== "committing") return snapshot;
        return stay(snapshot, { planned: [...context.planned, ...event.tasks] });
      case "COMMITTED":
        if (running !== "committing") return snapshot;
        return enter(snapshot, context.stop === null ? "executing" : "closing", scope);
      case "CANCEL": {
        if (running === "closing") return snapshot;
        const stop = strongerStop(context.stop, event.action);
        return running === "executing"
          ? enter(snapshot, "draining", scope, { stop })
          : stay(snapshot, { stop });
      }
      case "GRACE":
        return running === "draining" ? leave(snapshot, scope) : snapshot;
      case "ENDED": {
        if (running !== "closing") return snapshot;
        const { status, rest } = event;
        const output: RunOutput = { status, rest };
        const end = changed(context, output);
        const { children } = snapshot;
        return { status: "done", output, error: undefined, value: status, context: end, children };
      }
      case "BEGIN":
        return snapshot;
      default:
        if (running !== "executing" && running !== "draining") return snapshot;
        return "output" in event ? ended(snapshot, event.output, scope) : snapshot;
    }
  }

  return {
    getInitialSnapshot: (_, { thread, run, within }) => ({
      status: "active",
      output: undefined,
      error: undefined,
      value: "pending",
      context: {
        thread,
        run,
        within,
        stop: null,
        waiting: NO_CHILDREN,
        planned: [],
        status: null,
        rest: "idle",
      },
      children: NO_CHILDREN,
    }),
    transition(snapshot, event, scope) {
      if (event.type === "xstate.stop") {
        for (const [, child] of snapshot.children) scope.defer(() => scope.stopChild(child));
        return { ...snapshot, status: "stopped", children: NO_CHILDREN } as RunSnapshot;
      }
      const { value } = snapshot;
      if (typeof value === "object") return working(snapshot, value.running, event, scope);
      if (event.type === "BEGIN") return enter(snapshot, "loading", scope);
      if (event.type !== "CANCEL") return snapshot;
      return stay(snapshot, { stop: strongerStop(snapshot.context.stop, event.action) });
    },
    getPersistedSnapshot: (snapshot) => ({ ...snapshot, children: {} }),
  };
}

/**
 * Builds a snapshot. All members are written out, here and below: an object literal that begins with a spread is slow
 * to create and slow to read.
 */
function at(value: RunValue, context: RunContext, children: Children): RunSnapshot {
  return { status: "active", output: undefined, error: undefined, value, context, children };
}

function changed(context: RunContext, change: Partial<RunContext>): RunContext {
  const { thread, run, within } = context;
  return {
    thread,
    run,
    within,
    stop: change.stop ?? context.stop,
    waiting: change.waiting ?? context.waiting,
    planned: change.planned ?? context.planned,
    status: change.status ?? context.status,
    rest: change.rest ?? context.rest,
  };
}

function isIn({ value }: RunSnapshot, running: Working): boolean {
  return typeof value === "object" && value.running === running;
}

function stay(snapshot: RunSnapshot, change: Partial<RunContext>): RunSnapshot {
  return at(snapshot.value, changed(snapshot.context, change), snapshot.children);
}

function waitingFor({ value, context }: RunSnapshot, waiting: Children): RunSnapshot {
  return at(value, changed(context, { waiting }), waiting);
}

function parentOf(self: unknown): AnyActorRef | undefined {
  // XState sets it on every actor, though the type of the scope does not have it.
  // oxlint-disable-next-line no-underscore-dangle
  return (self as { readonly _parent?: AnyActorRef })._parent;
}
