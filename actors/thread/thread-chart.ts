import type { CancelAction } from "../../src/model/run.ts";
import type { SettledState } from "../../src/model/thread.ts";
import type { RunEvent, RunInput, RunActorOutput, ThreadEvent } from "../actor-events.ts";
import type { ChartActorLogic, Statechart } from "../statechart-interpreter.ts";
import type { AnyActorLogic } from "../xstate.ts";
import { decideMultitask, strongerStop, actionOnQueuedRuns, type ThreadSituation } from "./multitask.ts";

/**
 * The context of the thread's statechart: small, plain data, which the inspector shows. The graph's state and abort
 * controllers are not in it.
 */
export interface ThreadContext {
  readonly thread: string;
  readonly active: string | null;
  readonly queue: readonly string[];
  /** The action by which the active run is being stopped; null: it is not being stopped. */
  readonly stop: CancelAction | null;
  readonly rest: SettledState;
}

export interface ThreadInput {
  readonly thread: string;
  readonly active: string | null;
  readonly queue: readonly string[];
  readonly rest: SettledState;
}

/** The side effects of the statechart. Each reports its result as an event that it sends to the actor. */
export interface ThreadEffects {
  /** Asks for a slot for the active run. Reports `RUN.READY`. */
  ask(thread: string, run: string): void;
  /** Stores the start of the active run, unless its admission has stored it. Reports `RUN.STARTED`. */
  start(thread: string, run: string): void;
}

/** The events that the thread's actor receives: its own, and XState's event for the end of the run's actor. */
type ThreadActorEvent =
  | ThreadEvent
  | { readonly type: "xstate.done.actor.run"; readonly output: RunActorOutput };

/** The parameters of guards and actions: `rest` is the name of a settled state. */
interface SettledStateParams {
  readonly rest: SettledState;
}

const updated = <R extends "idle" | "interrupted">(rest: R) =>
  ({
    guard: { type: "updatedTo", params: { rest } },
    target: `#thread.${rest}`,
    actions: [{ type: "comeToRest", params: { rest } }],
  }) as const;

/** The configuration of all four settled states, which differ only in their names. */
const atRest = {
  on: {
    "RUN.ADMITTED": [
      { guard: "startsNow", target: "pending.starting", actions: ["enqueue", "takeNext"] },
      { guard: "starts", target: "pending", actions: ["enqueue", "takeNext"] },
    ],
    "STATE.UPDATED": [updated("idle"), updated("interrupted")],
  },
} as const;

const waking = <R extends SettledState>(rest: R) =>
  ({ guard: { type: "restsIn", params: { rest } }, target: rest }) as const;

const ending = <R extends SettledState>(rest: R) =>
  ({
    guard: { type: "endedIn", params: { rest } },
    target: rest,
    actions: [{ type: "comeToRest", params: { rest } }],
  }) as const;

const leaving = <R extends SettledState>(rest: R) =>
  ({
    guard: { type: "leavesIn", params: { rest } },
    target: `#thread.${rest}`,
    actions: [{ type: "comeToRest", params: { rest } }],
  }) as const;

const queueing = { guard: "queues", actions: ["enqueue"] } as const;
const superseding = { guard: "supersedes", actions: ["takeOver", "stopForNewRun", "stopRun"] } as const;
const cancelling = { guard: "isActive", actions: ["stopAsRequested", "stopRun"] } as const;

/**
 * The thread's statechart. A busy thread is in the state `pending`. A thread without work is in a settled
 * state, whose name says how the last run, or the last change of the graph's state, left the thread.
 */
export const threadChartConfig = {
  id: "thread",
  initial: "waking",
  context: ({ input: { thread, active, queue, rest } }: { readonly input: ThreadInput }): ThreadContext => ({
    thread,
    active,
    queue,
    rest,
    stop: null,
  }),
  on: { "GIVE.UP": [{ target: ".failed" }] },
  states: {
    waking: {
      always: [
        // A run that was in progress when the server went down is still the active one. It does not wait for a slot.
        { guard: "hasActive", target: "pending.starting" },
        { guard: "hasNext", target: "pending", actions: ["takeNext"] },
        waking("idle"),
        waking("success"),
        waking("interrupted"),
        waking("error"),
      ],
    },
    idle: atRest,
    success: atRest,
    interrupted: atRest,
    error: atRest,
    pending: {
      // The parent state invokes the run's actor, so that transitions between the inner states do not stop it. A run that has begun is
      // cancelled by an event to its actor, not by leaving `pending`.
      invoke: {
        id: "run",
        src: "run",
        input: ({ context }: { readonly context: ThreadContext }): RunInput => ({
          thread: context.thread,
          run: context.active ?? "",
          within: null,
        }),
        onDone: [
          { guard: "hasNext", target: "pending", reenter: true, actions: ["takeNext"] },
          ending("idle"),
          ending("success"),
          ending("interrupted"),
          ending("error"),
        ],
      },
      initial: "waiting",
      on: {
        "RUN.WITHDRAWN": [{ actions: ["withdraw"] }],
        "RUN.CLOSING": [{ target: ".settling" }],
      },
      states: {
        // The run waits for a slot. Its actor has not begun, so nothing has to be sent to it when the run is ended or replaced.
        waiting: {
          entry: ["ask"],
          on: {
            "RUN.READY": [{ guard: "isActive", target: "starting" }],
            "RUN.ADMITTED": [
              queueing,
              {
                guard: "supersedes",
                target: "#thread.pending",
                reenter: true,
                actions: ["takeOver", "takeNext"],
              },
            ],
            "RUN.WITHDRAWN": [
              { guard: "makesWay", target: "#thread.pending", reenter: true, actions: ["takeNext"] },
              leaving("idle"),
              leaving("success"),
              leaving("interrupted"),
              leaving("error"),
            ],
          },
        },
        starting: {
          entry: ["start"],
          on: {
            "RUN.STARTED": [
              { guard: "isStopping", target: "stopping", actions: ["beginRun"] },
              { target: "running", actions: ["beginRun"] },
            ],
            "RUN.ADMITTED": [queueing, superseding],
            "RUN.CANCEL": [cancelling],
          },
        },
        running: {
          on: {
            "RUN.ADMITTED": [queueing, { ...superseding, target: "stopping" }],
            "RUN.CANCEL": [{ ...cancelling, target: "stopping" }],
          },
        },
        stopping: { on: { "RUN.ADMITTED": [queueing, superseding], "RUN.CANCEL": [cancelling] } },
        settling: {
          on: { "RUN.ADMITTED": [queueing, { guard: "supersedes", actions: ["takeOver"] }] },
        },
      },
    },
    failed: { type: "final" },
  },
} as const;

export type ThreadActorLogic = ChartActorLogic<ThreadContext, ThreadActorEvent, ThreadInput, undefined>;

/** Implements the guards and actions that the chart names. */
export function createThreadChart(
  effects: ThreadEffects,
  run: AnyActorLogic,
): Statechart<ThreadContext, ThreadActorEvent> {
  return {
    config: threadChartConfig,
    actors: { run },
    change: (context, change) => ({
      thread: context.thread,
      active: change.active === undefined ? context.active : change.active,
      queue: change.queue ?? context.queue,
      rest: change.rest ?? context.rest,
      stop: change.stop === undefined ? context.stop : change.stop,
    }),
    guards: {
      hasActive: ({ context }) => context.active !== null,
      hasNext: ({ context }) => context.queue.length > 0,
      isStopping: ({ context }) => context.stop !== null,
      isActive: ({ context, event }) =>
        (event.type === "RUN.CANCEL" || event.type === "RUN.READY") && event.run === context.active,
      makesWay: ({ context, event }) =>
        event.type === "RUN.WITHDRAWN" && event.run === context.active && context.queue.length > 0,
      leavesIn: ({ context, event }, { rest }: SettledStateParams) =>
        event.type === "RUN.WITHDRAWN" && event.run === context.active && context.rest === rest,
      // These guards call the multitask rules, so that the chart and the admission cannot decide differently.
      startsNow: ({ event }) =>
        event.type === "RUN.ADMITTED" && event.starts && decides(event, "resting", "start"),
      starts: ({ event }) => decides(event, "resting", "start"),
      queues: ({ event }) => decides(event, "working", "queue"),
      supersedes: ({ event }) => decides(event, "working", "supersede"),
      endedIn: ({ event }, { rest }: SettledStateParams) =>
        event.type === "xstate.done.actor.run" && event.output.rest === rest,
      updatedTo: ({ event }, { rest }: SettledStateParams) =>
        event.type === "STATE.UPDATED" && event.rest === rest,
      restsIn: ({ context }, { rest }: SettledStateParams) => context.rest === rest,
    },
    assigns: {
      enqueue: ({ context, event }) =>
        event.type === "RUN.ADMITTED" ? { queue: [...context.queue, event.run] } : {},
      takeOver: ({ event }) => (event.type === "RUN.ADMITTED" ? { queue: [event.run] } : {}),
      stopForNewRun: ({ context, event }) =>
        event.type === "RUN.ADMITTED"
          ? { stop: strongerStop(context.stop, actionOnQueuedRuns(event.strategy) ?? "interrupt") }
          : {},
      stopAsRequested: ({ context, event }) =>
        event.type === "RUN.CANCEL" ? { stop: strongerStop(context.stop, event.action) } : {},
      withdraw: ({ context, event }) =>
        event.type === "RUN.WITHDRAWN" ? { queue: context.queue.filter((id) => id !== event.run) } : {},
      takeNext: ({ context: { queue } }) => ({ active: queue[0] ?? null, queue: queue.slice(1), stop: null }),
      comeToRest: (_, { rest }: SettledStateParams) => ({ active: null, stop: null, rest }),
    },
    sends: {
      stopRun: {
        to: "run",
        event: ({ context }): RunEvent => ({ type: "CANCEL", action: context.stop ?? "interrupt" }),
      },
      beginRun: { to: "run", event: (): RunEvent => ({ type: "BEGIN" }) },
    },
    effects: {
      ask: ({ context: { thread, active } }) => {
        if (active !== null) effects.ask(thread, active);
      },
      start: ({ context: { thread, active } }) => {
        if (active !== null) effects.start(thread, active);
      },
    },
    stops: {},
  };
}

function decides(
  event: ThreadActorEvent,
  situation: ThreadSituation,
  kind: ReturnType<typeof decideMultitask>["kind"],
): boolean {
  return event.type === "RUN.ADMITTED" && decideMultitask(event.strategy, situation).kind === kind;
}

/** The situation for a new run, read from the chart's state. */
export function threadSituationOf(value: unknown): ThreadSituation {
  if (typeof value !== "object") return "resting";
  return (value as { pending?: string }).pending === "settling" ? "settling" : "working";
}
