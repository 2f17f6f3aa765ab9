import { assign, enqueueActions, sendParent, sendTo, setup, stopChild, type AnyActorRef } from "../xstate.ts";
import type { StopReason, TerminalStatus } from "../../src/model/run.ts";
import type { SettledState } from "../../src/model/thread.ts";
import type { RunEvent, RunInput, RunOutput, TaskInput, TaskName, TaskOutput } from "../messages.ts";
import type { TaskMachine } from "../task.ts";
import { strongerStop } from "../thread/multitask.ts";

export interface RunContext {
  readonly thread: string;
  readonly run: string;
  readonly within: string | null;
  readonly stop: StopReason | null;
  /** Ids of the step's tasks that have not ended. */
  readonly waiting: readonly string[];
  /** Tasks of the planned step. */
  readonly planned: readonly TaskName[];
  readonly status: TerminalStatus | null;
  readonly rest: SettledState;
}

/** Side effects of the statechart. Each answer comes back as a message. */
export interface RunEffects {
  /**
   * Reads the position to start from and, unless the run was stopped, computes the first step. Answered by `PLANNED`.
   */
  load(run: RunInput, self: AnyActorRef, stopped: boolean): void;
  /** Computes the next step and stores the last one. Answered by `PLANNED`. */
  plan(run: RunInput): void;
  /** Aborts the signals of the nodes. Each task that listens to its signal answers by ending. */
  abort(run: RunInput): void;
  /** Stores the end of the run; `stop` says how it was stopped, if it was. Answered by `ENDED`. */
  close(run: RunInput, stop: StopReason | null): void;
}

/**
 * The output of a task's done event. XState does not type the done events of spawned actors; only this function reads
 * them.
 */
function taskOutput(event: unknown): TaskOutput | undefined {
  return (event as { output?: TaskOutput }).output;
}

/** The number of tasks that have not ended, once this one has. */
function othersThan(event: unknown, waiting: readonly string[]): number {
  const task = taskOutput(event)?.task;
  return task !== undefined && waiting.includes(task) ? waiting.length - 1 : waiting.length;
}

const taskActor = (task: string) => `task:${task}`;

const planned = [
  { guard: "isOver", target: "closing" },
  { guard: "mustHold", target: "committing", actions: "takePlan" },
  { target: "executing", actions: "takePlan" },
] as const;

/**
 * The run's statechart in XState's form. The inspector draws it, and a test holds the actor logic in `run-machine.ts`
 * to it. Only `loading` and `planning` compute, only tasks run user code, and every wait is a state.
 */
export function runChart(effects: RunEffects, task: TaskMachine, grace: number) {
  return setup({
    types: {
      context: {} as RunContext,
      input: {} as RunInput,
      events: {} as RunEvent,
      output: {} as RunOutput,
    },
    actors: { task },
    delays: { grace },
    guards: {
      isStopped: ({ context }) => context.stop !== null,
      isOver: ({ context, event }) =>
        event.type === "PLANNED" && (event.tasks.length === 0 || context.stop !== null),
      mustHold: ({ event }) => event.type === "PLANNED" && event.hold,
      isLast: ({ context, event }) => othersThan(event, context.waiting) === 0,
      isLastAndWell: ({ context, event }) =>
        othersThan(event, context.waiting) === 0 && taskOutput(event)?.kind !== "failed",
      failsOthers: ({ context, event }) =>
        othersThan(event, context.waiting) > 0 && taskOutput(event)?.kind === "failed",
      hasStatus: ({ event }, params: { status: TerminalStatus }) =>
        event.type === "ENDED" && event.status === params.status,
    },
    actions: {
      load: ({ context, self }) => effects.load(context, self, context.stop !== null),
      plan: ({ context }) => effects.plan(context),
      abort: ({ context }) => effects.abort(context),
      close: ({ context }) => effects.close(context, context.stop),
      sayClosing: sendParent({ type: "RUN.CLOSING" }),
      remember: assign(({ context, event }) =>
        event.type === "CANCEL" ? { stop: strongerStop(context.stop, event.action) } : {},
      ),
      takePlan: assign(({ event }) => (event.type === "PLANNED" ? { planned: event.tasks } : {})),
      addPlan: assign(({ context, event }) =>
        event.type === "JOINED" ? { planned: [...context.planned, ...event.tasks] } : {},
      ),
      spawnJoined: assign(({ context, event, spawn }) => {
        if (event.type !== "JOINED") return {};
        for (const { id, name } of event.tasks) {
          const { thread, run, within } = context;
          const input: TaskInput = { thread, run, within, task: id, name };
          spawn("task", { id: taskActor(id), input });
        }
        return { waiting: [...context.waiting, ...event.tasks.map(({ id }) => id)] };
      }),
      takeEnd: assign(({ event }) =>
        event.type === "ENDED" ? { status: event.status, rest: event.rest } : {},
      ),
      spawnTasks: assign(({ context, spawn }) => {
        for (const { id, name } of context.planned) {
          const { thread, run, within } = context;
          const input: TaskInput = { thread, run, within, task: id, name };
          spawn("task", { id: taskActor(id), input });
        }
        return { waiting: context.planned.map(({ id }) => id) };
      }),
      // XState keeps a child that is done in `children` until it is stopped.
      dropTask: stopChild(({ event }) => taskActor(taskOutput(event)?.task ?? "")),
      countTask: assign(({ context, event }) => ({
        waiting: context.waiting.filter((id) => id !== taskOutput(event)?.task),
      })),
      cancelTasks: enqueueActions(({ context, enqueue }) => {
        for (const id of context.waiting) enqueue(sendTo(taskActor(id), { type: "CANCEL" }));
      }),
      leaveTasks: enqueueActions(({ context, enqueue }) => {
        for (const id of context.waiting) enqueue.stopChild(taskActor(id));
        enqueue.assign({ waiting: [] });
      }),
    },
  }).createMachine({
    id: "run",
    initial: "pending",
    context: ({ input }) => ({
      thread: input.thread,
      run: input.run,
      within: input.within,
      stop: null,
      waiting: [],
      planned: [],
      status: null,
      rest: "idle",
    }),
    output: ({ context }) => ({ status: context.status ?? "error", rest: context.rest }),
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
            on: { PLANNED: planned },
          },
          planning: {
            entry: "plan",
            on: { PLANNED: planned },
          },
          // Waits for the commit of an earlier step: the computation may not run further ahead of it.
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
            } as Record<string, object>,
          },
          // An abort cannot be forced: the run leaves this state when every task has ended, or after the grace
          // period.
          draining: {
            entry: ["cancelTasks", "abort"],
            on: {
              "xstate.done.actor.*": [
                { guard: "isLast", target: "closing", actions: ["dropTask", "countTask"] },
                { actions: ["dropTask", "countTask"] },
              ],
            } as Record<string, object>,
            after: { grace: { target: "closing", actions: "leaveTasks" } },
          },
          closing: {
            entry: ["sayClosing", "close"],
            on: {
              CANCEL: {},
              ENDED: [
                {
                  guard: { type: "hasStatus", params: { status: "success" } },
                  target: "#run.success",
                  actions: "takeEnd",
                },
                {
                  guard: { type: "hasStatus", params: { status: "interrupted" } },
                  target: "#run.interrupted",
                  actions: "takeEnd",
                },
                {
                  guard: { type: "hasStatus", params: { status: "timeout" } },
                  target: "#run.timeout",
                  actions: "takeEnd",
                },
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
  });
}
