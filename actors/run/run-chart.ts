import { NO_CHILD_ACTORS, type ChildActorMap } from "../child-actor-map.ts";
import type { AnyActorLogic, AnyActorRef } from "../xstate.ts";
import type { StopReason, TerminalStatus } from "../../src/model/run.ts";
import type { SettledState } from "../../src/model/thread.ts";
import type { RunEvent, RunInput, RunActorOutput, TaskOutput, TaskReference } from "../actor-events.ts";
import { type ChartActorLogic, type Statechart } from "../statechart-interpreter.ts";
import { spawnTasks, taskActorId } from "../task-chart.ts";
import { strongerStop } from "../thread/multitask.ts";

interface RunContext {
  readonly thread: string;
  readonly run: string;
  readonly within: string | null;
  readonly stop: StopReason | null;
  /** The actors of the step's tasks that have not ended, by the ids of the tasks. */
  readonly waiting: ChildActorMap;
  readonly planned: readonly TaskReference[];
  readonly status: TerminalStatus | null;
  readonly rest: SettledState;
}

/** The side effects of the statechart. An effect that has a result sends it to the actor as an event. */
export interface RunEffects {
  /**
   * Reads the start position and, unless the run was stopped, computes the first step. Reports `PLANNED` or `PAUSED`.
   */
  load(run: RunInput, self: AnyActorRef, stopped: boolean): void;
  /** Computes the next step and stores the previous step. Reports `PLANNED` or `PAUSED`. */
  plan(run: RunInput): void;
  /** Asks the engine to stop computing the step. Reports `PLANNED` or `PAUSED` if the engine stops. */
  abortPlanning(run: RunInput): void;
  /** Aborts the signals of the nodes. Each task ends by itself if its node listens to the signal. */
  abort(run: RunInput): void;
  /** Notifies the thread that the run has ended and cannot be stopped any more. */
  sayClosing(run: RunInput): void;
  /** Stores the end of the run. `stop`: how the run was stopped; null: it was not stopped. Reports `ENDED`. */
  close(run: RunInput, stop: StopReason | null): void;
}

/**
 * The output of a task's done event. XState does not type the done events of spawned actors; only this function reads
 * them.
 */
function taskOutput(event: unknown): TaskOutput | undefined {
  return (event as { output?: TaskOutput }).output;
}

/** The number of tasks that have not ended, not counting the task whose end this event reports. */
function othersThan(event: unknown, waiting: ChildActorMap): number {
  return waiting.size - (waiting.get(taskOutput(event)?.task ?? "") === undefined ? 0 : 1);
}

const planned = [
  { guard: "isOver", target: "closing" },
  { guard: "mustHold", target: "committing", actions: "takePlan" },
  { target: "executing", actions: "takePlan" },
] as const;

const paused = [{ guard: "isStopped", target: "closing" }, { target: "paused" }] as const;

const ended = (status: TerminalStatus) =>
  ({
    guard: { type: "hasStatus", params: { status } },
    target: `#run.${status}`,
    actions: "takeEnd",
  }) as const;

/** The run's statechart. Steps are planned in `loading` and `planning`, and tasks start in `executing`. */
export const runChartConfig = {
  id: "run",
  initial: "pending",
  context: ({ input: { thread, run, within } }: { readonly input: RunInput }): RunContext => ({
    thread,
    run,
    within,
    stop: null,
    waiting: NO_CHILD_ACTORS,
    planned: [],
    status: null,
    rest: "idle",
  }),
  output: ({ context: { status, rest } }: { readonly context: RunContext }): RunActorOutput => ({
    status: status ?? "error",
    rest,
  }),
  on: { CANCEL: { actions: "remember" } },
  states: {
    pending: {
      on: {
        BEGIN: { target: "running" },
      },
    },
    running: {
      initial: "loading",
      states: {
        loading: {
          entry: "load",
          on: { PLANNED: planned, PAUSED: paused, CANCEL: { target: "aborting", actions: "remember" } },
        },
        planning: {
          entry: "plan",
          on: { PLANNED: planned, PAUSED: paused, CANCEL: { target: "aborting", actions: "remember" } },
        },
        // The run was stopped while the engine computed a step. In a LangGraph.js graph, this includes code of the user,
        // such as a graph factory or a router, which cannot be forced to stop. The run leaves this state when the engine
        // has stopped, or after the grace period.
        aborting: {
          entry: "abortPlanning",
          on: { PLANNED: "closing", PAUSED: "closing" },
          after: { grace: { target: "closing" } },
        },
        // The server is stopping, and continues the run when it starts again. A cancelled run still ends at once, and a
        // LangGraph.js graph may end too: then `PLANNED` arrives without tasks.
        paused: {
          on: {
            CANCEL: { target: "closing", actions: "remember" },
            PLANNED: "closing",
          },
        },
        // Waits for the commit of an earlier step, because no further step may run before that step is stored.
        committing: {
          on: {
            COMMITTED: [{ guard: "isStopped", target: "closing" }, { target: "executing" }],
            JOINED: { actions: "addPlan" },
          },
        },
        executing: {
          entry: "spawnTasks",
          on: {
            "xstate.done.actor.*": [
              { guard: "isLastAndWell", target: "planning", actions: ["dropTask", "countTask"] },
              { guard: "isLast", target: "closing", actions: ["dropTask", "countTask"] },
              { guard: "failsOthers", target: "draining", actions: ["dropTask", "countTask"] },
              { actions: ["dropTask", "countTask"] },
            ],
            CANCEL: { target: "draining", actions: "remember" },
            JOINED: { actions: "spawnJoined" },
          },
        },
        // Nodes cannot be forced to stop. The run leaves this state when every task has ended, or after the grace period.
        draining: {
          entry: ["cancelTasks", "abort"],
          on: {
            "xstate.done.actor.*": [
              { guard: "isLast", target: "closing", actions: ["dropTask", "countTask"] },
              { actions: ["dropTask", "countTask"] },
            ],
          },
          after: { grace: { target: "closing", actions: ["stopTasks", "forgetTasks"] } },
        },
        closing: {
          entry: ["sayClosing", "close"],
          on: {
            CANCEL: {},
            ENDED: [
              ended("success"),
              ended("interrupted"),
              ended("timeout"),
              { target: "#run.error", actions: "takeEnd" },
            ],
          },
        },
      },
    },
    success: { type: "final" },
    interrupted: { type: "final" },
    error: { type: "final" },
    timeout: { type: "final" },
  },
} as const;

type RunActorEvent =
  | RunEvent
  | { readonly type: `xstate.done.actor.${string}`; readonly output: TaskOutput }
  | { readonly type: `xstate.after.${string}` };

export type RunLogic = ChartActorLogic<RunContext, RunActorEvent, RunInput, RunActorOutput>;

/** Implements the guards and actions that the chart names. `grace`: milliseconds in which the tasks of a stopped run may end by themselves. */
export function createRunChart(
  effects: RunEffects,
  task: AnyActorLogic,
  grace: number,
): Statechart<RunContext, RunActorEvent> {
  return {
    config: runChartConfig,
    delays: { grace },
    change: (context, change) => ({
      thread: context.thread,
      run: context.run,
      within: context.within,
      stop: change.stop === undefined ? context.stop : change.stop,
      waiting: change.waiting ?? context.waiting,
      planned: change.planned ?? context.planned,
      status: change.status ?? context.status,
      rest: change.rest ?? context.rest,
    }),
    guards: {
      isStopped: ({ context }) => context.stop !== null,
      isOver: ({ context, event }) =>
        event.type === "PLANNED" && (event.tasks.length === 0 || context.stop !== null),
      mustHold: ({ event }) => event.type === "PLANNED" && event.hold,
      isLast: ({ context, event }) => othersThan(event, context.waiting) === 0,
      isLastAndWell: ({ context, event }) =>
        othersThan(event, context.waiting) === 0 && taskOutput(event)?.end !== "failed",
      failsOthers: ({ context, event }) =>
        othersThan(event, context.waiting) > 0 && taskOutput(event)?.end === "failed",
      hasStatus: ({ event }, { status }: { readonly status: TerminalStatus }) =>
        event.type === "ENDED" && event.status === status,
    },
    assigns: {
      remember: ({ context, event }) =>
        event.type === "CANCEL" ? { stop: strongerStop(context.stop, event.action) } : {},
      takePlan: ({ event }) => (event.type === "PLANNED" ? { planned: event.tasks } : {}),
      addPlan: ({ context, event }) =>
        event.type === "JOINED" ? { planned: [...context.planned, ...event.tasks] } : {},
      spawnTasks: ({ context, spawn }) => ({
        waiting: context.waiting.with(spawnTasks(context, context.planned, spawn, task)),
      }),
      spawnJoined: ({ context, event, spawn }) =>
        event.type === "JOINED"
          ? { waiting: context.waiting.with(spawnTasks(context, event.tasks, spawn, task)) }
          : {},
      countTask: ({ context, event }) => ({
        waiting: context.waiting.without(taskOutput(event)?.task ?? ""),
      }),
      forgetTasks: () => ({ waiting: NO_CHILD_ACTORS }),
      takeEnd: ({ event }) => (event.type === "ENDED" ? { status: event.status, rest: event.rest } : {}),
    },
    stops: {
      // A child that is done stays in XState's `children` until it is stopped.
      dropTask: ({ event }) => [taskActorId(taskOutput(event)?.task ?? "")],
      stopTasks: ({ context }) => context.waiting.first(Infinity).map(({ id }) => id),
    },
    effects: {
      load: ({ context, self }) => effects.load(context, self, context.stop !== null),
      plan: ({ context }) => effects.plan(context),
      cancelTasks: ({ context }) => {
        for (const [, child] of context.waiting) child.send({ type: "CANCEL" });
      },
      abortPlanning: ({ context }) => effects.abortPlanning(context),
      abort: ({ context }) => effects.abort(context),
      sayClosing: ({ context }) => effects.sayClosing(context),
      close: ({ context }) => effects.close(context, context.stop),
    },
    sends: {},
  };
}
